// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agentfile"
)

func TestCheck_NamesEveryProblem(t *testing.T) {
	want, err := filepath.Abs("testdata/check.golden")
	if err != nil {
		t.Fatal(err)
	}
	dir := mustResolve(t, t.TempDir())
	t.Chdir(dir)
	for name, text := range map[string]string{
		"good.yaml":   "version: 1\n" + aTask,
		"model.yaml":  "version: 1\nturns: [{text: Hello.}]\n",
		"bad.yaml":    "version: 1\nmodell: opus\nlimits: {turns: -1}\n" + aTask,
		"short.yaml":  "version: 1\nturns:\n  - text: Hello.\n    tool: Bash\n  - {}\n",
		"broken.yaml": "version: 1\nsections: [\n",
		"mount.yaml":  "version: 1\n" + aTask + "mounts: [{path: none}]\n",
	} {
		writeFile(t, name, []byte(text))
	}
	if code, out, errs := command(t, "check", "good.yaml", "model.yaml"); code != 0 || out != "good.yaml: ok, an agent file\nmodel.yaml: ok, a model script\n" || errs != "" {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	code, out, errs := command(t, "check", "good.yaml", "bad.yaml", "short.yaml", "broken.yaml", "none.yaml", "mount.yaml", ".")
	if code != exitUsage || out != "good.yaml: ok, an agent file\n" {
		t.Errorf("exit code %d, %q", code, out)
	}
	golden(t, want, strings.ReplaceAll(errs, dir, "DIR"))
	for _, file := range []string{"bad.yaml:2:1: ", "bad.yaml:3:", "short.yaml:", "broken.yaml:", "none.yaml: ", "mount.yaml:3:"} {
		if !strings.Contains("\n"+errs, "\n"+file) {
			t.Errorf("no line begins with %q:\n%s", file, errs)
		}
	}
}

// A key may have the name of a package, which errors for people leave out elsewhere. A list where an object is needed is a newcomer's
// guess: the advice has the keys.
func TestCheck_KeysAreNamedWithWhatFits(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"prompt: Review.\n":     "agent.yaml:3:1: prompt: there is no such key\n  next: choose among args, ",
		"isolation: cell\n":     "agent.yaml:3:1: isolation: must be an object, got a string\n  next: write an object with keys among ",
		"tools: [Read, Grep]\n": "agent.yaml:3:1: tools: must be an object, got an array\n  next: write an object with keys among allow, deny, unknown: ",
	} {
		writeFile(t, "agent.yaml", []byte("version: 1\n"+aTask+text))
		for _, args := range [][]string{{"check", "agent.yaml"}, {"run", "-f", "agent.yaml"}} {
			code, out, errs := command(t, args...)
			if got := strings.TrimPrefix(errs, "drover: -f: "); code != exitUsage || out != "" || !strings.HasPrefix(got, want) {
				t.Errorf("%v: exit code %d, it printed %q and\n%s\nwant\n%s", args, code, out, errs, want)
			}
		}
	}
}

// A file of others names keys, and may have been given its name by them: a problem stays one line.
func TestCheck_ProblemIsOneLine(t *testing.T) {
	t.Chdir(t.TempDir())
	const key = `"x\n::error::pwned": 1`
	for name, text := range map[string]string{
		"agent.yaml":           "version: 1\n" + aTask + key + "\n",
		"argument.yaml":        "version: 1\n" + aTask + `args: {"x\n::error::pwned": {}}` + "\n",
		"rule.yaml":            "version: 1\n" + aTask + `policy: {deny: ["Bash(x\n::error::pwned)"]}` + "\n",
		"script.yaml":          "turns: [{text: Hello., " + key + "}]\n",
		"one\n::error::.yaml":  "version: 1\n",
		"two\n::error::.yaml":  "turns: 1\n",
		agentfile.ProjectFile:  "version: 1\n" + key + "\n",
		"\n::error::none.yaml": "",
	} {
		if text != "" {
			writeFile(t, name, []byte(text))
		}
		code, out, errs := command(t, "check", name)
		if code != exitUsage || out != "" || strings.Contains("\n"+errs, "\n::") || errs == "" {
			t.Errorf("%q: exit code %d, %q", name, code, errs)
		}
	}
}

func TestCheck_ReadsTheProjectFile(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, agentfile.ProjectFile, []byte("version: 1\nmodel: opus\n"))
	if code, out, errs := command(t, "check", agentfile.ProjectFile); code != 0 || out != ".drover.yaml: ok, a project file\n" {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	writeFile(t, agentfile.ProjectFile, []byte("version: 1\npolicy: {allow: [Bash]}\n"))
	if code, _, errs := command(t, "check", agentfile.ProjectFile); code != exitUsage || !strings.Contains(errs, ".drover.yaml:2:10: policy.allow: a project file may not set policy.allow") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs := command(t, "check", "sub/"+agentfile.ProjectFile); code != exitUsage || !strings.Contains(errs, "no such file") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// A file that was cut off is not a script with nothing to say.
func TestCheck_ScriptHasATurn(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "cut.yaml", []byte("version: 1\n"))
	writeFile(t, "none.yaml", []byte("version: 1\nturns: []\n"))
	code, out, errs := command(t, "check", "cut.yaml", "none.yaml")
	if code != exitUsage || out != "" || !strings.Contains(errs, `cut.yaml:1:1: key "sections" is missing`) || !strings.Contains(errs, "none.yaml: the script has no turn") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}
