// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

// emitted are the payloads of a kind in the output of --json, in their own type.
func emitted[P event.Payload](t *testing.T, out string) []P {
	t.Helper()
	var found []P
	for _, e := range readEvents(t, []byte(out)) {
		p, is := e.Payload.(P)
		if raw, isRaw := e.Payload.(event.Extension); isRaw && raw.Kind == p.EventKind() {
			if err := json.Unmarshal(raw.Data, &p); err != nil {
				t.Fatal(err)
			}
			is = true
		}
		if is {
			found = append(found, p)
		}
	}
	return found
}

func bash(command string) script.Turn {
	return script.Call("Bash", script.Input{"command": command, "description": "try it"})
}

// An agent has its folder and nothing else, but for what flags add.
func TestRun_CellHasOnlyTheFolderAndFlags(t *testing.T) {
	outside := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(outside, name)
		if err := os.WriteFile(path, []byte("the word is "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hidden, shown, open := write("hidden"), write("shown"), filepath.Join(outside, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("the host answers"))
	}))
	defer host.Close()
	look := "cat " + hidden + "; cat " + shown + "; echo more >> " + shown + "; echo made > " + open + "/made; curl -s -m 5 " + host.URL + "; curl -s -m 5 http://evil.example/; echo done"
	model := claudetest.NewModel(t, bash(look), script.Text("Done.").Always())
	p := newProgram(t, model.URL())

	got := p.run("run", "--json", "--allow", "shellExecute", "Look around.")
	if result, _, _ := model.ToolResult("Bash"); got.code != 0 || strings.Contains(result, "the word is") || strings.Contains(result, "the host answers") || !strings.Contains(result, "done") {
		t.Errorf("exit code %d; the command saw more than its folder: %s\n%s", got.code, result, got.errors)
	}
	if protection := emitted[isolation.Protection](t, got.out); len(protection) != 1 || protection[0].Level != isolation.LevelCell {
		t.Errorf("the protection is reported as %+v, want that of a cell, once", protection)
	}
	denied := emitted[proxy.Connection](t, got.out)
	if len(denied) != 1 || denied[0].Host != "evil.example" || denied[0].Verdict != proxy.Denied {
		t.Errorf("connections %+v, want one to evil.example that was denied", denied)
	}
	checkFiles(t, open, "")

	model = claudetest.NewModel(t, bash(look), script.Text("Done.").Always())
	p.setEnv(model.Env())
	got = p.run("run", "--json", "--allow", "shellExecute", "--readable", shown, "--writable", open, "--allow-localhost", "Look around.")
	if result, _, _ := model.ToolResult("Bash"); !strings.Contains(result, "the word is shown") || !strings.Contains(result, "the host answers") || strings.Contains(result, "the word is hidden") {
		t.Errorf("the command saw %s\n%s", result, got.errors)
	}
	if text, _ := os.ReadFile(shown); string(text) != "the word is shown" {
		t.Errorf("what may only be read was changed: %q", text)
	}
	checkFiles(t, open, "made")
}

func TestRun_WorksAsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^(TestRun_CellCannotReadTheKey|TestRun_CellHasOnlyTheFolderAndFlags|TestRun_RecordingIsReplayedWithoutAModel|TestRun_ResumeContinuesTheConversation|TestSignals_NoProcessOutlivesDrover)$")
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^TestRun_ResumeRunsNoPlantedCall$/^pinned$")
}

// The lines for people have one about the isolation, and one for each denied connection.
func TestLines_ShowIsolationAndDeniedConnections(t *testing.T) {
	model := claudetest.NewModel(t, bash("curl -s -m 5 http://evil.example/; echo done"), script.Text("Done.").Always())
	p := newProgram(t, model.URL())
	got := p.run("run", "--allow", "shellExecute", "--allow-domain", "good.example", "Look around.")
	for _, words := range []string{"  isolation    cell: ", "  network      evil.example:80", "denied"} {
		if !strings.Contains(got.out, words) {
			t.Errorf("no line has %q:\n%s%s", words, got.out, got.errors)
		}
	}
}

// Without isolation the run works, and prints a warning.
func TestRun_WithoutIsolationWarns(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "word")
	writeFile(t, outside, []byte("the word"))
	model := claudetest.NewModel(t, bash("cat "+outside), script.Text("Done.").Always())
	p := newProgram(t, model.URL())
	got := p.run("run", "--quiet", "--isolation", "host", "--allow", "shellExecute", "Look around.")
	if result, _, _ := model.ToolResult("Bash"); got.code != 0 || got.out != "Done.\n" || !strings.Contains(result, "the word") {
		t.Errorf("got %+v, and the command saw %q", got, result)
	}
	if !strings.HasPrefix(got.errors, "drover: WARNING: --isolation host has NO ISOLATION") {
		t.Errorf("stderr is %q, want a warning", got.errors)
	}
}

// No process in the cell can read the key of the caller.
func TestRun_CellCannotReadTheKey(t *testing.T) {
	const key = "fake-key-that-must-not-be-seen"
	model := claudetest.NewModel(t, bash(`env; cat /proc/*/environ | tr '\0' '\n'; grep -rs fake-key "$HOME" . /tmp; echo done`), script.Text("Done.").Always())
	p := newProgram(t, model.URL()).setEnv(map[string]string{"ANTHROPIC_API_KEY": key, "MY_PASSWORD": key})
	got := p.run("run", "--json", "--permission-mode", "allow", "Look around.")
	result, _, _ := model.ToolResult("Bash")
	if got.code != 0 || strings.Contains(got.out+result, key) || !strings.Contains(result, "CLAUDE_CONFIG_DIR") || !strings.Contains(result, "done") {
		t.Errorf("exit code %d; the key is in what the command saw, or it saw nothing: %s", got.code, result)
	}
	if got := model.LastRequest().Header.Get("X-Api-Key"); got != key {
		t.Errorf("the model was asked with the key %q, want that of the caller", got)
	}
}

