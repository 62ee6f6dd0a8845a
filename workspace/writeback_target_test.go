// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace"
)

func TestWriteBack_EachMountReturnsToItsSource(t *testing.T) {
	host, state := t.TempDir(), t.TempDir()
	plant(t, host, map[string]string{"src/a": "1", "tests/a": "1", "one.txt": "1", "beside.txt": "1"})
	must(t, os.Chtimes(filepath.Join(host, "src/a"), time.Unix(1000, 0), time.Unix(1000, 0)))
	w := openOn(t, host, func(o *workspace.Options) {
		o.Mounts = []workspace.HostMount{
			{HostPath: filepath.Join(host, "src"), MountPath: "project/src"},
			{HostPath: filepath.Join(host, "tests"), MountPath: "project/tests"},
			{HostPath: filepath.Join(host, "one.txt"), MountPath: "notes/renamed.txt"},
		}
		o.AllowAnyRoot, o.AllowedHostRoots = false, []string{host}
	})
	plant(t, w.Root(), map[string]string{
		"project/src/a": "2", "project/tests/b": "2", "notes/renamed.txt": "2", "notes/other.txt": "2", "project/README": "2",
	})
	begun := time.Now().Add(-time.Second)
	done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state})
	if err != nil {
		t.Fatal(err)
	}
	want := workspace.WriteBackResult{
		Written: []workspace.HostPath{
			{Path: "notes/renamed.txt", Host: filepath.Join(host, "one.txt")},
			{Path: "project/src/a", Host: filepath.Join(host, "src/a")},
			{Path: "project/tests/b", Host: filepath.Join(host, "tests/b")},
		},
		Skipped: []workspace.SkippedPath{{Path: "notes/other.txt", Reason: "is in no mount"}, {Path: "project/README", Reason: "is in no mount"}},
	}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	wantHost := map[string]string{
		"src/": "0755", "src/a": "0644 2", "tests/": "0755", "tests/a": "0644 1", "tests/b": "0644 2", "one.txt": "0644 2", "beside.txt": "0644 1",
	}
	if diff := cmp.Diff(wantHost, harvest(t, host)); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	for _, name := range []string{"src/a", "tests/b", "tests"} {
		if info, err := os.Stat(filepath.Join(host, name)); err != nil || info.ModTime().Before(begun) {
			t.Errorf("the time of %s is that of before: %v", name, err)
		}
	}
	if text := done.String(); !strings.Contains(text, "written   project/tests/b -> "+filepath.Join(host, "tests/b")) || !strings.Contains(text, "3 written, 0 deleted, 2 skipped, 0 conflicts") {
		t.Errorf("text:\n%s", text)
	}
}

func TestWriteBack_ConflictInOneMountStopsAllMounts(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	plant(t, one, map[string]string{"a": "1"})
	plant(t, two, map[string]string{"b": "1"})
	w := openOn(t, one, func(o *workspace.Options) {
		o.Mounts = append(o.Mounts, workspace.HostMount{HostPath: two, MountPath: "q"})
	})
	plant(t, w.Root(), map[string]string{"p/a": "2", "q/b": "2"})
	plant(t, two, map[string]string{"b": "3"})
	_, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: t.TempDir()})
	var conflict *workspace.ConflictError
	if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Path != "q/b" {
		t.Errorf("error: %v, want a conflict about q/b", err)
	}
	if got := harvest(t, one)["a"]; got != "0644 1" {
		t.Errorf("the other mount has %q", got)
	}
}

func TestWriteBack_TwoMountsOfOneFolderCannotWriteTheSameFile(t *testing.T) {
	host := t.TempDir()
	plant(t, host, map[string]string{"a": "1", "b": "1"})
	w := openOn(t, host, func(o *workspace.Options) {
		o.Mounts = append(o.Mounts, workspace.HostMount{HostPath: host, MountPath: "q"})
	})
	plant(t, w.Root(), map[string]string{"p/a": "2", "q/b": "2"})
	opts := &workspace.WriteBackOptions{State: t.TempDir()}
	if _, err := w.WriteBack(t.Context(), opts); err != nil {
		t.Errorf("different files: %v", err)
	}
	plant(t, w.Root(), map[string]string{"p/new": "2", "q/new": "3"})
	if _, err := w.WriteBack(t.Context(), opts); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("the same file: %v, want a conflict", err)
	}
}

