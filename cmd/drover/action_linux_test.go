// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// A runner runs the steps of action.yml as one of GitHub does: in order, with bash, in a home that is empty and an environment
// that is built from nothing.
type runner struct {
	t       *testing.T
	program *program
	temp    string
	github  map[string]string
	inputs  map[string]string

	log     bytes.Buffer // standard output and standard error of all steps
	ran     []string
	outputs map[string]string // by step.name
	failed  bool
}

// newRunner has a workspace of two checkouts, base and change, whose event is a pull request within the repository.
func newRunner(t *testing.T, url string) *runner {
	t.Helper()
	p := newProgram(t, url)
	for _, name := range []string{"ANTHROPIC_API_KEY", asCommand} {
		delete(p.env, name)
	}
	r := &runner{t: t, program: p, temp: filepath.Join(p.cli.Root, "runner"), inputs: map[string]string{}, outputs: map[string]string{}}
	if err := os.Mkdir(r.temp, 0o700); err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	goEnv, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(goEnv))
	maps.Copy(p.env, map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": p.cli.Work, "GITHUB_ACTION_PATH": source, "RUNNER_TEMP": r.temp,
		"GITHUB_HEAD_REF": "x;touch${IFS}pwned",
		"GOCACHE":         caches[0], "GOMODCACHE": caches[1], "GOPROXY": "off", "GOTOOLCHAIN": "local",
	})
	r.write("base/go.mod", "module shop\n")
	r.write("change/go.mod", "module shop\n\ngo 1.26.0\n")
	r.github = map[string]string{
		"event_name": "pull_request", "repository": "shop/shop",
		"event.pull_request.head.repo.full_name": "shop/shop", "event.pull_request.base.sha": r.commit("base"),
	}
	r.commit("change")
	return r
}

func (r *runner) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.program.cli.Work, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits all files of a checkout, and returns the commit.
func (r *runner) commit(name string) string {
	r.t.Helper()
	cmd := exec.Command("sh", "-ec", `git init -q; git add -A; git -c user.name=a -c user.email=a@example.com commit -qm change; git rev-parse HEAD`)
	cmd.Dir, cmd.Env = filepath.Join(r.program.cli.Work, name), []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

var expression = regexp.MustCompile(`\$\{\{ ([\w.-]+) \}\}`)

// value evaluates the expressions of a text, all of which are names.
func (r *runner) value(text string, defaults action) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		context, rest, _ := strings.Cut(name, ".")
		switch context {
		case "inputs":
			if v, given := r.inputs[rest]; given {
				return v
			}
			return defaults.Inputs[rest].Default
		case "github":
			return r.github[rest]
		case "steps":
			step, output, _ := strings.Cut(rest, ".outputs.")
			return r.outputs[step+"."+output]
		}
		r.t.Fatalf("the expression %s is not known", e)
		return ""
	})
}

var condition = regexp.MustCompile(`^([\w.-]+) != '(\w+)'$`)

// run runs the action, until a step fails.
func (r *runner) run() {
	r.t.Helper()
	a := readAction(r.t)
	for _, s := range a.Runs.Steps {
		if s.If != "" {
			parts := condition.FindStringSubmatch(s.If)
			if parts == nil {
				r.t.Fatalf("the condition %q is not known", s.If)
			}
			if r.value("${{ "+parts[1]+" }}", a) == parts[2] {
				continue
			}
		}
		r.ran = append(r.ran, s.Name)
		if !r.step(s, a) {
			r.failed = true
			break
		}
	}
	r.program.checkNothingLeft()
}

