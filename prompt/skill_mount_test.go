// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/prompt"
)

// toolSkill is a skill with a script and a text in a folder.
func toolSkill(t testing.TB) *prompt.Skill {
	t.Helper()
	return load(t, fstest.MapFS{
		"tool/SKILL.md":     {Data: []byte(matter("description: d"))},
		"tool/bin/run":      {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		"tool/doc/a/use.md": {Data: []byte("use"), Mode: 0o644},
	}, "tool")
}

// namesIn lists what is in a folder.
func namesIn(t testing.TB, dir string) []string {
	t.Helper()
	names := []string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestMountSkills_OnlyTheOwnerHasAccess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other permissions")
	}
	dir := filepath.Join(t.TempDir(), "config", "skills")
	if err := toolSkill(t).WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	modes := map[string]fs.FileMode{}
	filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		info, _ := entry.Info()
		rel, _ := filepath.Rel(dir, path)
		modes[filepath.ToSlash(rel)] = info.Mode().Perm()
		return nil
	})
	want := map[string]fs.FileMode{
		".": 0o700, "tool": 0o700, "tool/bin": 0o700, "tool/doc": 0o700, "tool/doc/a": 0o700,
		"tool/SKILL.md": 0o600, "tool/bin/run": 0o700, "tool/doc/a/use.md": 0o600,
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
}

func TestMountSkills_IsIdempotent(t *testing.T) {
	dir, s := t.TempDir(), toolSkill(t)
	for range 2 {
		if err := prompt.MountSkills(dir, s); err != nil {
			t.Error(err)
		}
	}
	if got := namesIn(t, dir); !cmp.Equal(got, []string{"tool"}) {
		t.Errorf("%v are left, want tool alone", got)
	}
}

func TestMountSkills_ConcurrentCallsSucceed(t *testing.T) {
	s := toolSkill(t)
	for range 20 {
		dir, start := t.TempDir(), make(chan struct{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				<-start
				if err := s.WriteTo(dir); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		if got := namesIn(t, dir); !cmp.Equal(got, []string{"tool"}) {
			t.Errorf("%v are left, want tool alone", got)
		}
	}
}

func TestMountSkills_OtherContentIsNotReplaced(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(folder string)
		want   string
	}{
		"another text":   {func(f string) { os.WriteFile(filepath.Join(f, "SKILL.md"), []byte("mine"), 0o600) }, "SKILL.md differs"},
		"one file more":  {func(f string) { os.WriteFile(filepath.Join(f, "more"), nil, 0o600) }, "more is not in the skill"},
		"one file less":  {func(f string) { os.Remove(filepath.Join(f, "bin/run")) }, "bin/run is missing"},
		"not executable": {func(f string) { os.Chmod(filepath.Join(f, "bin/run"), 0o600) }, "bin/run differs in being executable"},
		"a link":         {func(f string) { os.Symlink("SKILL.md", filepath.Join(f, "x")) }, "x is a symbolic link"},
		"empty":          {func(f string) { os.RemoveAll(f); os.Mkdir(f, 0o700) }, "SKILL.md is missing"},
		"a file":         {func(f string) { os.RemoveAll(f); os.WriteFile(f, nil, 0o600) }, "it is not a folder"},
		"a link away":    {func(f string) { os.Rename(f, f+"2"); os.Symlink(f+"2", f) }, "it is not a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && (name == "not executable" || strings.HasPrefix(name, "a link")) {
				t.Skip("Windows has neither the bit nor, for everybody, links")
			}
			dir, s := t.TempDir(), toolSkill(t)
			if err := s.WriteTo(dir); err != nil {
				t.Fatal(err)
			}
			tt.change(filepath.Join(dir, "tool"))
			before := namesIn(t, dir)
			err := s.WriteTo(dir)
			if !errors.Is(err, prompt.ErrSkillMount) || !strings.Contains(advice.Text(err), tt.want) || !strings.Contains(advice.Text(err), "\n  next: ") {
				t.Errorf("error %v, want ErrSkillMount with %q", err, tt.want)
			}
			if diff := cmp.Diff(before, namesIn(t, dir)); diff != "" {
				t.Errorf("the folder changed:\n%s", diff)
			}
		})
	}
}

