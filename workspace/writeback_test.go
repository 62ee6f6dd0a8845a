// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace"
)

// harvest is the opposite of plant, with permissions: "0644 content", "0755/" for a folder.
func harvest(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, at)
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			found[rel+"/"] = fmt.Sprintf("%04o", mode(info))
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(at)
			found[rel] = "-> " + target
			return err
		case e.Type() == 0:
			content, err := os.ReadFile(at)
			found[rel] = fmt.Sprintf("%04o %s", mode(info), content)
			return err
		default:
			found[rel] = e.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func mode(info fs.FileInfo) uint32 {
	m := uint32(info.Mode().Perm())
	if info.Mode()&fs.ModeSetuid != 0 {
		m |= 0o4000
	}
	if info.Mode()&fs.ModeSetgid != 0 {
		m |= 0o2000
	}
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// skips and conflicts in the form path: reason.
func reasons(r workspace.WriteBackResult) (skipped, conflicts []string) {
	for _, s := range r.Skipped {
		skipped = append(skipped, s.Path+": "+s.Reason)
	}
	for _, c := range r.Conflicts {
		conflicts = append(conflicts, c.Path+": "+c.Reason)
	}
	return skipped, conflicts
}

// A writeBackCase has a host that is mounted at p, and what is then done to both sides.
type writeBackCase struct {
	host      map[string]string
	mount     workspace.HostMount
	agent     func(t *testing.T, p string) // p is the mount in the workspace
	meanwhile func(t *testing.T, host string)
	opts      workspace.WriteBackOptions
	want      map[string]string // what the host is then; nil means what it was
	skipped   []string
	conflicts []string
}

func edits(files map[string]string, gone ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		for _, name := range gone {
			must(t, os.RemoveAll(filepath.Join(dir, name)))
		}
		plant(t, dir, files)
	}
}

func (c *writeBackCase) run(t *testing.T) {
	host, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	plant(t, host, c.host)
	w := openOn(t, host, func(o *workspace.Options) {
		c.mount.HostPath, c.mount.MountPath = host, "p"
		o.Mounts = []workspace.HostMount{c.mount}
	})
	if c.agent != nil {
		c.agent(t, filepath.Join(w.Root(), "p"))
	}
	if c.meanwhile != nil {
		c.meanwhile(t, host)
	}
	before := harvest(t, host)
	opts := c.opts
	opts.State, opts.DryRun = state, true
	planned, dryErr := w.WriteBack(t.Context(), &opts)
	if diff := cmp.Diff(before, harvest(t, host)); diff != "" {
		t.Errorf("a dry run has changed the host (-before +after):\n%s", diff)
	}
	if _, err := os.Lstat(state); err == nil {
		t.Error("a dry run has made the folder for journals")
	}
	opts.DryRun = false
	done, err := w.WriteBack(t.Context(), &opts)
	c.check(t, done, err)
	checkDryRun(t, planned, dryErr, done, err)
	want := c.want
	if want == nil {
		want = before
	}
	if diff := cmp.Diff(want, harvest(t, host)); diff != "" {
		t.Errorf("the host afterwards (-want +got):\n%s", diff)
	}
	checkNothingLeft(t, state, done)
}

func (c *writeBackCase) check(t *testing.T, done workspace.WriteBackResult, err error) {
	t.Helper()
	skipped, conflicts := reasons(done)
	if diff := cmp.Diff(c.skipped, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.conflicts, conflicts); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	if refused := len(c.conflicts) > 0 && c.want == nil; refused != errors.Is(err, workspace.ErrConflict) || !refused && err != nil {
		t.Errorf("error: %v, want a conflict: %t", err, refused)
	}
}

// checkDryRun makes sure that the dry run reported what then happened, but for where things were put aside.
func checkDryRun(t *testing.T, planned workspace.WriteBackResult, plannedErr error, done workspace.WriteBackResult, err error) {
	t.Helper()
	planned.DryRun, planned.Aside, done.Aside = false, "", ""
	for i := range done.Conflicts {
		done.Conflicts[i].Aside = ""
	}
	if diff := cmp.Diff(planned, done); diff != "" {
		t.Errorf("the dry run reported something else (-dry run +done):\n%s", diff)
	}
	if advice.Text(plannedErr) != advice.Text(err) {
		t.Errorf("the dry run failed with %v, the write-back with %v", plannedErr, err)
	}
}