func (r *runner) step(s actionStep, a action) bool {
	r.t.Helper()
	file, output := filepath.Join(r.temp, "step.sh"), filepath.Join(r.temp, "output")
	if err := errors.Join(os.WriteFile(file, []byte(r.value(s.Run, a)), 0o600), os.WriteFile(output, nil, 0o600)); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", file)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.program.cli.Work, &r.log, &r.log
	env := maps.Clone(r.program.env)
	env["GITHUB_OUTPUT"] = output
	for name, value := range s.Env {
		env[name] = r.value(value, a)
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	err := cmd.Run()
	text, failed := os.ReadFile(output)
	if failed != nil {
		r.t.Fatal(failed)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		r.outputs[s.ID+"."+name] = value
	}
	return err == nil
}

// output is an output of the action.
func (r *runner) output(name string) string {
	a := readAction(r.t)
	return r.value(a.Outputs[name].Value, a)
}

// file reads a file of the folder that the action puts out.
func (r *runner) file(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.output("directory"), name))
	if err != nil {
		r.t.Errorf("%v; log:\n%s", err, r.log.String())
	}
	return string(text)
}

// checkNotPwned fails if a text of an attack has run anywhere, or if the key is in a file or in the log.
func (r *runner) checkNotPwned() {
	r.t.Helper()
	if _, err := os.Lstat("../../pwned"); err == nil {
		r.t.Error("an attack ran in the folder of the action")
	}
	err := filepath.WalkDir(r.program.cli.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if d.Name() == "pwned" {
			r.t.Errorf("an attack ran: %s", path)
		}
		if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(claudetest.FakeKey)) {
			r.t.Errorf("the key is in %s (%v)", path, err)
		}
		return nil
	})
	if err != nil || strings.Contains(r.log.String(), claudetest.FakeKey) {
		r.t.Errorf("the key is in the log, or: %v", err)
	}
}