func TestMountSkills_RejectsTwoSkillsOfOneName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	content := matter("description: d")
	first, second := load(t, folder("a/it/SKILL.md", content), "a/it"), load(t, folder("b/it.md", content), "b/it.md")
	err := prompt.MountSkills(dir, toolSkill(t), first, second)
	got, ok := errors.AsType[*prompt.DuplicateSkillError](err)
	if want := (prompt.DuplicateSkillError{Name: "it", First: "a/it", Second: "b/it.md"}); !ok || *got != want || !errors.Is(err, prompt.ErrSkillMount) {
		t.Errorf("error %v, want %+v", err, want)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestMountSkills_IsAtomic(t *testing.T) {
	dir := t.TempDir()
	one, two, three := load(t, folder("one.md", matter("description: d")), "one.md"), load(t, folder("two.md", matter("description: d")), "two.md"), toolSkill(t)
	if err := one.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(filepath.Join(dir, "tool"), 0o700)
	os.WriteFile(filepath.Join(dir, "tool", "mine"), nil, 0o600)
	if err := prompt.MountSkills(dir, one, two, three); !errors.Is(err, prompt.ErrSkillMount) {
		t.Errorf("error %v, want ErrSkillMount", err)
	}
	// What was there before stays.
	if got, want := namesIn(t, dir), []string{"one", "tool"}; !cmp.Equal(got, want) {
		t.Errorf("%v are there, want %v", got, want)
	}
}

func TestMountSkills_RejectsSkillsThatWereNotLoaded(t *testing.T) {
	for name, s := range map[string]*prompt.Skill{"nil": nil, "zero": {}} {
		if err := s.WriteTo(t.TempDir()); !errors.Is(err, prompt.ErrSkillMount) {
			t.Errorf("%s: error %v, want ErrSkillMount", name, err)
		}
		if err := prompt.MountSkills(t.TempDir(), toolSkill(t), s); !errors.Is(err, prompt.ErrSkillMount) {
			t.Errorf("%s: error %v, want ErrSkillMount", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	if err := toolSkill(t).WriteTo(file); !errors.Is(err, prompt.ErrSkillMount) {
		t.Errorf("into a file: error %v, want ErrSkillMount", err)
	}
}

// Whatever a skill is made of, its mounted copy is the same skill.
func TestMountSkills_MountedCopyLoadsAsTheSameSkill(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]{1,5}(-[a-z0-9]{1,5}){0,3}`).Draw(r, "name")
		fsys := fstest.MapFS{name + "/SKILL.md": {Data: []byte(matter("description: d") + rapid.String().Draw(r, "body"))}}
		for _, file := range rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,3}\.d(/[a-z]{1,3}\.d){0,2}/[a-z]{1,3}`), 0, 8).Draw(r, "files") {
			mode := rapid.SampledFrom([]fs.FileMode{0o644, 0o755}).Draw(r, "mode")
			fsys[name+"/"+file] = &fstest.MapFile{Data: rapid.SliceOf(rapid.Byte()).Draw(r, "content"), Mode: mode}
		}
		s, err := prompt.LoadSkillFS(fsys, name)
		if err != nil {
			r.Fatal(err)
		}
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			r.Fatal(err)
		}
		checkRoundTrip(r, s, dir)
	})
}

// checkRoundTrip mounts a skill, loads the copy and mounts that over itself.
func checkRoundTrip(t interface{ Fatalf(string, ...any) }, s *prompt.Skill, dir string) {
	if err := s.WriteTo(dir); err != nil {
		t.Fatalf("mounting: %v", err)
	}
	again, err := prompt.LoadSkill(filepath.Join(dir, s.Name()))
	if err != nil {
		t.Fatalf("loading the copy: %v", err)
	}
	if again.Hash() != s.Hash() || again.Body() != s.Body() || !cmp.Equal(again.Files(), s.Files()) || !cmp.Equal(again.FrontMatter(), s.FrontMatter()) {
		t.Fatalf("the copy differs: %+v, want %+v", again, s)
	}
	if err := again.WriteTo(dir); err != nil {
		t.Fatalf("mounting the copy: %v", err)
	}
}