func TestWriteBack_MountedFileThatBecameAFolderIsSkipped(t *testing.T) {
	host := t.TempDir()
	plant(t, host, map[string]string{"a": "1"})
	w := openOn(t, filepath.Join(host, "a"), nil)
	edits(map[string]string{"p/in": "2"}, "p")(t, w.Root())
	done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: t.TempDir()})
	skipped, _ := reasons(done)
	if diff := cmp.Diff([]string{"p: has become a folder, and a file was mounted", "p/in: is in no mount"}, skipped); diff != "" || err != nil {
		t.Errorf("error %v, skipped (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "0644 1"}, harvest(t, host)); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
}

func TestWriteBack_ToAFolder(t *testing.T) {
	changed := func(t *testing.T) *workspace.Workspace {
		host := t.TempDir()
		plant(t, host, map[string]string{"a": "1", "same": "1", "gone": "1", "d/x": "1"})
		w := openOn(t, host, nil)
		edits(map[string]string{"p/a": "2", "made/deep": "2", "p/d/x": "2"}, "p/gone")(t, w.Root())
		return w
	}
	all := map[string]string{"p/": "0755", "p/a": "0644 2", "p/d/": "0755", "p/d/x": "0644 2", "made/": "0755", "made/deep": "0644 2"}
	for name, test := range map[string]struct {
		before map[string]string // nil means that there is no folder
		want   map[string]string // nil means a conflict
	}{
		"that is missing":               {nil, all},
		"that is empty":                 {map[string]string{}, all},
		"that has what was mounted":     {map[string]string{"p/a": "1", "p/gone": "1"}, all},
		"that has it already":           {map[string]string{"p/a": "2", "p/d/x": "2", "made/deep": "2"}, all},
		"that has something else":       {map[string]string{"p/a": "3"}, nil},
		"that has changed what is gone": {map[string]string{"p/gone": "3"}, nil},
		"with a link in the way":        {map[string]string{"elsewhere/": "", "p": "-> elsewhere"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, top := changed(t), t.TempDir()
			dir := filepath.Join(top, "deep", "target")
			if test.before != nil {
				must(t, os.MkdirAll(dir, 0o755))
				plant(t, dir, test.before)
			}
			before := harvest(t, top)
			opts := &workspace.WriteBackOptions{Dir: dir, State: t.TempDir(), DryRun: true}
			planned, dryErr := w.WriteBack(t.Context(), opts)
			if diff := cmp.Diff(before, harvest(t, top)); diff != "" {
				t.Errorf("a dry run has changed the host (-before +after):\n%s", diff)
			}
			opts.DryRun = false
			done, err := w.WriteBack(t.Context(), opts)
			checkDryRun(t, planned, dryErr, done, err)
			if test.want != nil {
				if diff := cmp.Diff(test.want, harvest(t, dir)); diff != "" || err != nil {
					t.Errorf("error %v, folder (-want +got):\n%s", err, diff)
				}
				return
			}
			if diff := cmp.Diff(before, harvest(t, top)); diff != "" || !errors.Is(err, workspace.ErrConflict) {
				t.Errorf("error %v, want a conflict and nothing changed (-before +after):\n%s", err, diff)
			}
		})
	}
}

func TestWriteBack_StaysInTheAllowedRoots(t *testing.T) {
	allowed, outside := t.TempDir(), t.TempDir()
	plant(t, allowed, map[string]string{"m/a": "1"})
	must(t, os.Symlink(outside, filepath.Join(allowed, "out")))
	w := openOn(t, filepath.Join(allowed, "m"), func(o *workspace.Options) {
		o.AllowAnyRoot, o.AllowedHostRoots = false, []string{allowed}
	})
	plant(t, w.Root(), map[string]string{"p/a": "2"})
	for name, dir := range map[string]string{
		"elsewhere":            outside,
		"below it":             filepath.Join(outside, "new"),
		"through a link":       filepath.Join(allowed, "out"),
		"below a link":         filepath.Join(allowed, "out", "new"),
		"the workspace itself": filepath.Join(w.Root(), "x"),
		"climbing out":         allowed + "/../" + filepath.Base(outside),
	} {
		done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{Dir: dir, State: filepath.Join(t.TempDir(), "s")})
		if !errors.Is(err, workspace.ErrSecurity) || len(done.Written) > 0 {
			t.Errorf("%s: %v, want a security error", name, err)
		}
	}
	if diff := cmp.Diff(map[string]string{}, harvest(t, outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	must(t, os.Rename(filepath.Join(allowed, "m"), filepath.Join(outside, "m")))
	must(t, os.Symlink(filepath.Join(outside, "m"), filepath.Join(allowed, "m")))
	if _, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: t.TempDir()}); !errors.Is(err, workspace.ErrSecurity) {
		t.Errorf("the mount has become a link: %v, want a security error", err)
	}
	if got := harvest(t, outside)["m/a"]; got != "0644 1" {
		t.Errorf("outside there is now %q", got)
	}
}

