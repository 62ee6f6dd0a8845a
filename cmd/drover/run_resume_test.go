// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/cmd/drover/internal/runs"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/isolation"
)

func TestTakeToken_Cases(t *testing.T) {
	for name, c := range map[string]struct {
		resume, file string
		args         []string
		token        string
		rest         []string
	}{
		"no flag":             {"", "", []string{"Do it."}, "", []string{"Do it."}},
		"behind =":            {"t", "", []string{"Do it."}, "t", []string{"Do it."}},
		"before the prompt":   {resumeList, "", []string{conversationID, "Do it."}, conversationID, []string{"Do it."}},
		"behind the prompt":   {resumeList, "", []string{"Do it.", conversationID}, conversationID, []string{"Do it."}},
		"of another form":     {resumeList, "", []string{"t", "Do it."}, "t", []string{"Do it."}},
		"without a prompt":    {resumeList, "", []string{conversationID}, conversationID, []string{}},
		"to choose":           {resumeList, "", []string{"Do it."}, resumeList, []string{"Do it."}},
		"of a file":           {resumeList, "a.yaml", []string{"t"}, "t", []string{}},
		"to choose of a file": {resumeList, "a.yaml", nil, resumeList, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := runOptions{resume: c.resume, file: fileFlags{path: c.file}}
			rest, err := o.takeToken(c.args)
			if err != nil || o.resume != c.token || !cmp.Equal(rest, c.rest) {
				t.Errorf("token %q and %q (%v), want %q and %q", o.resume, rest, err, c.token, c.rest)
			}
		})
	}
}

// keepConversation stores a conversation of a folder that begins with a prompt, and returns its token.
func keepConversation(t *testing.T, state, folder, first string) string {
	t.Helper()
	files, err := transcript.NewFileStore(filepath.Join(state, "conversations"))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	line, err := json.Marshal(map[string]any{
		"type": "user", "cwd": folder, "timestamp": time.Now().Format(time.RFC3339Nano), "message": map[string]string{"role": "user", "content": first},
	})
	if err != nil {
		t.Fatal(err)
	}
	token := ident.NewUUID()
	key := transcript.Key{ProjectKey: "any", SessionID: token}
	if err := newProjectStore(files, folder).Append(t.Context(), key, []json.RawMessage{line}); err != nil {
		t.Fatal(err)
	}
	return token
}

func TestContinue_TakesTheLastOfTheFolder(t *testing.T) {
	dir, state := mustResolve(t, t.TempDir()), t.TempDir()
	t.Chdir(dir)
	older := keepConversation(t, state, dir, "What is here?")
	last := keepConversation(t, state, dir, "And why\nis \x1b[2Jthat?")
	keepConversation(t, state, mustResolve(t, t.TempDir()), "Of another folder.")
	a := &scriptedAgent{events: []event.Payload{success}}
	o := runOptions{prompt: "Do it.", last: true}
	o.agents = func(base *claude.Options, in *isolation.Isolation) (*agent.Registry, error) {
		return agent.NewRegistry(a)
	}
	run := func(o runOptions) (string, error) {
		o.agent, o.state = "scripted", state
		var out strings.Builder
		err := runAgent(t.Context(), o, streams{out: &out, errs: &out})
		exitCode(t.Context(), err, &out)
		return out.String(), err
	}
	if out, err := run(o); err != nil || a.asks[0].Resume != last {
		t.Errorf("%v, resumed is %+v, want %s:\n%s", err, a.asks, last, out)
	}
	o.last, o.resume = false, resumeList
	out, err := run(o)
	list := regexp.MustCompile(`(?m)^  just now +([0-9a-f-]{36})  (.*)$`).FindAllStringSubmatch(out, -1)
	if err == nil || len(a.asks) != 1 || len(list) != 2 || list[0][1] != last || list[0][2] != `And why is \x1b[2Jthat?` || list[1][1] != older || list[1][2] != "What is here?" {
		t.Errorf("%v, want an error that lists both, the last one first:\n%s", err, out)
	}
	if !strings.Contains(out, "drover: --resume: the token is missing, and there is no terminal to choose one") || !strings.Contains(out, "next: drover run --resume "+last) {
		t.Errorf("the error is %q", out)
	}
}

func TestCompletion_OffersTokensOfTheFolder(t *testing.T) {
	dir, state := mustResolve(t, t.TempDir()), t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_STATE_HOME", state)
	token := keepConversation(t, filepath.Join(state, "drover"), dir, "What is here?")
	want := token + "\tjust now: What is here?\n"
	for _, typed := range [][]string{{"--resume", ""}, {"--resume=" + token[:3]}, {"--resume", token[:3]}} {
		if _, out, _ := command(t, append([]string{"__complete", "run"}, typed...)...); !strings.Contains(out, want) {
			t.Errorf("%q offers %q, want %q", typed, out, want)
		}
	}
	for _, typed := range [][]string{{""}, {"--resume", token, ""}, {"--resume=x"}} {
		if _, out, _ := command(t, append([]string{"__complete", "run"}, typed...)...); strings.Contains(out, want) {
			t.Errorf("%q offers %q", typed, out)
		}
	}
}

func TestAgo_Cases(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "just now", time.Second: "just now", time.Minute: "1 minute ago", 59 * time.Minute: "59 minutes ago",
		90 * time.Minute: "1 hour ago", 47 * time.Hour: "47 hours ago", 72 * time.Hour: "3 days ago",
	} {
		if got := runs.Ago(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// A run names its token in the summary. On a terminal a person chooses the conversation that goes on.
func TestTerminal_PersonChoosesTheConversation(t *testing.T) {
	model := claudetest.NewModel(t, script.Text("I shall remember."), script.Text("It was 7.").When(script.Match{Text: "The number is 7."}, script.Match{LastUserText: "Which number?"}))
	p := newProgram(t, model.URL())
	first := p.run("run", "The number is 7.")
	named := regexp.MustCompile(`(?m)^  \d+\.\d  continue +--resume ([0-9a-f-]{36})$`).FindStringSubmatch(first.out)
	if first.code != 0 || named == nil {
		t.Fatalf("exit code %d, no token in:\n%s", first.code, first.out)
	}
	if lines := strings.Split(first.out, "\n"); slices.Index(lines, named[0]) > slices.Index(lines, "I shall remember.") {
		t.Errorf("the answer is not the last:\n%s", first.out)
	}
	screen := p.startOnTerminal(t, "run", "--resume", "--quiet", "Which number?")
	text := strings.Join(screen.Wait(`Continue which one\? \[1-1, Enter for 1\]`), "\n")
	if !strings.Contains(text, named[1]+"  The number is 7.\n") {
		t.Errorf("the list lacks the conversation:\n%s", text)
	}
	screen.Keys("7", "Enter")
	screen.Wait(`(?s)Continue which one\?.*Continue which one\?`)
	screen.Keys("1", "Enter")
	if text := strings.Join(screen.Over(0), "\n"); !strings.Contains(text, "It was 7.") {
		t.Errorf("the conversation did not go on:\n%s", text)
	}
	p.checkNothingLeft()
}
