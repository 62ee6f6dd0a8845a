// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/prompt"
)

// matter is SKILL.md with the given lines of front matter.
func matter(lines ...string) string {
	return "---\n" + strings.Join(lines, "\n") + "\n---\nBody.\n"
}

// folder is a file system with one file.
func folder(name, content string) fstest.MapFS {
	return fstest.MapFS{name: {Data: []byte(content)}}
}

// load is a skill that must be good.
func load(t testing.TB, fsys fs.FS, name string) *prompt.Skill {
	t.Helper()
	s, err := prompt.LoadSkillFS(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLoadSkill_Folder(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/skills/pdf-forms.txtar")
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := txtar.FS(archive)
	if err != nil {
		t.Fatal(err)
	}
	s := load(t, fsys, "pdf-forms")
	want := prompt.SkillFrontMatter{
		Name: "pdf-forms", Description: "Fills in forms. Use it when the user hands over a form to fill in.\n",
		License: "MIT", Compatibility: "needs python 3", AllowedTools: "Read, Bash(python3:*)",
		Metadata: map[string]string{"author": "drover", "version": "1.0"}, Unknown: []string{"model", "hooks"},
	}
	if diff := cmp.Diff(want, s.FrontMatter()); diff != "" {
		t.Errorf("front matter (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"SKILL.md", "reference/fields.md", "scripts/fill.py"}, s.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got, want := s.Body(), "\n# Forms\n\nRun scripts/fill.py.\n"; got != want {
		t.Errorf("body %q, want %q", got, want)
	}
	// The hash is written into descriptors that are kept: it must never change.
	if got, want := s.Hash(), "6e12f7464007a539ebbf304ec276cf60dade17e8670565e57ddcb087e049bf75"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestLoadSkill_SingleFile(t *testing.T) {
	for name, content := range map[string]string{
		"with a name":    matter("name: notes", "description: Takes notes."),
		"without a name": matter("description: Takes notes."),
		"with CRLF":      strings.ReplaceAll(matter("description: Takes notes."), "\n", "\r\n"),
		"with a BOM":     "\ufeff" + matter("description: Takes notes."),
		"with blanks":    "--- \ndescription: Takes notes.\n---\t\nBody.\n",
		"without a body": "---\ndescription: Takes notes.\n---",
	} {
		t.Run(name, func(t *testing.T) {
			s := load(t, folder("lib/notes.md", content), "lib/notes.md")
			if s.Name() != "notes" || s.FrontMatter().Description != "Takes notes." {
				t.Errorf("got %s, %q", s.Name(), s.FrontMatter().Description)
			}
			if got := s.Files(); !slices.Equal(got, []string{"SKILL.md"}) {
				t.Errorf("files %v, want SKILL.md", got)
			}
			if body := strings.TrimSpace(s.Body()); body != "Body." && name != "without a body" {
				t.Errorf("body %q", body)
			}
		})
	}
}

func TestLoadSkill_FrontMatterNamesTheRootOfAFileSystem(t *testing.T) {
	if s := load(t, folder("SKILL.md", matter("name: rooted", "description: d")), "."); s.Name() != "rooted" {
		t.Errorf("got %q", s.Name())
	}
	wantViolations(t, folder("SKILL.md", matter("description: d")), ".", "SKILL.md: name is missing")
}

// wantViolations loads a bad skill and looks for each text in the list of what is wrong.
func wantViolations(t *testing.T, fsys fs.FS, name string, want ...string) {
	t.Helper()
	_, err := prompt.LoadSkillFS(fsys, name)
	invalid, ok := errors.AsType[*prompt.InvalidSkillError](err)
	if !ok || !errors.Is(err, prompt.ErrSkillInvalid) || !strings.Contains(advice.Text(err), "\n  next: ") {
		t.Fatalf("error %v, want an InvalidSkillError", err)
	}
	if len(invalid.Violations) != len(want) {
		t.Fatalf("%d violations, want %d:\n%v", len(invalid.Violations), len(want), err)
	}
	for i, v := range invalid.Violations {
		if !strings.HasPrefix(v.String(), want[i]) {
			t.Errorf("violation %q, want %q", v, want[i])
		}
	}
}

func TestLoadSkill_InvalidFrontMatterIsReportedWithLineAndColumn(t *testing.T) {
	const description = "description: d"
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"none", "# A skill\n", []string{"SKILL.md:1:1: the file does not begin with front matter"}},
		{"empty file", "", []string{"SKILL.md:1:1: the file does not begin with front matter"}},
		{"not ended", "---\n" + description + "\n", []string{"SKILL.md:1:1: the front matter has no end"}},
		{"not UTF-8", "---\ndescription: \xff\n---\n", []string{"SKILL.md: the file is not UTF-8"}},
		{"empty", "---\n---\n", []string{"SKILL.md:2:1: the front matter must be keys and values"}},
		{"a list", matter("- a", "- b"), []string{"SKILL.md:2:1: the front matter must be keys and values"}},
		{"no description", matter("name: it"), []string{"SKILL.md:2:1: description is missing"}},
		{"empty description", matter(`description: ""`), []string{"SKILL.md:2:14: description has 0 characters"}},
		{"blank description", matter(`description: "  "`), []string{"SKILL.md:2:14: description has 2 characters"}},
		{"long description", matter("name: it", "description: "+strings.Repeat("é", 1025)), []string{"SKILL.md:3:14: description has 1025 characters"}},
		{"long compatibility", matter(description, "compatibility: "+strings.Repeat("é", 501)), []string{"SKILL.md:3:16: compatibility has 501 characters"}},
		{"upper-case name", matter("name: It", description), []string{`SKILL.md:2:7: name "It" must be`, `SKILL.md: name is "It" but`}},
		{"another name", matter("name: other", description), []string{`SKILL.md: name is "other" but the folder or file is named "it"`}},
		{"numbers", matter(description, "license: 1", "metadata:", "  version: 1.0", "  2: x"), []string{
			"SKILL.md:3:10: license must be one text", "SKILL.md:5:12: metadata.version must be one text", "SKILL.md:6:3: a key of metadata",
		}},
		{"a list of tools", matter(description, "allowed-tools: [Read]"), []string{"SKILL.md:3:16: allowed-tools must be one text"}},
		{"metadata of text", matter(description, "metadata: x"), []string{"SKILL.md:3:11: metadata must be keys and values"}},
		{"an alias", matter("x: &a d", "description: *a"), []string{"SKILL.md:3:14: description must be one text"}},
		{"colon", matter("description: Use when: always"), []string{"SKILL.md:2:14: mapping value is not allowed in this context: a text with a colon needs quotes"}},
		{"key twice", matter(description, description), []string{`SKILL.md:3:1: mapping key "description" already defined at [2:1]`}},
		// The CLI ends the front matter there, and would take the rest for the body.
		{"dashes in a text", matter("description: before --- after", "license: a---b"), []string{"SKILL.md:2:21: the front matter must not hold ---", "SKILL.md:3:11: "}},
		{"too much", matter(description, "x: "+strings.Repeat("x", 16<<10)), []string{"SKILL.md:2:1: the front matter is larger than"}},
		{"too deep", matter(description, "x: "+strings.Repeat("[", 300)), []string{"SKILL.md:3:203: more than 200 brackets"}},
		{"several things", matter("name: Bad!", "description: ''", "license: true"), []string{
			"SKILL.md:2:7: name", "SKILL.md:3:14: description", "SKILL.md:4:10: license", `SKILL.md: name is "Bad!"`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantViolations(t, folder("it/SKILL.md", tt.content), "it", tt.want...)
		})
	}
	wantViolations(t, folder("it.md", matter("name: it")), "it.md", "it.md:2:1: description is missing")
}

func TestLoadSkill_ChecksNames(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "a-b-1": true, "1": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "-a": false, "a-": false, "a--b": false, "A": false, "a_b": false, "a b": false, "é": false, "a.b": false,
	} {
		_, err := prompt.LoadSkillFS(folder(name+"/SKILL.md", matter("description: d")), name)
		if good != (err == nil) || !good && !errors.Is(err, prompt.ErrSkillInvalid) {
			t.Errorf("%q: error %v, want good %v", name, err, good)
		}
	}
}

func TestLoadSkill_OtherFilesAreNotFound(t *testing.T) {
	for name, tt := range map[string]struct {
		fsys fstest.MapFS
		path string
	}{
		"nothing":                  {fstest.MapFS{}, "it"},
		"a folder without SKILL":   {folder("it/README.md", "x"), "it"},
		"a file of another kind":   {folder("it.txt", matter("description: d")), "it.txt"},
		"a lower-case file":        {folder("it/skill.md", matter("description: d")), "it"},
		"a link in place of SKILL": {fstest.MapFS{"it/SKILL.md": {Data: []byte("../x.md"), Mode: fs.ModeSymlink}, "x.md": {Data: []byte(matter("description: d"))}}, "it"},
		"a path that leaves":       {folder("it.md", matter("description: d")), "x/../it.md"},
		"a pipe":                   {fstest.MapFS{"it.md": {Mode: fs.ModeNamedPipe}}, "it.md"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := prompt.LoadSkillFS(tt.fsys, tt.path)
			if !errors.Is(err, prompt.ErrSkillNotFound) || !strings.Contains(advice.Text(err), "\n  next: ") {
				t.Errorf("error %v, want ErrSkillNotFound and what to do next", err)
			}
		})
	}
	if _, err := prompt.LoadSkill(filepath.Join(t.TempDir(), "it")); !errors.Is(err, prompt.ErrSkillNotFound) {
		t.Errorf("on the host: error %v, want ErrSkillNotFound", err)
	}
}