func TestWriteBack_MountDeletedOnTheHostIsAConflict(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host")
	plant(t, host, map[string]string{"a": "1"})
	w := openOn(t, host, nil)
	plant(t, w.Root(), map[string]string{"p/a": "2"})
	must(t, os.RemoveAll(host))
	if _, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: t.TempDir(), Force: true}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("%v, want a conflict", err)
	}
	if _, err := os.Lstat(host); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there again: %v", err)
	}
}

func TestWriteBack_StateInsideAMountIsRefused(t *testing.T) {
	host := t.TempDir()
	plant(t, host, map[string]string{"a": "1", "state/": ""})
	w := openOn(t, host, nil)
	plant(t, w.Root(), map[string]string{"p/a": "2", "p/state/run-1/record.json": "{}"})
	for _, state := range []string{filepath.Join(host, "state"), filepath.Join(host, "new"), host} {
		if _, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state}); !errors.Is(err, workspace.ErrSecurity) {
			t.Errorf("state in %s: %v, want a security error", state, err)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "0644 1", "state/": "0755"}, harvest(t, host)); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
}

func TestWriteBack_InvalidGlobIsAnError(t *testing.T) {
	w := openOn(t, t.TempDir(), nil)
	if _, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{Only: []string{"a["}, State: t.TempDir()}); err == nil {
		t.Error("the glob a[ was taken")
	}
}

func TestWriteBack_SecondCallContinuesFromTheFirst(t *testing.T) {
	host := t.TempDir()
	plant(t, host, map[string]string{"a": "1", "b": "1", "gone": "1"})
	w := openOn(t, host, nil)
	p, opts := filepath.Join(w.Root(), "p"), &workspace.WriteBackOptions{State: t.TempDir()}
	for i, step := range []struct {
		agent func(*testing.T, string)
		want  map[string]string
	}{
		{edits(map[string]string{"a": "2", "new": "2"}, "gone"), map[string]string{"a": "0644 2", "b": "0644 1", "new": "0644 2"}},
		{edits(nil), map[string]string{"a": "0644 2", "b": "0644 1", "new": "0644 2"}},
		{edits(map[string]string{"a": "3"}), map[string]string{"a": "0644 3", "b": "0644 1", "new": "0644 2"}},
		{edits(map[string]string{"a": "1", "gone": "1"}, "new"), map[string]string{"a": "0644 1", "b": "0644 1", "gone": "0644 1"}},
	} {
		step.agent(t, p)
		_, err := w.WriteBack(t.Context(), opts)
		if diff := cmp.Diff(step.want, harvest(t, host)); diff != "" || err != nil {
			t.Fatalf("step %d: error %v, host (-want +got):\n%s", i, err, diff)
		}
	}
	plant(t, host, map[string]string{"a": "host's"})
	plant(t, p, map[string]string{"a": "5"})
	if _, err := w.WriteBack(t.Context(), opts); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("after the host changed it: %v, want a conflict", err)
	}
}

