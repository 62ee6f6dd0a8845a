// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/prompt"
)

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse([]byte(text), filepath.Join(t.TempDir(), "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func render(t *testing.T, f *File, args map[string]string, more ...*prompt.Section) *prompt.Rendered {
	t.Helper()
	p, err := f.Prompt(args, more...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Render(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const greeting = `
version: 1
args:
  name: {doc: whom to greet}
  times: {type: int, default: 2}
  loud: {type: bool, default: false}
  size: {type: number, default: 1.5}
  tone: {enum: [kind, curt], default: kind}
sections:
  - {key: task, title: Task, text: "Greet ${name} ${times} times, ${tone}, ${size}, for $$5."}
  - {key: loud, title: Loud, text: Shout., when: {loud: true, tone: curt}}
`

func TestPrompt_ArgumentsFillTheText(t *testing.T) {
	f := mustParse(t, greeting)
	for name, c := range map[string]struct {
		args map[string]string
		want string
	}{
		"defaults":                       {map[string]string{"name": "Ada"}, "## 1. Task (task)\n\nGreet Ada 2 times, kind, 1.5, for $5."},
		"all given":                      {map[string]string{"name": "Ada", "times": " 03", "loud": "true", "size": "2e3", "tone": "curt"}, "## 1. Task (task)\n\nGreet Ada 3 times, curt, 2e3, for $5.\n\n## 2. Loud (loud)\n\nShout."},
		"a value is never a placeholder": {map[string]string{"name": "${times} $tone"}, "## 1. Task (task)\n\nGreet ${times} $tone 2 times, kind, 1.5, for $5."},
		"a section needs all its values": {map[string]string{"name": "", "loud": "true"}, "## 1. Task (task)\n\nGreet  2 times, kind, 1.5, for $5."},
	} {
		if diff := cmp.Diff(c.want, render(t, f, c.args).Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// YAML writes 1.0 as 1, and the caller may write the value as it is in the file.
func TestPrompt_NumbersAreComparedByValue(t *testing.T) {
	f := mustParse(t, `version: 1
args: {size: {type: number, enum: [0.5, 1.0]}}
sections: [{key: a, title: A, text: "${size}"}, {key: one, title: One, text: whole, when: {size: 1.0}}]
`)
	for value, shown := range map[string]bool{"1": true, "1.0": true, "1e0": true, "0.5": false, ".50": false} {
		text := render(t, f, map[string]string{"size": value}).Text
		if !strings.Contains(text, value) || strings.Contains(text, "whole") != shown {
			t.Errorf("size=%s gives %q, want the section One: %t", value, text, shown)
		}
	}
	if _, err := f.Prompt(map[string]string{"size": "1.01"}); !errors.Is(err, ErrArgs) {
		t.Errorf("size=1.01: error %v, want ErrArgs", err)
	}
}

func TestPrompt_AllInvalidArgumentsAreReported(t *testing.T) {
	f := mustParse(t, greeting)
	_, err := f.Prompt(map[string]string{"times": "often", "loud": "1", "tone": "rude", "size": "NaN", "nam": "Ada"})
	if !errors.Is(err, ErrArgs) {
		t.Fatalf("error %v, want ErrArgs", err)
	}
	for _, want := range []string{
		"name is missing (string: whom to greet)", `times: "often" is no int`, `loud: "1" is no bool`,
		`tone: "rude" is not one of kind, curt`, `size: "NaN" is no number`, "nam is not known (known: loud, name, size, times, tone)",
	} {
		if !strings.Contains(advice.Text(err), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestPrompt_WithoutSectionsIsRejected(t *testing.T) {
	f := mustParse(t, "version: 1\nargs: {x: {type: bool}}\nsections: [{key: a, title: A, when: {x: true}}]\n")
	if _, err := f.Prompt(map[string]string{"x": "false"}); !errors.Is(err, ErrArgs) {
		t.Errorf("error %v, want ErrArgs", err)
	}
	if got := render(t, f, map[string]string{"x": "true"}, prompt.Markdown("more", "More", "x")).Text; !strings.Contains(got, "More") {
		t.Errorf("the section that was added is not in %q", got)
	}
}

func TestPrompt_AnswerHasTheSchemaOfTheFile(t *testing.T) {
	const form = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	inline := mustParse(t, minimal+"output: {schema: "+form+"}\n")
	fromFile := mustParse(t, minimal+"output: {file: form.json}\n")
	if err := os.WriteFile(filepath.Join(fromFile.Dir(), "form.json"), []byte(form), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*File{"inline": inline, "file": fromFile} {
		p, err := f.Prompt(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Parse([]byte(`{"n":1}`)); err != nil || got.String() != `{"n":1}` {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
		if _, err := p.Parse([]byte(`{"n":"x"}`)); !errors.Is(err, prompt.ErrOutput) {
			t.Errorf("%s: error %v, want ErrOutput", name, err)
		}
	}
	for _, text := range []string{minimal, minimal + "output: text\n"} {
		if r := render(t, mustParse(t, text), nil); r.OutputSchema != nil {
			t.Errorf("an answer in text is asked for as %s", r.OutputSchema)
		}
	}
}

// Between the look at a path and its use another process may put a link there.
func TestFile_LinkPlantedLaterDoesNotLeaveTheFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("{}"), 0o600), os.Symlink(secret, filepath.Join(dir, "form.json"))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if text, err := readIn(root, "form.json"); err == nil {
		t.Errorf("read %q through the link", text)
	}
}

func TestFile_MissingPathsAreErrorsWithAdvice(t *testing.T) {
	for key, text := range map[string]string{"mounts[0].path": "mounts: [{path: none}]\n", "skills[0]": "skills: [none]\n", "output.file": "output: {file: none}\n"} {
		f := mustParse(t, minimal+text)
		_, mounts := f.Workspace()
		_, other := f.Prompt(nil)
		if err := errors.Join(mounts, other); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(advice.Text(err), ": "+key+": ") || !strings.Contains(advice.Text(err), "\n  next: put it there") {
			t.Errorf("error %v, want one about %s with what to do", err, key)
		}
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(advice.Text(err), "\n  next: give the path of a file") {
		t.Errorf("a folder: error %v, want what to do", err)
	}
}

func TestPrompt_SchemaInAFileIsChecked(t *testing.T) {
	f := mustParse(t, minimal+"output: {file: form.json}\n")
	path := filepath.Join(f.Dir(), "form.json")
	for content, want := range map[string]string{
		`{"type":"nope"}`: "it is no JSON Schema for an answer", `{`: "it is no JSON Schema",
		`{}` + strings.Repeat(" ", maxFile): "it is larger than 1048576 bytes\n  next: ",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Prompt(nil); err == nil || !strings.Contains(advice.Text(err), ":3:10: output.file: "+want) {
			t.Errorf("%s: error %v, want %q", content, err, want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Prompt(nil); err == nil || !strings.Contains(advice.Text(err), "it is not a regular file") {
		t.Errorf("error %v, want that it is not a regular file", err)
	}
}

const skill = "---\nname: %s\ndescription: Says how.\n---\n\n# How\n"

func writeSkill(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte(strings.Replace(skill, "%s", name, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPrompt_SkillsBelongToTheirSections(t *testing.T) {
	f := mustParse(t, `
version: 1
args: {deep: {type: bool, default: false}}
sections:
  - {key: deep, title: Deep, when: {deep: true}, skills: [skills/two]}
  - {key: task, title: Task}
skills: [skills/one]
`)
	writeSkill(t, filepath.Join(f.Dir(), "skills"), "one")
	writeSkill(t, filepath.Join(f.Dir(), "skills"), "two")
	for deep, want := range map[string][]string{"false": {"one"}, "true": {"two", "one"}} {
		var got []string
		for _, s := range render(t, f, map[string]string{"deep": deep}).Skills {
			got = append(got, s.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("deep=%s (-want +got):\n%s", deep, diff)
		}
	}
}

// A file of a stranger has nothing but its own folder.
func TestFile_PathsCannotLeaveTheFolder(t *testing.T) {
	outside := t.TempDir()
	writeSkill(t, outside, "one")
	if err := os.WriteFile(filepath.Join(outside, "form.json"), []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a mount":               "mounts: [{path: " + outside + "}]\n",
		"a mount upwards":       "mounts: [{path: ../../../../../../../../etc, as: x}]\n",
		"a mount behind a link": "mounts: [{path: link}]\n",
		"a skill":               "skills: [" + outside + "/one]\n",
		"a skill behind a link": "skills: [link/one]\n",
		"a schema":              "output: {file: link/form.json}\n",
	} {
		f := mustParse(t, minimal+text)
		if err := os.Symlink(outside, filepath.Join(f.Dir(), "link")); err != nil {
			t.Fatal(err)
		}
		use := func() error {
			_, mounts := f.Workspace()
			_, other := f.Prompt(nil)
			return errors.Join(mounts, other)
		}
		err := use()
		if err == nil || !strings.Contains(advice.Text(err), "outside of the folder of the file\n  next: ") || !strings.Contains(advice.Text(err), "agent.yaml:3:") {
			t.Errorf("%s: error %v, want that it is outside", name, err)
		}
		f.Roots = []string{outside, "/etc"}
		if err := use(); err != nil {
			t.Errorf("%s, allowed: %v", name, err)
		}
		f.Roots = []string{filepath.Join(outside, "nowhere")}
		if err := use(); err == nil {
			t.Errorf("%s: a root that is not there is taken", name)
		}
	}
}
