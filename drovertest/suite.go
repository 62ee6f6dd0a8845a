// SPDX-License-Identifier: Apache-2.0

package drovertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// TestAdapter tests whether evaluations by an adapter keep what the package drover promises.
func TestAdapter(t *testing.T, s Subject) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != nil && !c.needs(s.Capabilities) {
				t.Skip("the adapter does not claim this; set it in Subject.Capabilities to test it")
			}
			c.test(t, &suite{Subject: s})
		})
	}
}

type check struct {
	name  string
	needs func(Capabilities) bool // nil needs nothing
	test  func(*testing.T, *suite)
}

var checks = []check{
	{"text", nil, testText},
	{"events", nil, testEvents},
	{"a failure is reported", nil, testFailureIsReported},
	{"deadline before", nil, testDeadlineBefore},
	{"deadline meanwhile", nil, testDeadlineMeanwhile},
	{"cancel", nil, testCancel},
	{"parallel", nil, testParallel},
	{"tools", func(c Capabilities) bool { return c.Tools }, testTools},
	{"structured output", func(c Capabilities) bool { return c.StructuredOutput }, testStructuredOutput},
	{"transcript", func(c Capabilities) bool { return c.Transcript }, testTranscript},
	{"disclosure", func(c Capabilities) bool { return c.Disclosure && c.Tools }, testDisclosure},
	{"transactions", func(c Capabilities) bool { return c.Transactions && c.Tools }, testTransactions},
	{"transactions of native tools", func(c Capabilities) bool { return c.Transactions && c.NativeTools }, testNativeTransactions},
	{"budgets", func(c Capabilities) bool { return c.Budgets && c.NativeTools }, testBudgets},
	{"policies", func(c Capabilities) bool { return c.Policies && c.Tools }, testPolicies},
	{"feedback", func(c Capabilities) bool { return c.Feedback && c.Tools }, testFeedback},
	{"completion", func(c Capabilities) bool { return c.Completion && c.StructuredOutput }, testCompletion},
	{"native tools", func(c Capabilities) bool { return c.NativeTools }, testNativeTools},
	{"isolation", func(c Capabilities) bool { return c.Isolation && c.NativeTools }, testIsolation},
	{"skills", func(c Capabilities) bool { return c.Skills }, testSkills},
	{"conversations", func(c Capabilities) bool { return c.Conversations }, testConversations},
}

// A suite is the subject and what the tests share.
type suite struct{ Subject }

// note is a tool of the prompts: it dispatches its input, and fails on request.
type note struct {
	Text string `json:"text"`
	Fail bool   `json:"fail,omitzero"`
}

// A Noted is what the tool note has noted.
type Noted struct {
	Text string `json:"text"`
}

func noteTool() *tool.Tool {
	return tool.Must("note", "Notes something.", func(ctx context.Context, in note) (string, error) {
		s, _ := session.From(ctx)
		if _, err := s.Dispatch(ctx, Noted{in.Text}); err != nil {
			return "", err
		}
		if in.Fail {
			return "", errFailed
		}
		return "noted " + in.Text, nil
	})
}

// verdict is a typed answer.
type verdict struct {
	Good bool   `json:"good"`
	Why  string `json:"why"`
}

func promptOf[T any](t *testing.T, sections ...*prompt.Section) *prompt.Prompt[T] {
	t.Helper()
	if len(sections) == 0 {
		sections = []*prompt.Section{prompt.Markdown("task", "Task", "Do it.")}
	}
	p, err := prompt.NewPrompt[T]("suite", "task", sections...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// evaluated has a prompt answered that must have an answer.
func evaluated[T any](t *testing.T, s *suite, p *prompt.Prompt[T], o *drover.Options, steps ...Step) (*drover.Response[T], Model) {
	t.Helper()
	a, m := s.New(t, steps...)
	resp, err := drover.Evaluate(t.Context(), a, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return resp, m
}

// invoked are the calls that a session has recorded.
func invoked(s *session.Session) []session.ToolInvoked {
	var all []session.ToolInvoked
	for c := range session.Query[session.ToolInvoked](s).All() {
		all = append(all, c)
	}
	return all
}

// spoilTool writes a file into the workspace and spoils another, and fails on request.
func spoilTool(w *workspace.Workspace) *tool.Tool {
	return tool.Must("spoil", "Spoils files.", func(ctx context.Context, in note) (string, error) {
		s, _ := session.From(ctx)
		_, err := s.Dispatch(ctx, Noted{in.Text})
		if in.Fail {
			err = errors.Join(err, os.WriteFile(filepath.Join(w.Root(), "kept.txt"), []byte("spoilt"), 0o644), errFailed)
		}
		return "spoilt", errors.Join(os.WriteFile(filepath.Join(w.Root(), in.Text+".txt"), []byte(in.Text), 0o644), err)
	}, tool.Mutates)
}
