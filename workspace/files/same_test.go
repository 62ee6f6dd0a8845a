// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace/files"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// seen is everything that can be read in a file system, times and the sizes of folders left out.
func seen(fsys files.FS) map[string]string {
	found := map[string]string{}
	_ = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			found[name] = classOf(err)
			return nil
		}
		info, _ := fsys.Lstat(name)
		text := fmt.Sprint(info.Mode(), " ", info.Name(), " ", d.Name(), " ", d.Type())
		content, err := fsys.ReadFile(name)
		text += fmt.Sprintf(" %q %s", content, classOf(err))
		target, err := fsys.ReadLink(name)
		text += fmt.Sprintf(" %q %s", target, classOf(err))
		led, err := fsys.Stat(name)
		if text += " " + classOf(err); err == nil {
			text += fmt.Sprint(" ", led.Mode(), " ", led.Name())
		}
		if !info.IsDir() {
			text += fmt.Sprint(" ", info.Size())
		}
		found[name] = text
		return nil
	})
	return found
}

// A tool that was tested in memory must do the same in a folder.
func TestMemFS_BehavesLikeDirFS(t *testing.T) {
	names := rapid.SampledFrom([]string{
		"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "l", "l/a", "d/l", "d/l/b", "l/l", ".", "..", "a/..", "", "a/", "/a", "x\xff",
		"longname", "d/e/f/g", "l/e/a/b",
	})
	targets := rapid.SampledFrom([]string{"a", "d", ".", "..", "../a", "d/e", "e", "l", "none", "d/../a", "/etc", "d/l", "none/../a", "a/../b", "./d/", "../../x"})
	limits := &files.Options{MaxDepth: 4, MaxSegment: 7, MaxWrite: 8, MaxRead: 7}
	rapid.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		must(t, os.Chmod(top, 0o755))
		dir, err := files.OpenDirFS(top, limits)
		must(t, err)
		defer func() { _ = dir.Close() }()
		mem := files.NewMemFS(limits)
		recorders := []*files.Recorder{files.NewRecorder(dir), files.NewRecorder(mem)}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			do := rapid.IntRange(0, 9).Draw(rt, "do")
			name, to, target := names.Draw(rt, "name"), names.Draw(rt, "to"), targets.Draw(rt, "target")
			opts := &files.WriteOptions{
				CreateOnly: rapid.Bool().Draw(rt, "create"), Append: rapid.Bool().Draw(rt, "append"),
				Perm: rapid.SampledFrom([]fs.FileMode{0, 0o755, 0o444, 0o600}).Draw(rt, "perm"),
			}
			data := strings.Repeat("x", rapid.IntRange(0, 9).Draw(rt, "size"))
			before := seen(mem)
			var got [2]string
			for i, r := range recorders {
				switch do {
				case 0, 1, 2, 3:
					got[i] = classOf(r.WriteFile(name, []byte(data), opts))
				case 4:
					got[i] = classOf(r.Mkdir(name))
				case 5:
					got[i] = classOf(r.Remove(name))
				case 6, 7:
					got[i] = classOf(r.Rename(name, to))
				default: // only where it cannot fail
					if at := filepath.Join(top, "l"); i == 0 {
						got[i] = fmt.Sprint(os.Symlink(target, at) == nil)
					} else {
						got[i] = fmt.Sprint(mem.Symlink(target, "l") == nil)
					}
				}
			}
			if got[0] != got[1] {
				rt.Fatalf("%d %q %q %+v: the folder returns %s, memory %s", do, name, to, opts, got[0], got[1])
			}
			after := seen(mem)
			if diff := cmp.Diff(seen(dir), after); diff != "" {
				rt.Fatalf("%d %q %q %+v (-folder +memory):\n%s", do, name, to, opts, diff)
			}
			if diff := cmp.Diff(before, after); do < 8 && got[0] != "none" && diff != "" {
				rt.Fatalf("%d %q %q %+v was refused (%s), and has changed:\n%s", do, name, to, opts, got[0], diff)
			}
			if diff := cmp.Diff(recorders[0].Written(), recorders[1].Written()); diff != "" {
				rt.Fatalf("%d %q %q %+v, recorded (-folder +memory):\n%s", do, name, to, opts, diff)
			}
		}
	})
}
