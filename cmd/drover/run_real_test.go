// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
)

// The ways a run ends, with the real CLI.
func TestRun_EndsOfTheRealCLI(t *testing.T) {
	write := func(dir string) script.Turn {
		return script.Call("Write", script.Input{"file_path": filepath.Join(dir, "new.txt"), "content": "new"})
	}
	bash := script.Call("Bash", script.Input{"command": "echo hello > made.txt", "description": "make a file"})
	cases := map[string]struct {
		turns  func(dir string) []script.Turn
		args   []string
		code   int
		stdout string // some words of it
		stderr string // the same; empty means nothing at all
		made   string // a file that is there afterwards; empty means none
	}{
		"success": {
			func(string) []script.Turn { return []script.Turn{script.Text("It is a shop.")} },
			nil, 0, "It is a shop.", "", "",
		},
		"denied in a pipe, where no person answers": {
			func(dir string) []script.Turn { return []script.Turn{write(dir), script.Text("I could not.")} },
			nil, exitDenied, "I could not.", "1 tool call was denied: Write (1)\n  next: add --allow fileWrite\n", "",
		},
		"allowed": {
			func(dir string) []script.Turn { return []script.Turn{write(dir), script.Text("Done.")} },
			[]string{"--allow", "fileWrite"},
			0, "Done.", "", "new.txt",
		},
		"all allowed, as root too": {
			func(string) []script.Turn { return []script.Turn{bash, script.Text("Done.")} },
			[]string{"--allow", "fileWrite,shellExecute", "--allow", "networkAccess"},
			0, "Done.", "", "made.txt",
		},
		"denied by a flag": {
			func(string) []script.Turn { return []script.Turn{bash, script.Text("I could not.")} },
			[]string{"--deny", "shellExecute"},
			exitDenied, "I could not.", "next: use --allow shellExecute instead of --deny shellExecute\n", "",
		},
		"read-only": {
			func(string) []script.Turn { return []script.Turn{bash, script.Text("I could not.")} },
			[]string{"--read-only"},
			exitDenied, "I could not.", "leave out --read-only to have Bash", "",
		},
		"a tool that is not listed": {
			func(string) []script.Turn { return []script.Turn{bash, script.Text("I could not.")} },
			[]string{"--tools", "Read", "--allow", "shellExecute"},
			0, "I could not.", "", "",
		},
		"the limit of turns": {
			func(string) []script.Turn { return []script.Turn{bash} },
			[]string{"--max-turns", "1", "--allow", "shellExecute"},
			exitLimit, "", "the limit of model calls was reached (--max-turns 1)\n  next: raise it, or go on with drover run --resume ", "made.txt",
		},
		"the budget": {
			func(string) []script.Turn {
				return []script.Turn{script.Call("Read", script.Input{"file_path": "/dev/null"}).Metered(script.Usage{Input: 100_000, Output: 100_000}), script.Text("Done.")}
			},
			[]string{"--max-usd", "0.01"},
			exitLimit, "", "the budget is spent (--max-usd 0.01)\n", "",
		},
		"the time": {
			func(string) []script.Turn { return []script.Turn{script.Hang()} },
			[]string{"--timeout", "2s"},
			exitLimit, "", "the time is over (--timeout 2s)\n", "",
		},
		"a refusal of the model's service": {
			func(string) []script.Turn { return []script.Turn{script.Fail(403, "your plan is over").Always()} },
			nil, exitError, "", "your plan is over", "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t, "")
			p.setEnv(claudetest.NewModel(t, c.turns(p.cli.Work)...).Env())
			got := p.run(append(append([]string{"run"}, c.args...), "Do it.")...)
			if got.code != c.code || !strings.Contains(got.out, c.stdout) {
				t.Errorf("exit code %d, want %d; stdout:\n%s\nstderr:\n%s", got.code, c.code, got.out, got.errors)
			}
			if (c.stderr == "") != (got.errors == "") || !strings.Contains(got.errors, c.stderr) {
				t.Errorf("stderr %q, want %q in it", got.errors, c.stderr)
			}
			checkFiles(t, p.cli.Work, c.made)
		})
	}
}