// checkNothingLeft makes sure that only what was put aside stays in the folder of the journals.
func checkNothingLeft(t *testing.T, state string, done workspace.WriteBackResult) {
	t.Helper()
	left, err := os.ReadDir(state)
	if err != nil {
		return
	}
	for _, e := range left {
		if name := e.Name(); name != "lock" && filepath.Join(state, name) != done.Aside && !strings.HasPrefix(name, "aside-") {
			t.Errorf("%s is left among the journals", name)
		}
	}
}

var writeBackCases = map[string]writeBackCase{
	"nothing has changed": {host: map[string]string{"a": "1", "d/b": "2"}},
	"files, folders and links": {
		host: map[string]string{"a": "1", "d/b": "2", "gone/deep/x": "3", "l": "-> a"},
		agent: edits(map[string]string{
			"a": "one", "d/c/new": "4", "bare/": "", "l": "-> d/b", "d/up": "-> ../a", "zero": "",
		}, "gone", "l"),
		want: map[string]string{
			"a": "0644 one", "d/": "0755", "d/b": "0644 2", "d/c/": "0755", "d/c/new": "0644 4", "bare/": "0755",
			"l": "-> d/b", "d/up": "-> ../a", "zero": "0644 ",
		},
	},
	"a file becomes a folder and the other way round": {
		host:  map[string]string{"f": "1", "d/x/y": "2"},
		agent: edits(map[string]string{"f/in": "3", "d": "4"}, "f", "d"),
		want:  map[string]string{"f/": "0755", "f/in": "0644 3", "d": "0644 4"},
	},
	"permissions": {
		host: map[string]string{"run": "1", "d/x": "1"},
		agent: func(t *testing.T, p string) {
			must(t, os.Chmod(filepath.Join(p, "run"), 0o755))
			must(t, os.Chmod(filepath.Join(p, "d"), 0o700))
		},
		want: map[string]string{"run": "0755 1", "d/": "0700", "d/x": "0644 1"},
	},
	"permissions that only the host changed stay": {
		host:      map[string]string{"a": "1"},
		agent:     edits(map[string]string{"a": "2"}),
		meanwhile: func(t *testing.T, host string) { must(t, os.Chmod(filepath.Join(host, "a"), 0o600)) },
		want:      map[string]string{"a": "0600 2"},
	},
	"both sides made the same change": {
		host:      map[string]string{"a": "1", "gone": "1"},
		agent:     edits(map[string]string{"a": "2", "b": "2"}, "gone"),
		meanwhile: edits(map[string]string{"a": "2", "b": "2"}, "gone"),
	},
	"the host changed other files": {
		host:      map[string]string{"a": "1", "b": "1"},
		agent:     edits(map[string]string{"a": "2"}),
		meanwhile: edits(map[string]string{"b": "2", "c": "2"}),
		want:      map[string]string{"a": "0644 2", "b": "0644 2", "c": "0644 2"},
	},
	"conflicts of all kinds": {
		host:      map[string]string{"both": "1", "deleted": "1", "gone": "1", "kind": "1", "link": "-> both", "fine": "1"},
		agent:     edits(map[string]string{"both": "2", "gone": "2", "kind": "2", "made": "2", "link": "-> kind", "fine": "2"}, "deleted", "link"),
		meanwhile: edits(map[string]string{"both": "3", "deleted": "3", "kind/": "", "made": "3", "link": "-> fine"}, "gone", "kind", "link"),
		conflicts: []string{
			"p/both: was changed in the workspace, and on the host",
			"p/deleted: was deleted in the workspace, and changed on the host",
			"p/gone: was changed in the workspace, and is gone from the host",
			"p/kind: is a folder on the host now, and a file was mounted",
			"p/link: was changed in the workspace, and on the host",
			"p/made: was made in the workspace, and a file on the host that is not the same",
		},
	},
	"conflicts that are forced": {
		host:      map[string]string{"both": "1", "deleted": "1", "gone": "1"},
		agent:     edits(map[string]string{"both": "2", "gone": "2", "made": "2"}, "deleted"),
		meanwhile: edits(map[string]string{"both": "3", "deleted": "3", "made": "3"}, "gone"),
		opts:      workspace.WriteBackOptions{Force: true},
		want:      map[string]string{"both": "0644 2", "gone": "0644 2", "made": "0644 2"},
		conflicts: []string{
			"p/both: was changed in the workspace, and on the host",
			"p/deleted: was deleted in the workspace, and changed on the host",
			"p/gone: was changed in the workspace, and is gone from the host",
			"p/made: was made in the workspace, and a file on the host that is not the same",
		},
	},
	"a folder of the host is never forced away": {
		host:      map[string]string{"kind": "1"},
		agent:     edits(map[string]string{"kind": "2"}),
		meanwhile: edits(map[string]string{"kind/in": "3"}, "kind"),
		opts:      workspace.WriteBackOptions{Force: true},
		conflicts: []string{"p/kind: is a folder on the host now, and a file was mounted"},
	},
	"a folder became a link on the host": {
		host:      map[string]string{"d/x": "1", "e/x": "1"},
		agent:     edits(map[string]string{"d/x": "2", "d/new": "2"}),
		meanwhile: edits(map[string]string{"d": "-> e"}, "d"),
		opts:      workspace.WriteBackOptions{Force: true},
		conflicts: []string{
			"p/d/new: is behind a link or a file on the host",
			"p/d/x: is behind a link or a file on the host",
		},
	},
	"what the mount left out is not touched": {
		host:  map[string]string{"a.py": "1", "key.env": "secret", "d/key.env": "secret", "d/b.py": "1"},
		mount: workspace.HostMount{Exclude: []string{"**/*.env"}},
		agent: edits(map[string]string{"key.env": "mine", "new.env": "mine"}, "d"),
		want: map[string]string{
			"a.py": "0644 1", "key.env": "0644 secret", "new.env": "0644 mine", "d/": "0755", "d/key.env": "0644 secret",
		},
		opts: workspace.WriteBackOptions{Force: true},
		skipped: []string{
			`p/d: stays, because the host has "key.env" in it`,
			"p/key.env: is on the host too, where the mount left it out",
		},
	},
	"a folder with left-out files does not become a file": {
		host:      map[string]string{"d/b.py": "1", "d/x.env": "secret"},
		mount:     workspace.HostMount{Exclude: []string{"**/*.env"}},
		agent:     edits(map[string]string{"d": "file"}, "d"),
		opts:      workspace.WriteBackOptions{Force: true},
		conflicts: []string{`p/d: has become a file in the workspace; the folder stays, because the host has "x.env" in it`},
	},
	"what is not asked for": {
		host:  map[string]string{"src/a": "1", "doc/a": "1"},
		agent: edits(map[string]string{"src/a": "2", "src/deep/er/b": "2", "doc/a": "2", "top": "2"}),
		opts:  workspace.WriteBackOptions{Only: []string{"p/src/**/b", "p/to*"}},
		want: map[string]string{
			"src/": "0755", "src/a": "0644 1", "src/deep/": "0755", "src/deep/er/": "0755", "src/deep/er/b": "0644 2",
			"doc/": "0755", "doc/a": "0644 1", "top": "0644 2",
		},
	},
	"no deletions": {
		host:  map[string]string{"a": "1", "d/b": "1", "e/c": "1"},
		agent: edits(map[string]string{"new": "2", "e": "2"}, "a", "d", "e"),
		opts:  workspace.WriteBackOptions{NoDelete: true},
		want:  map[string]string{"a": "0644 1", "d/": "0755", "d/b": "0644 1", "e/": "0755", "e/c": "0644 1", "new": "0644 2"},
		skipped: []string{
			"p/a: was deleted, and NoDelete is set",
			"p/d: was deleted, and NoDelete is set",
			"p/d/b: was deleted, and NoDelete is set",
			`p/e: stays, because the host has "c" in it`,
			"p/e/c: was deleted, and NoDelete is set",
		},
	},
	"links that lead out": {
		host: map[string]string{"d/x": "1", "a": "1"},
		agent: edits(map[string]string{
			"abs": "-> /etc/passwd", "up": "-> ../x", "d/up2": "-> ../../x", "through": "-> up/x", "sly": "-> d/../a",
			"self": "-> self", "fine": "-> d/x", "dot": "-> .", "chain": "-> dot/up", "a": "-> ../../b",
		}, "a"),
		want: map[string]string{"d/": "0755", "d/x": "0644 1", "a": "0644 1", "self": "-> self", "fine": "-> d/x", "dot": "-> ."},
		skipped: []string{
			`p/a: is a link that leads out of the target, to "../../b"`,
			`p/abs: is a link that leads out of the target, to "/etc/passwd"`,
			`p/chain: is a link that leads out of the target, to "dot/up"`,
			`p/d/up2: is a link that leads out of the target, to "../../x"`,
			`p/sly: is a link that leads out of the target, to "d/../a"`,
			`p/through: is a link that leads out of the target, to "up/x"`,
			`p/up: is a link that leads out of the target, to "../x"`,
		},
	},
	"a link to a link of the host that leads out": {
		host:      map[string]string{"a": "1"},
		agent:     edits(map[string]string{"l": "-> ext/passwd"}),
		meanwhile: edits(map[string]string{"ext": "-> /etc"}),
		skipped:   []string{`p/l: is a link that leads out of the target, to "ext/passwd"`},
	},
	"the mounted folder itself is deleted": {
		host:    map[string]string{"a": "1", "d/b": "1"},
		agent:   func(t *testing.T, p string) { must(t, os.RemoveAll(p)) },
		want:    map[string]string{},
		skipped: []string{"p: is the mounted folder itself, which stays as it is"},
	},
	"a file behind a link that was followed": {
		host:  map[string]string{"real": "1", "l": "-> real", "d/x": "1", "e": "-> d"},
		mount: workspace.HostMount{FollowSymlinks: true},
		agent: edits(map[string]string{"l": "2", "e/x": "2"}),
		conflicts: []string{
			"p/e/x: is behind a link or a file on the host",
			"p/l: is a link on the host now, and a file was mounted",
		},
	},
	"names that are not UTF-8": {
		host:  map[string]string{"caf\xe9": "1"},
		agent: edits(map[string]string{"caf\xe9": "2", "\xff/\xfe": "2"}),
		want:  map[string]string{"caf\xe9": "0644 2", "\xff/": "0755", "\xff/\xfe": "0644 2"},
	},
}

