// SPDX-License-Identifier: Apache-2.0

package newcomer

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

const root = "../.."

// maxAsk is how many lines the program of one question has at most, as gofmt writes it.
const maxAsk = 20

var program = regexp.MustCompile("(?ms)^<!-- from (\\S+) -->\n```go\n(package .*?)^```$")

// programs are the whole programs of a page, by the folder of their file.
func programs(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range program.FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// A newcomer has a module of their own, into which the programs of the pages are pasted.
type newcomer struct {
	dir string
	cli *claudetest.RealCLI
}

// Every program of README and of the recipes builds in a new module, and does what the page says.
func TestNewcomer_ProgramsOfThePagesRun(t *testing.T) {
	n := newcomer{t.TempDir(), claudetest.CLI(t)}
	n.module(t)
	n.paste(t)
	bin := filepath.Join(n.dir, "bin") + string(filepath.Separator)
	command(t, n.dir, "go", "mod", "tidy")
	command(t, n.dir, "go", "build", "-trimpath", "-o", bin, "./...")
	command(t, root, "go", "build", "-trimpath", "-o", bin, "./cmd/drover")
	text := func(text string) []script.Turn { return []script.Turn{script.Text(text)} }

	n.run(t, want{out: "It sells carts.\n", model: text("It sells carts."), sees: "What does this project do?"}, "ask")
	n.run(t, want{out: "Fine.\n- Carts, by team cart\n$", sees: "team cart", model: []script.Turn{
		script.Call("mcp__drover__owner", script.Input{"name": "cart"}),
		script.Structured(script.Input{"summary": "Fine.", "issues": []string{"Carts, by team cart"}}),
	}}, "review")
	n.parallel(t)
	n.chat(t)
	n.run(t, want{out: "It sells carts.\n", model: text("It sells carts.")}, "traces")
	if traces, err := os.ReadFile(filepath.Join(n.cli.Work, "traces.json")); err != nil || !strings.Contains(string(traces), `"TraceID"`) {
		t.Errorf("the traces are %.200s, %v", traces, err)
	}
	n.serve(t)
	n.test(t)
	n.agentFile(t)
}

// module makes the module by the commands of README.
func (n newcomer) module(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^go mod (?:init|edit) .*$`).FindAllString(string(page), -1)
	if len(commands) != 2 {
		t.Fatalf("README has the commands %q, want two that make a module", commands)
	}
	for _, line := range commands {
		command(t, n.dir, strings.Fields(strings.ReplaceAll(line, "=../drover", "="+checkout))...)
	}
}

func (n newcomer) paste(t *testing.T) {
	t.Helper()
	readme, recipes := programs(t, "README.md"), programs(t, "docs/recipes.md")
	if len(readme) != 1 || len(recipes) != 6 {
		t.Fatalf("found %d programs in README and %d in the recipes", len(readme), len(recipes))
	}
	for from, code := range readme {
		if lines := strings.Count(code, "\n"); lines > maxAsk {
			t.Errorf("the program of README has %d lines, want %d at most", lines, maxAsk)
		}
		recipes[from] = code
	}
	for from, code := range recipes {
		file := filepath.Join(n.dir, path.Base(path.Dir(from)), path.Base(from))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// goEnv is the environment of the go tool. With -trimpath and without cgo it compiles packages as for a release (tools/release) and
// for the action: what they share, SQLite above all, is compiled once.
func goEnv() []string { return append(os.Environ(), "CGO_ENABLED=0") }

// command runs a command of the go tool in a folder, with the settings that this machine has for it.
func command(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, goEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

type want struct {
	input, out string // out is how the output begins
	code       int
	model      []script.Turn
	sees       string // a text that the model reads
}

// run runs a program that was built, in an environment that has the CLI, a key and the address of a scripted model alone.
func (n newcomer) run(t *testing.T, w want, args ...string) string {
	t.Helper()
	model := claudetest.NewModel(t, w.model...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(n.dir, "bin", args[0]), args[1:]...)
	cmd.Dir, cmd.Stdin = n.cli.Work, strings.NewReader(w.input)
	cmd.Env = n.env(model)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != w.code || !strings.HasPrefix(string(out), w.out) {
		t.Errorf("%q: exit code %d, want %d; it printed\n%s\nwant it to begin with\n%s\nerrors: %s", args, got, w.code, out, w.out, errs.String())
	}
	if w.sees != "" && !model.SawText(w.sees) {
		t.Errorf("%q: the model has not read %q", args, w.sees)
	}
	if unused := model.Unused(); len(unused) > 0 {
		t.Errorf("%q did not ask the model for %v", args, unused)
	}
	return string(out)
}

func (n newcomer) env(model *claudetest.Model) []string {
	env := []string{"DROVER_CLAUDE=" + n.cli.Path, "XDG_STATE_HOME=" + filepath.Join(n.cli.Home, "state")}
	for name, value := range n.cli.Env(model.BaseURL()) {
		env = append(env, name+"="+value)
	}
	return env
}

// parallel has three agents; the one of the second folder does not do its work, so that its folder stays as it was.
func (n newcomer) parallel(t *testing.T) {
	t.Helper()
	args := []string{"parallel"}
	for _, name := range []string{"a", "b", "c"} {
		n.cli.WriteFile(t, name+"/name.txt", "project "+name)
		args = append(args, filepath.Join(n.cli.Work, name))
	}
	lazy := script.SawText("project b")
	out := n.run(t, want{model: []script.Turn{
		script.Call("Bash", script.Input{"command": "cat project/name.txt"}).When(script.Not(script.HasToolResult("Bash"))).Times(3),
		script.Call("Bash", script.Input{"command": "echo MIT > project/LICENSE"}).When(script.Not(lazy), script.Not(script.SawText("project/LICENSE"))).Always(),
		script.Text("Done.").Always(),
	}}, args...)
	if strings.Count(out, ": 1 written\n") != 2 || strings.Count(out, " written\n") != 2 {
		t.Errorf("parallel printed %s", out)
	}
	for name, written := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, err := os.Stat(filepath.Join(n.cli.Work, name, "LICENSE")); (err == nil) != written {
			t.Errorf("the LICENSE of %s: %v, want it written: %v", name, err, written)
		}
	}
}

func (n newcomer) chat(t *testing.T) {
	t.Helper()
	touch := func(name string) script.Turn { return script.Call("Bash", script.Input{"command": "touch " + name}) }
	n.run(t, want{
		input: "make two files\ny\nn\n\n",
		out:   "Hello.\nBash {\"command\":\"touch one\"}? [y/n] Bash {\"command\":\"touch two\"}? [y/n] One of two.\n",
		model: []script.Turn{script.Text("Hello."), touch("one"), touch("two"), script.Text("One of two.")},
	}, "chat")
	for name, made := range map[string]bool{"one": true, "two": false} {
		if _, err := os.Stat(filepath.Join(n.cli.Work, name)); (err == nil) != made {
			t.Errorf("the file %s: %v, want it made: %v", name, err, made)
		}
	}
}

// serve speaks MCP with the server as a client does, which keeps its input open until the answers are there.
func (n newcomer) serve(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(n.dir, "bin", "mcp"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	for _, ask := range []struct{ line, answer string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, `"name":"town"`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"weather","arguments":{"city":"Ulm"}}}`, "It rains in Ulm."},
	} {
		if _, err := io.WriteString(in, ask.line+"\n"); err != nil {
			t.Fatal(err)
		}
		if ask.answer != "" && (!answers.Scan() || !strings.Contains(answers.Text(), ask.answer)) {
			t.Errorf("the answer is %s, want %s in it", answers.Text(), ask.answer)
		}
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func (n newcomer) test(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-v", "./kit")
	cmd.Dir, cmd.Env = n.dir, append(goEnv(), "DROVER_CLAUDE="+n.cli.Path)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestAgent_CannotWrite") {
		t.Errorf("go test: %v\n%s", err, out)
	}
}

// agentFile runs the agent file of the page by the command of the page, and finds the answer in its events.
func (n newcomer) agentFile(t *testing.T) {
	t.Helper()
	if err := os.CopyFS(n.cli.Work, os.DirFS(filepath.Join(root, "examples/agents"))); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/recipes.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^drover (run -f .*) > events.jsonl$`).FindStringSubmatch(string(page))
	if line == nil {
		t.Fatal("the page runs no agent file")
	}
	answer := script.Input{"summary": "It greets.", "issues": []any{}}
	out := n.run(t, want{out: "{", model: []script.Turn{script.Structured(answer)}}, strings.Fields("drover "+line[1])...)
	if !strings.Contains(out, `"output":{"issues":[],"summary":"It greets."}`) && !strings.Contains(out, `"output":{"summary":"It greets.","issues":[]}`) {
		t.Errorf("the events have no answer:\n%s", out)
	}
	limited := strings.Fields("drover " + line[1] + " --max-tokens 1")
	n.run(t, want{out: "{", code: 4, model: []script.Turn{script.Structured(answer)}}, limited...)
}