// contents are the files of a checkout.
func (r *runner) contents(name string) map[string]string {
	r.t.Helper()
	found := map[string]string{}
	root := os.DirFS(filepath.Join(r.program.cli.Work, name))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// The action as docs/ci.md has it, on a clean home and without a key: annotations, SARIF and artefacts.
func TestAction_ReviewsACheckoutOnACleanHome(t *testing.T) {
	r := newRunner(t, unusedEndpoint(t))
	r.github = map[string]string{"event_name": "push", "repository": "shop/shop"}
	r.write("change/cart.py", "total = total * 1.1\n")
	r.inputs["path"], r.inputs["base"] = "change", "base"
	r.inputs["model-script"] = filepath.Join(r.program.env["GITHUB_ACTION_PATH"], "examples/ci/review.script.yaml")
	r.inputs["fail-on"] = "warning"
	r.run()
	if !r.failed || r.output("exit-code") != "0" || len(r.ran) != 4 {
		t.Errorf("it ended with %s, failed %t, after %q; log:\n%s", r.output("exit-code"), r.failed, r.ran, r.log.String())
	}
	want := []workflowCommand{{"warning", "file=cart.py,line=1,title=float-money", "Cents are lost: count them as integers."}}
	if diff := cmp.Diff(want, workflowCommands(r.log.String()), cmp.AllowUnexported(workflowCommand{})); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	sarif := checkSARIF(t, filepath.Join(r.output("directory"), "review.sarif"))
	if got := sarif.Runs[0].Results; len(got) != 1 || got[0].Locations[0].Physical.Artifact.URI != "cart.py" {
		t.Errorf("the results are %+v", got)
	}
	if events := r.file("events.jsonl"); len(readEvents(t, []byte(events))) < 3 || !strings.Contains(events, "+total = total * 1.1") {
		t.Errorf("the agent did not see the change: %s", events)
	}
	if !strings.Contains(r.file("review.json"), `"path": "cart.py"`) {
		t.Errorf("the review is %s", r.file("review.json"))
	}
}

// Everything that an author of a change, a user of the action or a model can write is data.
func TestAction_PlantedAttacksStayData(t *testing.T) {
	const evil = `$(touch pwned) "; touch pwned #`
	var findings []map[string]any
	for i, text := range attacks {
		findings = append(findings, map[string]any{"path": "repo/go.mod", "line": i + 1, "severity": "error", "rule": "x", "message": "m " + text})
	}
	findings = append(findings, map[string]any{"path": "../../../etc/passwd", "line": 1, "severity": "note", "rule": "x", "message": "out"})
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "ls -A repo base; cat repo/.git/config repo/.drover.yaml; echo fixed > repo/fixed.txt; echo x > base/x; mkdir repo/.git; touch repo/.git/x", "description": "look"}),
		script.Structured(map[string]any{"summary": "s", "findings": findings}),
	)
	r := newRunner(t, model.URL())

	// The trusted checkout has an agent file whose name is an attack; the change has its own, and a project file.
	r.write("base/"+evil+".yaml", `version: 1
key: review
args: {focus: {}, note: {}, file: {}}
sections: [{key: task, title: Task, text: "Look for ${focus}, ${note}, ${file}."}]
output: {file: review.schema.json}
policy: {mode: allow}
limits: {turns: 5}
`)
	r.write("base/review.schema.json", reviewSchema)
	r.github["event.pull_request.base.sha"] = r.commit("base")
	r.write("change/"+evil+".yaml", "version: 1\nisolation: {level: host}\nsections: [{key: x, title: X, text: X}]\n")
	r.write("change/.drover.yaml", "version: 1\nisolation: {level: host}\npolicy: {mode: allow}\n")
	r.write("change/$(touch pwned).txt", "x\n")
	r.commit("change")
	r.write("change/.git/config", "[core]\n\tbare = false\n\tfsmonitor = touch pwned\n[http]\n\textraheader = token-of-the-checkout\n")
	if err := os.Rename(filepath.Join(r.program.cli.Work, "change"), filepath.Join(r.program.cli.Work, evil)); err != nil {
		t.Fatal(err)
	}
	before := map[string]map[string]string{evil: r.contents(evil), "base": r.contents("base")}
	maps.Copy(r.inputs, map[string]string{
		"path": evil, "base": "base", "agent-file": "base/" + evil + ".yaml", "api-key": claudetest.FakeKey, "patch": "true",
		"args": "focus=" + evil + "\nnote=`touch pwned`\nfile=@/etc/hostname\n",
	})
	r.run()
	r.checkNotPwned()

	if r.output("exit-code") != "0" || !r.failed || len(r.ran) != 4 { // of the path that leads out
		t.Fatalf("exit code %s, failed %t after %q; log:\n%s", r.output("exit-code"), r.failed, r.ran, r.log.String())
	}
	if prompt := "Look for " + evil + ", `touch pwned`, @/etc/hostname."; !model.SawText(prompt) {
		t.Errorf("the model did not get %q", prompt)
	}
	if model.SawText("token-of-the-checkout") || !model.SawText("level: host") {
		t.Error("the model saw the token of the checkout, or did not see the project file as data")
	}
	commands := workflowCommands(r.log.String())
	if len(commands) != len(findings) {
		t.Errorf("there are %d commands, want one for each of %d findings: %+v", len(commands), len(findings), commands)
	}
	for i, c := range commands {
		if want := slices.Concat(slices.Repeat([]string{"error"}, len(attacks)), []string{"notice"}); c.name != want[i] || strings.Contains(c.properties, "passwd") {
			t.Errorf("a command is %+v", c)
		}
	}
	if sarif := checkSARIF(t, filepath.Join(r.output("directory"), "review.sarif")); len(sarif.Runs[0].Results) != len(attacks) {
		t.Errorf("there are %d results", len(sarif.Runs[0].Results))
	}
	if patch := r.file("changes.patch"); !strings.Contains(patch, "+++ b/fixed.txt\n@@ -0,0 +1 @@\n+fixed\n") || strings.Count(patch, "diff --git") != 1 {
		t.Errorf("the patch is %s", patch)
	}
	if diff := cmp.Diff(before, map[string]map[string]string{evil: r.contents(evil), "base": r.contents("base")}); diff != "" {
		t.Errorf("the checkouts were changed: %s", diff)
	}
}