func TestWriteBack_Cases(t *testing.T) {
	for name, c := range writeBackCases {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

func TestWriteBack_ForceKeepsTheHostSideOfAConflict(t *testing.T) {
	host, state := t.TempDir(), t.TempDir()
	plant(t, host, map[string]string{"d/a": "mounted", "b": "mounted"})
	w := openOn(t, host, nil)
	plant(t, filepath.Join(w.Root(), "p"), map[string]string{"d/a": "agent's", "b": "agent's"})
	plant(t, host, map[string]string{"d/a": "host's"})
	done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{Force: true, State: state})
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Conflicts) != 1 {
		t.Fatalf("conflicts: %+v, want one", done.Conflicts)
	}
	if got, err := os.ReadFile(done.Conflicts[0].Aside); string(got) != "host's" || err != nil {
		t.Errorf("aside there is %q, %v", got, err)
	}
	if rel, err := filepath.Rel(done.Aside, done.Conflicts[0].Aside); err != nil || !filepath.IsLocal(rel) {
		t.Errorf("%s is not in %s", done.Conflicts[0].Aside, done.Aside)
	}
	var files []string
	for name := range maps.Keys(harvest(t, done.Aside)) {
		if strings.HasSuffix(name, "/a") || strings.HasSuffix(name, "/b") {
			files = append(files, name)
		}
	}
	if len(files) != 1 {
		t.Errorf("aside are %q, want only the side of the conflict", files)
	}
	if !strings.Contains(done.String(), done.Conflicts[0].Aside) {
		t.Errorf("the text does not name the place:\n%s", done)
	}
	if _, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state}); err != nil {
		t.Errorf("writing back again: %v", err)
	}
	if got, err := os.ReadFile(done.Conflicts[0].Aside); string(got) != "host's" || err != nil {
		t.Errorf("after another write-back there is %q, %v", got, err)
	}
}