func TestWriteBack_FolderRemovedByOneMountIsNotWrittenByAnother(t *testing.T) {
	host := t.TempDir()
	plant(t, host, map[string]string{"sub/x": "1"})
	before := harvest(t, host)
	w := openOn(t, host, func(o *workspace.Options) {
		o.Mounts = append(o.Mounts, workspace.HostMount{HostPath: filepath.Join(host, "sub"), MountPath: "q"})
	})
	edits(map[string]string{"q/new": "2"}, "p/sub")(t, w.Root())
	for _, dryRun := range []bool{true, false} {
		done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: t.TempDir(), DryRun: dryRun, Force: true})
		_, conflicts := reasons(done)
		want := []string{`p/sub: is gone from the workspace, and "q" goes there on the host`}
		if diff := cmp.Diff(want, conflicts); diff != "" || !errors.Is(err, workspace.ErrConflict) {
			t.Errorf("%v, conflicts (-want +got):\n%s", err, diff)
		}
	}
	if diff := cmp.Diff(before, harvest(t, host)); diff != "" {
		t.Errorf("the host (-before +after):\n%s", diff)
	}
}

// What went one way is not what was mounted the other way, and is not written over again and again.
func TestWriteBack_TwoMountsOfOneFolderDoNotOverwriteEachOther(t *testing.T) {
	host, state := t.TempDir(), t.TempDir()
	plant(t, host, map[string]string{"x": "1"})
	w := openOn(t, host, func(o *workspace.Options) {
		o.Mounts = append(o.Mounts, workspace.HostMount{HostPath: host, MountPath: "q"})
	})
	plant(t, w.Root(), map[string]string{"p/x": "2"})
	_, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state})
	must(t, err)
	plant(t, w.Root(), map[string]string{"q/x": "3"})
	if _, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("writing the other way: %v, want a conflict", err)
	}
	_, err = w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state, Force: true})
	must(t, err)
	done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state})
	must(t, err)
	if got := harvest(t, host)["x"]; got != "0644 3" || len(done.Written) > 0 {
		t.Errorf("the host has %q, and %v were written again", got, done.Written)
	}
}

func TestWriteBack_DryRunLeavesTheStateFolderUnchanged(t *testing.T) {
	host, state := t.TempDir(), t.TempDir()
	plant(t, host, map[string]string{"x": "1"})
	w := openOn(t, host, nil)
	plant(t, w.Root(), map[string]string{"p/x": "2"})
	_, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state, DryRun: true})
	must(t, err)
	if got := harvest(t, state); len(got) > 0 {
		t.Errorf("there is %v now", got)
	}
}

// A result is shown on a terminal, and an agent chooses names.
func TestWriteBackResult_StringEscapesControlCharacters(t *testing.T) {
	r := workspace.WriteBackResult{
		Written:   []workspace.HostPath{{Path: "a\x1b[2J", Host: "/h/a\x1b[2J"}},
		Deleted:   []workspace.HostPath{{Path: "b\nwritten c", Host: "/h/b\n"}},
		Skipped:   []workspace.SkippedPath{{Path: "c\r", Reason: "\x1b"}},
		Conflicts: []workspace.Conflict{{Path: "d\n", Reason: "e\x1b", Aside: "/s/d\n"}},
	}
	text := r.String()
	if got := strings.Count(text, "\n"); got != 5 || strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("%d lines, want 5: %q", got, text)
	}
	text = advice.Text(&workspace.ConflictError{Conflicts: r.Conflicts})
	if got := strings.Count(text, "\n"); got != 2 || strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("%d line ends, want 2: %q", got, text)
	}
}