// Limits of the gateway end the run in the middle of a turn, with the exit code of a limit.
func TestRun_TokenLimitEndsTheTurn(t *testing.T) {
	turn := bash("echo hello").Metered(script.Usage{Input: 800, Output: 400})
	p := newProgram(t, claudetest.NewModel(t, turn.Always()).URL())
	got := p.run("run", "--json", "--allow", "shellExecute", "--max-tokens", "1000", "Go on.")
	if got.code != exitLimit || !strings.Contains(got.errors, "the budget is spent (--max-tokens 1000)\n  next: raise it") {
		t.Errorf("exit code %d, stderr %q; want 4 and the flag", got.code, got.errors)
	}
	if limits := emitted[gateway.Limit](t, got.out); len(limits) != 1 || limits[0].Limit != "MaxTotalTokens" {
		t.Errorf("limits %+v, want that of the tokens", limits)
	}
	if done := lastEvent(t, got.out).Payload.(event.Done); done.Status != event.DoneMaxBudget {
		t.Errorf("the run ended with %s", done.Status)
	}
}

// A run that was recorded can be replayed without a model and a key. Another prompt is refused, with what
// differs.
func TestRun_RecordingIsReplayedWithoutAModel(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "run.jsonl")
	const key = "fake-key-of-a-recording"
	model := claudetest.NewModel(t, bash(`echo "$HOME"; cat VERSION`), script.Text("Version 7."))
	p := newProgram(t, model.URL()).setEnv(map[string]string{"ANTHROPIC_API_KEY": key})
	p.cli.WriteFile(t, "VERSION", "7\n")
	first := p.run("run", "--quiet", "--allow", "shellExecute", "--record", recording, "Which version?")
	if first.code != 0 || first.out != "Version 7.\n" {
		t.Fatalf("got %+v, want the answer", first)
	}
	if text, err := os.ReadFile(recording); err != nil || strings.Contains(string(text), key) || !strings.Contains(string(text), "Version 7.") {
		t.Errorf("the recording has the key, or not the answer (%v)", err)
	}
	if again := p.run("run", "--record", recording, "Which version?"); again.code != exitUsage || !strings.Contains(again.errors, "--record: ") || !strings.Contains(again.errors, "next: remove the file") {
		t.Errorf("got %+v, want a recording to be left alone", again)
	}

	p = newProgram(t, unusedEndpoint(t)).setEnv(map[string]string{"ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""})
	p.cli.WriteFile(t, "VERSION", "7\n")
	if again := p.run("run", "--quiet", "--allow", "shellExecute", "--replay", recording, "Which version?"); again.code != 0 || again.out != first.out {
		t.Errorf("got %+v, want the recorded answer in another folder", again)
	}
	other := p.run("run", "--allow", "shellExecute", "--replay", recording, "Which colour?")
	for _, words := range []string{"request 1 (POST /v1/messages) is not in the recording", "Which version?", "Which colour?", "\n  next: "} {
		if other.code != exitError || !strings.Contains(other.errors, words) {
			t.Errorf("exit code %d, stderr %q; want 1 and %q", other.code, other.errors, words)
		}
	}
}

// The CLI's login is used by its explicit name alone. The file is planted.
func TestRun_StoredLoginNeedsItsFlag(t *testing.T) {
	model := claudetest.NewModel(t, script.Text("Hello.").Always())
	p := newProgram(t, model.URL()).setEnv(map[string]string{"ANTHROPIC_API_KEY": ""})
	login, err := json.Marshal(map[string]any{"claudeAiOauth": map[string]any{"accessToken": "fake-login-of-a-caller", "expiresAt": 4102444800000}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(p.cli.Config, ".credentials.json"), login)
	got := p.run("run", "Hello?")
	if got.code != exitError || got.out != "" || !strings.Contains(got.errors, "no authentication for the model") || !strings.Contains(got.errors, "use --stored-login to have the login of the host's claude") {
		t.Errorf("got %+v, want an error that names the flag", got)
	}
	if got := p.run("run", "--quiet", "--stored-login", "Hello?"); got.code != 0 || got.out != "Hello.\n" {
		t.Errorf("got %+v, want the answer", got)
	}
	if got := model.LastRequest().Header.Get("Authorization"); got != "Bearer fake-login-of-a-caller" {
		t.Errorf("the model was asked with %q, want the login", got)
	}
}

// What --resume continues is where only its owner can read it.
func TestConversations_OnlyTheOwnerCanRead(t *testing.T) {
	model := claudetest.NewModel(t, script.Text("Hello.").Always())
	p := newProgram(t, model.URL())
	state := filepath.Join(p.cli.Root, "state")
	p.setEnv(map[string]string{"XDG_STATE_HOME": state})
	if got := p.run("run", "--quiet", "Hello?"); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	kept, _ := filepath.Glob(filepath.Join(state, "drover", "conversations", "*", "*.jsonl"))
	if len(kept) != 1 {
		t.Fatalf("kept %v, want one conversation", kept)
	}
	for path := kept[0]; path != state; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v (%v), want it to be its owner's alone", path, info.Mode(), err)
		}
	}
}
