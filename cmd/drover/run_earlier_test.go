// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// earlierConversations were stored by the code of commit b8b86f1, by the test of this file with -record-earlier: one
// that was held in the folder /srv/shop, and one of a run that was started there and worked on a mount.
const earlierConversations = "testdata/conversations.b8b86f1"

var recordEarlier = flag.String("record-earlier", "", "write the conversations of this code to a new folder; /srv/shop and /srv/tmp must be empty folders")

// earlierRuns are flags of a run, and where it finds its file.
var earlierRuns = map[string]struct {
	flags []string
	file  string
}{
	"folder": {[]string{"--tools", "Read,Agent"}, "price.txt"},
	"mount":  {[]string{"--tools", "Read,Agent", "--mount", ".:shop"}, "shop/price.txt"},
}

// earlierKey is how the store named a folder: as the CLI does.
func earlierKey(dir string) string {
	return regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(dir, "-")
}

// recordConversations stores a conversation with a tool call and a subagent for each run.
func recordConversations(t *testing.T, to string) {
	t.Helper()
	for name, run := range earlierRuns {
		model := claudetest.NewModel(t,
			script.Text("It is a shop.").WhenFunc(func(r *script.Request) bool { return r.Header.Get("X-Claude-Code-Agent-Id") != "" }),
			script.Call("Read", script.Input{"file_path": run.file}),
			script.Call("Agent", script.Input{"description": "look", "prompt": "What is it?", "subagent_type": "general-purpose", "run_in_background": false}),
			script.Text("I shall remember."))
		p := newProgram(t, model.URL())
		p.cli.Work = "/srv/shop"
		p.cli.WriteFile(t, "price.txt", "The price is 9.\n")
		state := t.TempDir()
		p.setEnv(map[string]string{"XDG_STATE_HOME": state, "TMPDIR": "/srv/tmp"})
		if got := p.run(append(append([]string{"run", "--quiet"}, run.flags...), "The number is 7.")...); got.code != 0 {
			t.Fatalf("got %+v", got)
		}
		copyConversation(t, filepath.Join(to, name), filepath.Join(state, "drover", "conversations", earlierKey("/srv/shop")), withoutAttachments)
	}
}

// withoutAttachments leaves out the lines with the CLI's own texts and links the others with each other.
func withoutAttachments(text string) string {
	var kept []string
	parents := map[string]string{}
	for line := range strings.Lines(text) {
		var e struct{ Type, UUID, ParentUUID string }
		if json.Unmarshal([]byte(line), &e) != nil || e.Type != "attachment" {
			kept = append(kept, line)
			continue
		}
		parents[e.UUID] = cmp.Or(parents[e.ParentUUID], e.ParentUUID)
	}
	text = strings.Join(kept, "")
	for uuid, parent := range parents {
		text = strings.ReplaceAll(text, uuid, parent)
	}
	return text
}

// copyConversation copies the files of a folder of the store, with their texts changed, and returns the token.
func copyConversation(t *testing.T, to, from string, change func(string) string) (token string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		copied := filepath.Join(to, strings.TrimPrefix(path, from))
		if e.IsDir() {
			return os.MkdirAll(copied, 0o700)
		}
		if filepath.Dir(path) == from {
			token = strings.TrimSuffix(e.Name(), ".jsonl")
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(copied, []byte(change(string(text))), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A conversation that earlier code has stored goes on in its folder, and in its file.
func TestConversations_EarlierFormatResumes(t *testing.T) {
	if *recordEarlier != "" {
		recordConversations(t, *recordEarlier)
		return
	}
	for name, run := range earlierRuns {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Text("It was 7.").When(
				script.Match{Text: "The number is 7."}, script.Match{Text: "The price is 9."}, script.Match{Text: "It is a shop."},
				script.Match{Text: "I shall remember."}, script.Match{LastUserText: "Which number?"}))
			p := newProgram(t, model.URL())
			state := filepath.Join(p.cli.Root, "state")
			p.setEnv(map[string]string{"XDG_STATE_HOME": state})
			project := filepath.Join(state, "drover", "conversations", earlierKey(p.cli.Work))
			token := copyConversation(t, project, filepath.Join(earlierConversations, name), func(text string) string {
				return strings.ReplaceAll(text, "/srv/shop", p.cli.Work)
			})
			before := readFile(t, filepath.Join(project, token+".jsonl"))
			if got := p.run(append(append([]string{"run", "--quiet", "--resume", token}, run.flags...), "Which number?")...); got.code != 0 || got.out != "It was 7.\n" {
				t.Errorf("got %+v, want an answer that knows of the earlier turns", got)
			}
			added, ok := strings.CutPrefix(readFile(t, filepath.Join(project, token+".jsonl")), before)
			if !ok || !strings.Contains(added, "Which number?") {
				t.Errorf("the file goes on with %q, want the turn", added)
			}
			if projects, _ := filepath.Glob(filepath.Join(filepath.Dir(project), "*")); len(projects) != 1 {
				t.Errorf("the store has %v, want the old key alone", projects)
			}
		})
	}
}