func TestLoadSkill_BoundsCountAndSizeOfFiles(t *testing.T) {
	good := &fstest.MapFile{Data: []byte(matter("description: d"))}
	mega := make([]byte, 1<<20)
	many := func(n int) fstest.MapFS {
		fsys := fstest.MapFS{"it/SKILL.md": good}
		for i := range n {
			fsys[fmt.Sprintf("it/f%04d", i)] = &fstest.MapFile{}
		}
		return fsys
	}
	megabytes := func(n int) fstest.MapFS {
		fsys := fstest.MapFS{"it/SKILL.md": good}
		for i := range n {
			fsys[fmt.Sprintf("it/f%04d", i)] = &fstest.MapFile{Data: mega}
		}
		return fsys
	}
	load(t, many(999), "it")
	load(t, megabytes(9), "it")
	wantViolations(t, many(1000), "it", "there are more than 1000 files")
	wantViolations(t, megabytes(10), "it", "the files have more than 10 MiB")
	large := matter("description: d") + string(mega)
	wantViolations(t, folder("it/SKILL.md", large), "it", "SKILL.md: the file has more than 1 MiB")
	wantViolations(t, folder("it.md", large), "it.md", "it.md: the file has more than 1 MiB")
	wantViolations(t, fstest.MapFS{"it/SKILL.md": good, "it/x": {Data: append(mega, 0)}}, "it", "x: the file has more than 1 MiB")
	wantViolations(t, fstest.MapFS{"it/SKILL.md": good, "it/dir/pipe": {Mode: fs.ModeNamedPipe}}, "it", "dir/pipe: it is neither a regular file nor a folder")
}