// What was written is reported also if something of ours cannot be removed after that.
func TestWriteBack_FailedCleanupStillReturnsTheResult(t *testing.T) {
	host, state := t.TempDir(), t.TempDir()
	plant(t, host, map[string]string{"a": "1"})
	w := openOn(t, host, nil)
	plant(t, w.Root(), map[string]string{"p/a": "2"})
	defer workspace.SetTestPoint(func(string) {})
	workspace.SetTestPoint(func(point string) {
		if point == "committed" { // the name that the journal gets before it is removed is taken
			runs, _ := filepath.Glob(filepath.Join(state, "run-*"))
			must(t, os.MkdirAll(filepath.Join(state, "done-"+strings.TrimPrefix(filepath.Base(runs[0]), "run-"), "x"), 0o700))
		}
	})
	done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state})
	if err == nil || !strings.Contains(advice.Text(err), "everything was written back") || len(done.Written) != 1 {
		t.Errorf("%+v, %v, want what was written, and an error", done, err)
	}
	if got := harvest(t, host)["a"]; got != "0644 2" {
		t.Errorf("the host has %q", got)
	}
	workspace.SetTestPoint(func(string) {})
	again, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state})
	if err != nil || len(again.Recovered) != 1 || len(again.Written) != 0 {
		t.Errorf("the next one: %+v, %v", again, err)
	}
}