// Each case ends before an agent is started.
func TestAction_RefusesWhatItCannotTrust(t *testing.T) {
	const evil = `1"; touch pwned #$(touch pwned) ##[add-mask]x` // the error of drover has it in the log
	fork := map[string]string{"event.pull_request.head.repo.full_name": "mallory/shop"}
	for name, c := range map[string]struct {
		github, inputs map[string]string
		prepare        func(r *runner)
		steps          int
		want           string // in a command
	}{
		"a fork's pull request":           {github: fork, steps: 1, want: "skipped: the pull request comes from a fork"},
		"a fork that is gone":             {github: map[string]string{"event.pull_request.head.repo.full_name": ""}, steps: 1, want: "skipped: "},
		"a fork's agent file":             {github: fork, inputs: map[string]string{"agent-file": "change/a.yaml"}, steps: 1, want: "skipped: "},
		"pull_request_target":             {github: map[string]string{"event_name": "pull_request_target"}, steps: 1, want: "refused: "},
		"pull_request_target of a fork":   {github: map[string]string{"event_name": "pull_request_target", "event.pull_request.head.repo.full_name": "mallory/shop"}, steps: 1, want: "refused: "},
		"workflow_run":                    {github: map[string]string{"event_name": "workflow_run"}, steps: 1, want: "refused: "},
		"issue_comment":                   {github: map[string]string{"event_name": "issue_comment"}, steps: 1, want: "refused: "},
		"an agent file of the change":     {inputs: map[string]string{"agent-file": "change/a.yaml"}, steps: 1, want: "agent-file: for a pull request"},
		"a link to one of the change":     {inputs: map[string]string{"agent-file": "base/../change/a.yaml"}, steps: 1, want: "agent-file: for a pull request"},
		"an agent file that was modified": {inputs: map[string]string{"agent-file": "base/go.mod"}, prepare: func(r *runner) { r.write("base/go.mod", "x") }, steps: 1, want: "agent-file: for a pull request"},
		"an agent file that is new":       {inputs: map[string]string{"agent-file": "base/new.yaml"}, prepare: func(r *runner) { r.write("base/new.yaml", "x") }, steps: 1, want: "agent-file: for a pull request"},
		"a repository of the change":      {inputs: map[string]string{"agent-file": "change/agents/a.yaml"}, prepare: plantRepository, steps: 1, want: "agent-file: for a pull request"},
		"no agent file":                   {inputs: map[string]string{"agent-file": evil}, steps: 1, want: "agent-file: there is no such file"},
		"no checkout":                     {inputs: map[string]string{"path": evil}, steps: 1, want: "path: there is no such folder"},
		"no base":                         {inputs: map[string]string{"base": evil}, steps: 1, want: "base: there is no such folder"},
		"no script":                       {inputs: map[string]string{"model-script": evil}, steps: 1, want: "model-script: there is no such file"},
		"a hostile budget":                {inputs: map[string]string{"max-usd": evil}, steps: 4, want: "drover run ended with exit code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, unusedEndpoint(t))
			r.write("change/a.yaml", "version: 1\n")
			r.commit("change")
			maps.Copy(r.github, c.github)
			maps.Copy(r.inputs, map[string]string{"path": "change", "base": "base", "api-key": claudetest.FakeKey})
			maps.Copy(r.inputs, c.inputs)
			if c.prepare != nil {
				c.prepare(r)
			}
			r.run()
			r.checkNotPwned()
			skipped := strings.HasPrefix(c.want, "skipped")
			commands := workflowCommands(r.log.String())
			if len(r.ran) != c.steps || r.failed == skipped || (r.output("skipped") == "true") != skipped ||
				len(commands) != 1 || !strings.Contains(commands[0].text, c.want) {
				t.Errorf("after %q: failed %t, outputs %v, commands %+v; log:\n%s", r.ran, r.failed, r.outputs, commands, r.log.String())
			}
			if left, _ := os.ReadDir(r.program.cli.Home); len(left) > 0 && c.steps == 1 {
				t.Errorf("the home has %v", left)
			}
		})
	}
}

// plantRepository makes a folder of the change a repository whose settings name a program. Git looks for one in the current folder
// before it looks above.
func plantRepository(r *runner) {
	for name, text := range map[string]string{
		"a.yaml": "version: 1\n", "HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": "",
		"config": "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch pwned; false\"\n",
	} {
		r.write("change/agents/"+name, text)
	}
}