// checkFiles fails the test unless the folder holds just this file, or nothing.
func checkFiles(t *testing.T, dir, want string) {
	t.Helper()
	var names []string
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		names = append(names, f.Name())
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

// The answer fits the schema, also one that the CLI itself could not take.
func TestRun_StructuredAnswerFitsTheSchema(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		answer any // as the model gives it
		want   string
	}{
		"object": {`{"type": "object", "properties": {"files": {"type": "integer"}}, "required": ["files"]}`, script.Input{"files": 3}, `{"files":3}`},
		"array":  {`{"type": "array", "items": {"type": "integer"}}`, script.Input{"value": []int{1, 2}}, `[1,2]`},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Structured(c.answer), script.Text("Done.").Always())
			p := newProgram(t, model.URL())
			path := p.cli.WriteFile(t, "answer.json", c.schema)
			got := p.run("run", "--quiet", "--tools", "Read", "--schema", path, "How many files?")
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(strings.TrimSpace(got.out))); err != nil || compact.String() != c.want || got.code != 0 || got.errors != "" {
				t.Errorf("got %+v (%v), want %s and nothing else", got, err, c.want)
			}
		})
	}
}

func TestRun_ReadsThePromptFromStandardInput(t *testing.T) {
	model := claudetest.NewModel(t, script.Text("A poem.").When(script.Match{LastUserText: "Roses are red"}))
	p := newProgram(t, model.URL())
	p.stdin = "What is this?\n\nRoses are red\n"
	if got := p.run("run", "--quiet", "-"); got.code != 0 || got.out != "A poem.\n" || got.errors != "" {
		t.Errorf("got %+v, want the answer", got)
	}
}

// Both the prompt and standard input reach the model, and the CLI expands no mention of a file in the text of others.
func TestRun_StandardInputReachesTheModelBesideThePrompt(t *testing.T) {
	model := claudetest.NewModel(t, script.Text("A poem."))
	p := newProgram(t, model.URL())
	p.cli.WriteFile(t, "private.txt", "the colour is xanthic")
	p.stdin = "Roses are red\n@private.txt\n"
	if got := p.run("run", "--quiet", "What is this?"); got.code != 0 || got.out != "A poem.\n" || got.errors != "" {
		t.Errorf("got %+v, want the answer", got)
	}
	asked := model.LastRequest()
	if !asked.SawText("What is this?") || !asked.SawText("<stdin>\nRoses are red\n@private.txt\n</stdin>") {
		t.Errorf("the model read %s", asked.Body)
	}
	if asked.SawText("xanthic") {
		t.Error("the CLI put a file into the prompt that standard input mentions")
	}
}

func TestRun_ResumeContinuesTheConversation(t *testing.T) {
	beside, refused := make(chan func() *running, 1), make(chan ended, 1) // a run while another one goes on with the same token
	model := claudetest.NewModel(t,
		script.Text("I shall remember."),
		script.Func(func(*script.Request) script.Turn {
			other := (<-beside)()
			_, _ = io.Copy(&other.seen, other.stdout)
			_ = other.cmd.Wait()
			refused <- ended{code: other.cmd.ProcessState.ExitCode(), errors: other.stderr.String()}
			return script.Text("It was 7.")
		}).When(script.Match{Text: "The number is 7."}, script.Match{LastUserText: "Which number?"}))
	p := newProgram(t, model.URL())
	first := p.run("run", "--json", "The number is 7.")
	done := lastEvent(t, first.out).Payload.(event.Done)
	if done.ResumeToken == "" {
		t.Fatalf("no token in %s", first.out)
	}
	beside <- func() *running { return p.start("run", "--quiet", "--resume", done.ResumeToken, "Me too.") }
	if got := p.run("run", "--quiet", "--resume", done.ResumeToken, "Which number?"); got.code != 0 || got.out != "It was 7.\n" {
		t.Errorf("got %+v, want an answer that knows of the first run", got)
	}
	if want := "drover: --resume: the conversation is in use\n  next: wait until the other run has ended\n"; len(refused) != 1 {
		t.Error("there was no run beside it")
	} else if got := <-refused; got.code != exitError || got.errors != want {
		t.Errorf("the run beside it got %+v, want %q", got, want)
	}
	got := p.run("run", "--resume", "00000000-0000-4000-8000-000000000000", "Which number?")
	if got.code != exitUsage || !strings.Contains(got.errors, "there is no such conversation in this folder\n  next: give --resume the resumeToken") {
		t.Errorf("got %+v, want an error about an unknown token", got)
	}
}

