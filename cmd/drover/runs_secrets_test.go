// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// planted are secrets of each kind, by what is looked for.
var planted = map[string]string{
	"credential of the run":     "fake-credential-of-the-run-7361",
	"variable that is named":    "hunter22 of <winter>",
	"variable of a server":      "value-for-a-server-5521",
	"known form of a key":       "ghp_" + "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78",
	"known form of another key": "AKIAIOSFODNN7EXAMPLE",
}

var runToken = regexp.MustCompile(`drover-run-[A-Z2-7]{16,}`)

// checkSecrets fails the test for each secret in a text.
func checkSecrets(t *testing.T, where, text string) {
	t.Helper()
	for kind, value := range planted {
		for _, form := range []string{value, strings.ReplaceAll(value, "<", `\u003c`), strings.ReplaceAll(value, " ", "+")} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s has the %s: …%s…", where, kind, text[max(0, at-100):min(len(text), at+60)])
				break
			}
		}
	}
	if at := runToken.FindStringIndex(text); at != nil {
		t.Errorf("%s has the token of the run: …%s…", where, text[max(0, at[0]-100):at[1]])
	}
}

// Secrets of each kind are in the prompt, in a call, its output, a changed file, headers and answers of the model, and in an error.
// They are not on standard error, in no listing and no bundle, and in no file that is kept but the conversations, which need them.
func TestRuns_NoSecretLeaves(t *testing.T) {
	all := strings.Join(slices.Sorted(maps.Values(planted)), " and ")
	command := fmt.Sprintf("echo '%s' $ANTHROPIC_AUTH_TOKEN $ANTHROPIC_API_KEY | tee -a tools/notes.txt; echo '%s' >&2", all, all)
	call := script.Call("Bash", script.Input{"command": command, "description": all})
	call.Headers = map[string]string{"Request-Id": all, "X-Other": all}
	model := claudetest.NewModel(t, call, script.Text("I keep "+all+".").Chunked(5, 0), script.Fail(400, "refused: "+all).Always())
	p := newProgram(t, model.URL())
	state := t.TempDir()
	p.setEnv(map[string]string{
		"XDG_STATE_HOME": state, "ANTHROPIC_API_KEY": planted["credential of the run"], "ANTHROPIC_AUTH_TOKEN": "", "MY_WORD": planted["variable that is named"],
	})
	p.cli.WriteFile(t, "tools/greeter.sh", greeter)
	p.cli.WriteFile(t, "tools/notes.txt", "nothing\n")
	p.cli.WriteFile(t, "agent.yaml", "version: 1\n"+`args: {words: {}}
sections: [{key: task, title: Task, text: "Keep ${words}."}]
mounts: [{path: tools}]
servers:
  local: {command: [sh, tools/greeter.sh], env: {GREETING: `+planted["variable of a server"]+`}}
policy: {shellExecute: allow, fileWrite: allow}
`)
	flags := []string{"run", "-f", "agent.yaml", "--arg", "words=" + all, "--secret", "MY_WORD", "--keep-traffic", "--diff"}
	good := p.run(flags...)
	if good.code != 0 || !strings.Contains(good.out, planted["variable that is named"]) || !strings.Contains(good.errors, "I keep ") {
		t.Fatalf("exit code %d\n%s\n%s", good.code, good.out, good.errors)
	}
	checkSecrets(t, "standard error", good.errors)
	failed := p.run(flags...)
	if failed.code != exitError || !strings.Contains(failed.errors, "refused: ") {
		t.Fatalf("exit code %d\n%s\n%s", failed.code, failed.out, failed.errors)
	}
	checkSecrets(t, "standard error of a run that failed", failed.errors)

	t.Setenv("XDG_STATE_HOME", state)
	t.Chdir(t.TempDir())
	ids := strings.Fields(mustCommand(t, 0, "runs", "sql", "select id from runs order by began"))[1:]
	if len(ids) != 2 {
		t.Fatalf("the runs are %v", ids)
	}
	for _, id := range ids {
		for _, args := range [][]string{
			{"show", id},
			{"show", id, "--events"},
			{"show", id, "--transcript"},
			{"show", id, "--diff"},
			{"show", id, "--cost"},
			{"show", id, "--prompt"},
			{"show", id, "--session"},
			{"show", id, "--decisions"},
			{"compare", ids[0], id},
			{"export", id, "-o", id + ".zip"},
		} {
			checkSecrets(t, "runs "+strings.Join(args, " "), mustCommand(t, 0, append([]string{"runs"}, args...)...))
		}
		bundle, err := zip.OpenReader(id + ".zip")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range bundle.File {
			text, err := fs.ReadFile(bundle, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			checkSecrets(t, "the bundle's "+f.Name, string(text))
		}
		if err := bundle.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{}, {"--json", "--failed"}, {"sql", "--json", "select * from events"}, {"sql", "--json", "select * from calls join runs using (run)"}} {
		checkSecrets(t, "runs "+strings.Join(args, " "), mustCommand(t, 0, append([]string{"runs"}, args...)...))
	}
	seen := map[string]bool{}
	err := filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "/conversations/") {
			return err
		}
		seen[filepath.Base(path)] = true
		text, err := os.ReadFile(path)
		checkSecrets(t, path, string(text))
		return err
	})
	for _, name := range []string{"run.json", "events.jsonl", "transcript.jsonl", "workspace.diff", "traffic.jsonl", "end.json", "index.db", "journal"} {
		if err != nil || !seen[name] {
			t.Errorf("there is no %s, %v", name, err)
		}
	}
	traffic, err := filepath.Glob(filepath.Join(state, "drover/runs/*/"+ids[0]+"/traffic.jsonl"))
	if err != nil || len(traffic) != 1 {
		t.Fatalf("the traffic is %v, %v", traffic, err)
	}
	text, err := os.ReadFile(traffic[0])
	if err != nil || !strings.Contains(string(text), `"Request-Id":"[redacted] and`) {
		t.Errorf("the traffic has no header, %v", err)
	}
	answer := ""
	for _, piece := range regexp.MustCompile(`\\"text\\":\\"([^"\\]*)\\"`).FindAllStringSubmatch(string(text), -1) {
		answer += piece[1]
	}
	if !strings.Contains(answer, "I keep [redacted]") {
		t.Errorf("the answer in the traffic is %q", answer)
	}
	checkSecrets(t, "the answer in the traffic", answer)
}