func TestLoadSkill_LinksAreSkippedAndReported(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	os.WriteFile(secret, []byte("SECRET"), 0o600)
	skill := filepath.Join(dir, "it")
	os.Mkdir(skill, 0o700)
	os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte(matter("description: d")), 0o600)
	for name, to := range map[string]string{"file": secret, "dir": dir, "loop": "loop", "inside": "SKILL.md"} {
		if err := os.Symlink(to, filepath.Join(skill, name)); err != nil {
			t.Skip(err)
		}
	}
	s, err := prompt.LoadSkill(skill)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"dir", "file", "inside", "loop"}, s.Skipped()); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"SKILL.md"}, s.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestSkill_IsImmutable(t *testing.T) {
	fsys := folder("it/SKILL.md", matter("description: d", "metadata:", "  k: v", "x: y"))
	s := load(t, fsys, "it")
	hash := s.Hash()
	m := s.FrontMatter()
	m.Metadata["k"], m.Unknown[0], s.Files()[0] = "changed", "changed", "changed"
	copy(fsys["it/SKILL.md"].Data, "changed")
	dir := t.TempDir()
	if err := s.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	mounted, err := prompt.LoadSkill(filepath.Join(dir, "it"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.FrontMatter(); got.Metadata["k"] != "v" || got.Unknown[0] != "x" || mounted.Hash() != hash {
		t.Errorf("a caller changed the skill: %+v", got)
	}
}

func TestSkill_HashCoversEveryPart(t *testing.T) {
	main := []byte(matter("description: d"))
	seen := map[string]string{}
	for what, fsys := range map[string]fstest.MapFS{
		"one file":        {"it/SKILL.md": {Data: main}},
		"another body":    {"it/SKILL.md": {Data: append([]byte{}, append(main, 'x')...)}},
		"a second file":   {"it/SKILL.md": {Data: main}, "it/ab": {Data: []byte("c")}},
		"another split":   {"it/SKILL.md": {Data: main}, "it/a": {Data: []byte("bc")}},
		"another content": {"it/SKILL.md": {Data: main}, "it/ab": {Data: []byte("d")}},
	} {
		hash := load(t, fsys, "it").Hash()
		if other, ok := seen[hash]; ok {
			t.Errorf("%s and %s have one hash", what, other)
		}
		seen[hash] = what
	}
	if _, ok := seen[load(t, folder("other/SKILL.md", string(main)), "other").Hash()]; ok {
		t.Error("a skill of another name has the same hash")
	}
	if _, ok := seen[load(t, folder("it.md", string(main)), "it.md").Hash()]; !ok {
		t.Error("the same skill as a single file has another hash")
	}
}
