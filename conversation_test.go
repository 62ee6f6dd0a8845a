// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

// An agent that dies takes its turn with it, not the conversation.
func TestConversation_OutlivesItsAgent(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("The marker is blue."), script.Text("It was blue."))
	started := make(chan claude.Process, 2)
	adapter := claudecode.New(cli.Options(model)).In(&isolation.Isolation{Started: func(p claude.Process) { started <- p }})
	p, err := prompt.NewPrompt[prompt.Text]("demo", "talk", prompt.Markdown("task", "Task", "Remember it."))
	if err != nil {
		t.Fatal(err)
	}
	c := drover.Converse(adapter, p, nil)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	cut := <-started
	if err := cut.Kill(); err != nil {
		t.Fatal(err)
	}
	cut.Wait()
	_, err = c.Send(t.Context(), "Which colour was it?")
	if failure, ok := errors.AsType[*drover.EvaluationError](err); !ok || failure.Kind != agent.FailureProcess {
		t.Fatalf("the turn after its death ended with %v", err)
	}
	resp, err := c.Send(t.Context(), "Which colour was it?")
	if err != nil {
		t.Fatal(err)
	}
	if string(resp.Output) != "It was blue." || !model.LastRequest().SawText("The marker is blue.") {
		t.Errorf("the answer is %q, and the new agent does not know the earlier messages", resp.Output)
	}
}

// An awaitedStore closes a channel when a text is stored.
type awaitedStore struct {
	*transcript.MemoryStore
	text   string
	stored chan struct{}
	once   sync.Once
}

func (s *awaitedStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	err := s.MemoryStore.Append(ctx, key, entries)
	for _, entry := range entries {
		if bytes.Contains(entry, []byte(s.text)) {
			s.once.Do(func() { close(s.stored) })
		}
	}
	return err
}

// A fork is a snapshot: later messages of its parent are not in it, also those before the fork's first message. A
// fork that is made while a turn is under way does not have that turn.
func TestFork_LaterMessagesOfTheParentAreNotHeard(t *testing.T) {
	cli := claudetest.CLI(t)
	store := &awaitedStore{MemoryStore: transcript.NewMemoryStore(), text: "marker is red", stored: make(chan struct{})}
	model := claudetest.NewModel(t, script.Text("The marker is blue."), script.Text("The marker is red."), script.Text("It was blue."), script.Text("Blue, again."))
	p, err := prompt.NewPrompt[prompt.Text]("demo", "talk", prompt.Markdown("task", "Task", "Remember it."))
	if err != nil {
		t.Fatal(err)
	}
	base := cli.Options(model)
	base.Store, base.StoreEager = store, true
	c := drover.Converse(claudecode.New(base), p, nil)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	var forks []*drover.Conversation[prompt.Text]
	fork := func() {
		f, err := c.Fork(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		forks = append(forks, f)
	}
	fork()
	turn := c.Stream(t.Context(), "The marker is red from now on.")
	for e, err := range turn.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.KindText && len(forks) == 1 {
			select {
			case <-store.stored:
			case <-time.After(30 * time.Second):
				t.Error("the message is not stored while the turn is under way")
			}
			fork()
		}
	}
	if _, err := turn.Response(); err != nil {
		t.Fatal(err)
	}
	if len(forks) != 2 {
		t.Fatal("no text came while the turn was under way")
	}
	for _, f := range forks {
		if _, err := f.Send(t.Context(), "Which colour is it?"); err != nil {
			t.Fatal(err)
		}
		asked := model.LastRequest()
		if !asked.SawText("The marker is blue.") {
			t.Error("the fork does not know the messages before it")
		}
		if strings.Contains(string(asked.Body), "marker is red") {
			t.Error("the fork has received the messages after it")
		}
		if f.ResumeToken() == c.ResumeToken() {
			t.Error("the fork goes on in the conversation that it comes from")
		}
	}
}

// A name that was given is that of the first message: two runs of one name could not be told apart in a log.
func TestConversation_EachMessageIsARunOfItsOwn(t *testing.T) {
	adapter := agenttest.New(agenttest.Emit(event.Text{Content: "Yes."}), agenttest.Done("token-1"))
	p, err := prompt.FromText[string]("Look.")
	if err != nil {
		t.Fatal(err)
	}
	c := drover.Converse(adapter, p, &drover.Options{RunContext: guard.RunContext{RunID: "first", RequestID: "request"}})
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	seen := map[string]bool{}
	ids := []string{}
	for _, send := range []func() (*drover.Response[string], error){
		func() (*drover.Response[string], error) { return c.Begin(t.Context()) },
		func() (*drover.Response[string], error) { return c.Send(t.Context(), "And now?") },
		func() (*drover.Response[string], error) { return c.Send(t.Context(), "And then?") },
		func() (*drover.Response[string], error) {
			fork, err := c.Fork(nil)
			if err != nil {
				return nil, err
			}
			defer func() { _ = fork.Close() }()
			return fork.Send(t.Context(), "Otherwise?")
		},
	} {
		resp, err := send()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, resp.RunID)
		seen[resp.RunID] = true
	}
	if ids[0] != "first" || len(seen) != len(ids) {
		t.Errorf("the runs are %q", ids)
	}
}