func readEvents(t *testing.T, data []byte) []event.Event {
	t.Helper()
	var events []event.Event
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

func lastEvent(t *testing.T, out string) event.Event {
	t.Helper()
	all := readEvents(t, []byte(out))
	if len(all) == 0 {
		t.Fatal("no events")
	}
	return all[len(all)-1]
}

// Every line of --json is an event, and fits the published schema.
func TestRun_JSONLinesFitTheSchema(t *testing.T) {
	model := claudetest.NewModel(t,
		script.Reply(script.ThinkingBlock{Thinking: "Hm."}, script.TextBlock{Text: "Let me see <what> is there.\nNow."},
			script.ToolCall{Name: "Bash", Input: script.Input{"command": "echo '<&>'", "description": "say it"}},
			script.ToolCall{Name: "Write", Input: script.Input{"file_path": "/nowhere/x", "content": ""}}),
		script.Fail(529, "overloaded").RetryAfter(0),
		script.Structured(map[string]any{"n": 1}), script.Text("Done.").Always())
	p := newProgram(t, model.URL())
	path := p.cli.WriteFile(t, "answer.json", `{"type": "object", "properties": {"n": {"type": "integer"}}}`)
	got := p.run("run", "--json", "--allow", "shellExecute", "--schema", path, "Do it.")
	if got.code != exitDenied {
		t.Errorf("exit code %d, want 3; stderr: %s", got.code, got.errors)
	}
	validate := eventValidator(t)
	kinds := map[event.Kind]int{}
	for line := range strings.Lines(got.out) {
		validate(line)
	}
	for i, e := range readEvents(t, []byte(got.out)) {
		kinds[e.Kind]++
		if e.Seq != int64(i+1) || e.RunID == "" || e.Agent != "claude-code" {
			t.Errorf("event %d is numbered %d in run %q of %q", i+1, e.Seq, e.RunID, e.Agent)
		}
	}
	for _, kind := range []event.Kind{
		event.KindInit, event.KindText, event.KindThinking, event.KindToolUse, event.KindToolResult, event.KindPermissionRequest, event.KindDecision, event.KindDone,
	} {
		if kinds[kind] == 0 {
			t.Errorf("no %s among %v", kind, kinds)
		}
	}
}

// eventValidator holds lines against the schema that package event publishes.
func eventValidator(t *testing.T) func(line string) {
	t.Helper()
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(event.Schema(), s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(line string) error {
		var value any
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			return err
		}
		return resolved.Validate(value)
	}
	if check(`{"type":"done","payload":{}}`) == nil || check(`{"type":7}`) == nil {
		t.Fatal("the schema accepts everything")
	}
	return func(line string) {
		t.Helper()
		if err := check(line); err != nil {
			t.Errorf("%v in %s", err, line)
		}
	}
}

// The variables of the caller choose the endpoint and the credential, as with the CLI itself.
func TestRun_EnvironmentChoosesEndpointAndCredential(t *testing.T) {
	for name, c := range map[string]struct {
		vars         map[string]string
		header, want string
	}{
		"key":   {map[string]string{"ANTHROPIC_API_KEY": "fake-key-of-a-caller"}, "X-Api-Key", "fake-key-of-a-caller"},
		"token": {map[string]string{"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "fake-token-of-a-caller"}, "Authorization", "Bearer fake-token-of-a-caller"},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Text("I am the endpoint."))
			p := newProgram(t, model.URL()).setEnv(c.vars)
			if got := p.run("run", "--quiet", "Who are you?"); got.code != 0 || got.out != "I am the endpoint.\n" {
				t.Errorf("got %+v, want the answer of the endpoint", got)
			}
			if got := model.LastRequest().Header.Get(c.header); got != c.want {
				t.Errorf("%s is %q, want %q", c.header, got, c.want)
			}
		})
	}
}

// Files of the folder or of the user do not count.
func TestRun_IgnoresSettingsOfFolderAndUser(t *testing.T) {
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "touch made.txt", "description": "make a file"}), script.Text("I could not."))
	p := newProgram(t, model.URL())
	p.cli.WriteFile(t, "CLAUDE.md", "The word of the project is xylophone.")
	p.cli.WriteFile(t, ".claude/settings.json", `{"permissions": {"allow": ["Bash"]}, "env": {"ANTHROPIC_BASE_URL": "`+unusedEndpoint(t)+`"}}`)
	p.cli.WriteFile(t, ".mcp.json", `{"mcpServers": {"xylophone": {"command": "touch", "args": ["made.txt"]}}}`)
	for name, text := range map[string]string{"CLAUDE.md": "The word of the user is xylophone.", "settings.json": `{"permissions": {"allow": ["Bash"]}}`} {
		if err := os.WriteFile(filepath.Join(p.cli.Config, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.run("run", "Do it."); got.code != exitDenied {
		t.Errorf("exit code %d, want 3; stderr: %s", got.code, got.errors)
	}
	if model.SawText("xylophone") {
		t.Error("the model received files that should not count")
	}
	if _, err := os.Stat(filepath.Join(p.cli.Work, "made.txt")); err == nil {
		t.Error("something ran that was not allowed")
	}
}
