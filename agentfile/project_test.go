// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
)

const wholeProject = `# yaml-language-server: $schema=project.schema.json
version: 1
model: opus
effort: low
limits: {time: 5m, turns: 10, usd: 0.5, tokens: 10000}
tools: {only: [Read, "Bash(git log *)", mcp__lint], deny: [WebFetch, Frobnicate], unknown: [Frobnicate]}
policy: {deny: ["Read(**/.env)"], readOnly: true}
`

func TestProject_EveryKey(t *testing.T) {
	got, err := parseProject([]byte(wholeProject), "x/.drover.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &Project{
		Version: 1, Model: "opus", Effort: "low", Limits: Limits{Time: Duration(5 * time.Minute), Turns: 10, USD: 0.5, Tokens: 10_000},
		Tools:  ProjectTools{Only: []string{"Read", "Bash(git log *)", "mcp__lint"}, Deny: []string{"WebFetch", "Frobnicate"}, Unknown: []string{"Frobnicate"}},
		Policy: ProjectPolicy{Deny: []string{"Read(**/.env)"}, ReadOnly: true},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Project{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const set = "model opus; effort low; at most 5m0s; at most 10 turns; at most $0.5; at most 10000 tokens; only the tools Read, Bash(git log *), mcp__lint; not the tools WebFetch, Frobnicate; no Read(**/.env); no changes"
	if got.String() != set || got.Path() != "x/.drover.yaml" {
		t.Errorf("%s sets %s, want %s", got.Path(), got, set)
	}
	if _, err := schema.Parse(ProjectSchema()); err != nil {
		t.Errorf("its schema: %v", err)
	}
	if text := (&Project{Model: "a\x1b[2Jb"}).String(); strings.Contains(text, "\x1b") {
		t.Errorf("control characters are printed: %q", text)
	}
}

// The author of a project file is the author of its folder. All that could give something is refused, by key and line.
func TestProject_CannotGiveAnything(t *testing.T) {
	for name, c := range map[string]struct{ file, says string }{
		"permissions":            {"policy: {allow: [Bash]}", "2:10: policy.allow: a project file may not set policy.allow, which could allow calls\n  next: leave it out: the file is not trusted; a flag or an agent file can set it"},
		"questions":              {"policy: {ask: [Bash]}", "policy.ask: a project file may not set policy.ask, which could allow calls"},
		"a mode":                 {"policy: {mode: allow}", "policy.mode: a project file may not set policy.mode, which could allow calls"},
		"a capability":           {"policy: {shellExecute: allow}", "policy.shellExecute: a project file may not set policy.shellExecute, which could allow calls"},
		"permissions outside":    {"allow: [Bash]", "2:1: allow: a project file may not set allow, which could allow calls"},
		"a list of tools":        {"tools: {allow: [Bash]}", "2:9: tools.allow: a project file may not set tools.allow, which could allow calls; tools.only keeps"},
		"mounts":                 {"mounts: [{path: /}]", "2:1: mounts: a project file may not set mounts, which would choose files"},
		"writable paths":         {"writable: [/]", "writable: a project file may not set writable, which would choose files"},
		"readable paths":         {"readable: [/]", "readable: a project file may not set readable, which would choose files"},
		"a recording":            {"record: /x", "record: a project file may not set record, which would choose files"},
		"skills":                 {"skills: [/x]", "skills: a project file may not set skills, which would choose files"},
		"isolation":              {"isolation: {level: host}", "2:1: isolation: a project file may not set isolation, which would change the isolation"},
		"hosts":                  {"hosts: [example.com]", "hosts: a project file may not set hosts, which would change the isolation"},
		"domains":                {"domains: [example.com]", "domains: a project file may not set domains, which would change the isolation"},
		"a network":              {"network: {localhost: true}", "network: a project file may not set network, which would change the isolation"},
		"servers":                {"servers: {x: {command: [sh]}}", "2:1: servers: a project file may not set servers, which could start a program"},
		"a command":              {"completion: {command: [sh]}", "completion: a project file may not set completion, which could start a program"},
		"hooks":                  {"hooks: {x: sh}", "hooks: a project file may not set hooks, which could start a program"},
		"an endpoint":            {"endpoint: http://x", "2:1: endpoint: a project file may not set endpoint, which would choose an endpoint"},
		"credentials":            {"credentials: x", "credentials: a project file may not set credentials, which would choose an endpoint"},
		"an environment":         {"env: {ANTHROPIC_BASE_URL: x}", "env: a project file may not set env, which would choose an endpoint"},
		"a prompt":               {"sections: [{key: a, title: A}]", "sections: a project file may not set sections, which would speak to the model"},
		"a system prompt":        {"system: {replace: x}", "system: a project file may not set system, which would speak to the model"},
		"feedback":               {"feedback: [{text: x, everyCalls: 1}]", "feedback: a project file may not set feedback, which would speak to the model"},
		"an unknown key":         {"colour: red", "2:1: colour: there is no such key\n  next: choose among effort, limits, model, policy, tools, version"},
		"a misspelled key":       {"limit: {usd: 1}", "limit: there is no such key\n  next: write limits"},
		"no limit":               {"limits: {usd: 0}", "2:10: limits.usd: "},
		"a limit below zero":     {"limits: {turns: -1}", "limits.turns: "},
		"no time":                {"limits: {time: 0s}", "limits.time: "},
		"the time of a tool":     {"limits: {toolTime: 1h}", "limits.toolTime: there is no such key"},
		"a model that is a flag": {"model: --dangerously-skip-permissions", "model: "},
		"a setting for effort":   {"effort: ultracode", "effort: "},
		"no denial":              {"policy: {readOnly: \"no\"}", "policy.readOnly: "},
		"a misspelled tool":      {"tools: {deny: [Bsah]}", "2:16: tools.deny[0]: there is no tool Bsah\n  next: write Bash"},
		"a misspelled rule":      {"policy: {deny: [\"Raed(/x)\"]}", "policy.deny[0]: there is no tool Raed"},
		"a rule without end":     {"policy: {deny: [\"Read(\"]}", "policy.deny[0]: "},
		"another version":        {"version: 2", "the key is there already"},
		"a key twice":            {"model: a\nmodel: b", "3:1: model: the key is there already, in line 2"},
		"an alias":               {"model: &a opus\neffort: *a", "2:8: model: an anchor or an alias is not supported"},
		"a merge":                {"limits: &l {usd: 1}\npolicy: {<<: *l}", "anchor"},
		"many aliases":           {"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]", "is not supported"},
		"a tag":                  {"model: !!binary aGk=", "a tag is not supported"},
		"a second document":      {"model: a\n---\nversion: 1", "a second one begins here"},
		"no YAML":                {"{", ".drover.yaml:"},
		"too deep":               {strings.Repeat("[", 1000), "are open at once"},
	} {
		p, err := parseProject([]byte("version: 1\n"+c.file+"\n"), ".drover.yaml")
		if text := advice.Text(err); p != nil || err == nil || !strings.Contains(text, c.says) {
			t.Errorf("%s: got %v and\n%s\nwant %q", name, p, text, c.says)
		}
		if _, ok := errors.AsType[*Problem](err); !ok {
			t.Errorf("%s: %T is no problem with a position", name, err)
		}
	}
}

func TestLoadProject_ReadsOnlyAFileOfTheFolder(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, []byte(wholeProject), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		make func(path string) error
		says string // empty means that there is a project
	}{
		"a file":                {func(path string) error { return os.WriteFile(path, []byte(wholeProject), 0o600) }, ""},
		"a link that leads out": {func(path string) error { return os.Symlink(outside, path) }, "it is a link"},
		"a link in the folder": {func(path string) error {
			return errors.Join(os.WriteFile(path+".real", []byte(wholeProject), 0o600), os.Symlink(filepath.Base(path)+".real", path))
		}, "it is a link"},
		"a link to nothing": {func(path string) error { return os.Symlink("nothing", path) }, "it is a link"},
		"a folder":          {func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"a huge file": {func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		}, "there are more than 65536 bytes"},
	} {
		dir := t.TempDir()
		if err := x.make(filepath.Join(dir, ProjectFile)); err != nil {
			t.Fatal(err)
		}
		p, err := LoadProject(dir)
		if x.says == "" {
			if err != nil || p == nil || p.Model != "opus" {
				t.Errorf("%s: got %v, %v", name, p, err)
			}
			continue
		}
		if p != nil || err == nil || !strings.Contains(err.Error(), x.says) || advice.Of(err) == "" {
			t.Errorf("%s: got %v, %v, want %q and advice", name, p, err, x.says)
		}
	}
	if p, err := LoadProject(t.TempDir()); p != nil || err != nil {
		t.Errorf("no file: got %v, %v", p, err)
	}
}

// A resource may be of another account, and what a model is asked goes there.
func TestProject_ModelIsNoResource(t *testing.T) {
	for _, model := range []string{"arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/x", "ARN:aws:sagemaker:us-east-1:123456789012:endpoint/x"} {
		_, err := parseProject([]byte("version: 1\nmodel: \""+model+"\"\n"), "p.yaml")
		if err == nil || err.Error() != "p.yaml:2:1: model: an ARN may name a resource of another account" {
			t.Errorf("%s: %v", model, err)
		}
	}
	for _, model := range []string{"opus", "us.anthropic.claude-opus-4-5-20251101-v1:0", "anthropic/claude-opus-4.5"} {
		if _, err := parseProject([]byte("version: 1\nmodel: \""+model+"\"\n"), "p.yaml"); err != nil {
			t.Error(err)
		}
	}
}

func TestProject_InvalidRuleIsOneProblem(t *testing.T) {
	for _, list := range []string{"tools: {only: [%s]}", "tools: {deny: [%s]}", "policy: {deny: [%s]}"} {
		_, err := parseProject([]byte("version: 1\n"+strings.Replace(list, "%s", `"Bash(ls > x)"`, 1)+"\n"), "p.yaml")
		if err == nil || strings.Count(err.Error(), "a rule is one simple command") != 1 {
			t.Errorf("%s: %v", list, err)
		}
	}
}
