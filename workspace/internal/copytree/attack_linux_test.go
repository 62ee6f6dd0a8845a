// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

// Most people are not root, and root is allowed what they are not.
func TestCopy_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^Test(Copy_(Keeps|EndsWith|Globs|SpecialFiles|Links|ExchangedFolder|Unreadable|Holes)|Plan_ExcludedFolder)")
}

func TestCopy_SpecialFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string) error
		want string
	}{
		"a pipe": {func(_ *testing.T, path string) error { return unix.Mkfifo(path, 0o600) }, "is a pipe"},
		"the null device": {func(t *testing.T, path string) error {
			if os.Getuid() != 0 {
				t.Skip("only root makes devices: run as root")
			}
			return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		}, "is a device"},
		"a socket": {func(t *testing.T, path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return err
		}, "is a socket"},
		"a set-user-id file":  {setID(os.ModeSetuid), "set-id"},
		"a set-group-id file": {setID(os.ModeSetgid), "set-id"},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := os.MkdirTemp("", "s") // the path of a socket must be short
			must(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(src) })
			write(t, src, "a.txt", "d/b.txt")
			must(t, c.make(t, filepath.Join(src, "d/bad")))
			for path, rel := range map[string]string{".": "d/bad", "d": "bad", "d/bad": ""} {
				dst := t.TempDir()
				_, err = copyInto(t.Context(), t, Source{open(t, src), path}, dst, Options{})
				refused, ok := errors.AsType[*Refusal](err)
				if !ok || !strings.Contains(refused.Reason, c.want) || refused.Path != rel {
					t.Errorf("copying %q: %v, want a refusal of %q that says %q", path, err, rel, c.want)
				}
				if left := paths(t, dst); len(left) > 0 {
					t.Errorf("%q was copied", left)
				}
			}
			if _, _, err := copied(t, src, ".", Options{Exclude: []string{"**/bad"}}); err != nil {
				t.Errorf("it is in the way though it is excluded: %v", err)
			}
		})
	}
}

func setID(bit os.FileMode) func(*testing.T, string) error {
	return func(_ *testing.T, path string) error {
		if err := os.WriteFile(path, []byte("harmless"), 0o600); err != nil {
			return err
		}
		return os.Chmod(path, 0o755|bit)
	}
}

func TestCopy_OmitsSetIDBitsOfFolders(t *testing.T) {
	src := t.TempDir()
	write(t, src, "shared/a.txt")
	must(t, os.Chmod(filepath.Join(src, "shared"), 0o775|os.ModeSetgid))
	dst, _, err := copied(t, src, ".", Options{})
	must(t, err)
	if info, err := os.Stat(filepath.Join(dst, "shared")); err != nil || info.Mode() != os.ModeDir|0o775 {
		t.Errorf("the folder has %v (%v)", info.Mode(), err)
	}
}

func TestPlan_ExcludedFolderIsNeverOpened(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may open every folder; this runs as an ordinary user too")
	}
	src := t.TempDir()
	write(t, src, "a.txt", "secret/key")
	must(t, os.Chmod(filepath.Join(src, "secret"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(src, "secret"), 0o700) })
	for name, opts := range map[string]Options{
		"by its name":             {Exclude: []string{"secret"}},
		"with a slash":            {Exclude: []string{"secret/"}},
		"with stars":              {Exclude: []string{"**/secret/**"}},
		"because it is not asked": {Include: []string{"*.txt"}},
	} {
		if _, sum, err := copied(t, src, ".", opts); err != nil || sum.Files != 1 {
			t.Errorf("%s: %+v, %v", name, sum, err)
		}
	}
	if _, _, err := copied(t, src, ".", Options{}); !errors.Is(err, os.ErrPermission) || !strings.Contains(advice.Text(err), "next: ") {
		t.Errorf("a folder that cannot be read is passed over: %v", err)
	}
}

func TestCopy_UnreadableFileIsAnError(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything; this runs as an ordinary user too")
	}
	src := t.TempDir()
	write(t, src, "a.txt", "mine/closed")
	must(t, os.Chmod(filepath.Join(src, "mine/closed"), 0))
	before, err := os.Stat(filepath.Join(src, "mine/closed"))
	must(t, err)
	_, _, err = copied(t, src, ".", Options{})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(advice.Text(err), "mine/closed") {
		t.Errorf("got %v, want that mine/closed may not be read", err)
	}
	after, err := os.Stat(filepath.Join(src, "mine/closed"))
	must(t, err)
	if was, is := before.Sys().(*unixStat), after.Sys().(*unixStat); was.Ctim != is.Ctim {
		t.Error("a file of the host was touched to read it")
	}
}

func TestCopy_LinksThatLeadOutAreRefused(t *testing.T) {
	for name, links := range map[string][]string{ // pairs of a name and a target; the last is refused
		"absolute":                         {"bad", "/etc/passwd"},
		"absolute and inside":              {"bad", "SRC/a.txt"},
		"up":                               {"bad", "../secret"},
		"up from below":                    {"d/e/bad", "../../../secret"},
		"in and up":                        {"d/bad", "e/../../../secret"},
		"up through another link":          {"d/e/up", "../..", "d/e/bad", "up/../secret"},
		"up through a link that is deeper": {"d/e/top", "../..", "via", "d/e/top", "bad", "via/../secret"},
		"to the folder above":              {"bad", ".."},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			src := filepath.Join(parent, "src")
			write(t, parent, "secret")
			write(t, src, "a.txt", "d/e/b.txt")
			for i := 0; i < len(links); i += 2 {
				must(t, os.Symlink(strings.ReplaceAll(links[i+1], "SRC", src), filepath.Join(src, links[i])))
			}
			bad := links[len(links)-2]
			dst := t.TempDir()
			_, err := copyInto(t.Context(), t, Source{open(t, src), "."}, dst, Options{})
			if refused, ok := errors.AsType[*Refusal](err); !ok || refused.Path != bad {
				t.Errorf("got %v, want a refusal of %q", err, bad)
			}
			if left := paths(t, dst); len(left) > 0 {
				t.Errorf("%q was copied", left)
			}
			if _, _, err := copied(t, src, ".", Options{Exclude: []string{bad}}); err != nil {
				t.Errorf("it is in the way though it is excluded: %v", err)
			}
		})
	}
}

func TestCopy_LinksThatStayInsideAreCopied(t *testing.T) {
	src := t.TempDir()
	write(t, src, "a.txt", "d/e/b.txt")
	for name, target := range map[string]string{
		"d/e/to a": "../../a.txt", "folder": "d/e", "d/e/up": "../..", "through": "d/e/up/a.txt", "here": ".",
		"dangling": "not/there", "circle": "other", "other": "circle", "\xff": "a.txt",
	} {
		must(t, os.Symlink(target, filepath.Join(src, name)))
	}
	_, sum, err := copied(t, src, ".", Options{})
	if err != nil || sum.Links != 9 {
		t.Errorf("%+v, %v; want 9 links", sum, err)
	}
}

// exchange swaps two entries again and again, each time at once, until the test ends.
func exchange(t *testing.T, a, b string) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
					t.Errorf("exchanging: %v", err)
					return
				}
			}
		}
	})
	t.Cleanup(func() { close(done); wg.Wait() })
}

func TestCopy_ExchangedFolderDoesNotEscape(t *testing.T) {
	for name, links := range map[string]struct{ inside, outside, spare string }{
		"a folder for a link":            {"src/d", "", "spare"},
		"a deep folder for a link":       {"src/d/e", "", "spare"},
		"a file for a link":              {"src/d/e/f0", "secret/e/f0", "spare"},
		"a link's target (if followed)":  {"src/link", "secret", "spare"},
		"the source itself for a link":   {"src", "", "spare"},
		"a folder, by a relative target": {"src/d", "../secret", "src/spare"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			for i := range 5 {
				file := "e/f" + string(rune('0'+i))
				write(t, filepath.Join(parent, "src/d"), file)
				write(t, filepath.Join(parent, "secret"), file, file[2:])
				write(t, filepath.Join(parent, "secret/d"), file)
			}
			must(t, os.Symlink("d/e", filepath.Join(parent, "src/link")))
			target := links.outside
			if target == "" {
				target = "secret"
			}
			if !strings.HasPrefix(target, "..") {
				target = filepath.Join(parent, target)
			}
			spare := filepath.Join(parent, links.spare)
			must(t, os.Symlink(target, spare))
			exchange(t, filepath.Join(parent, links.inside), spare)
			attackCopies(t, parent)
		})
	}
}

// attackCopies copies many times what another goroutine exchanges meanwhile, and looks whether a secret came along.
// Every file has its path below its folder as content, so that secrets differ by their marker.
func attackCopies(t *testing.T, parent string) {
	t.Helper()
	for _, file := range paths(t, filepath.Join(parent, "secret")) {
		if !strings.HasSuffix(file, "/") {
			must(t, os.WriteFile(filepath.Join(parent, "secret", file), []byte("SECRET"), 0o644))
		}
	}
	follow := func(string) (Source, error) { return Source{}, &Refusal{Reason: "leads out"} }
	succeeded, n := 0, testkit.Size(100, 5_000)
	for i := range n {
		dst, err := os.MkdirTemp("", "copy")
		must(t, err)
		root := open(t, parent)
		opts := Options{}
		if i%2 == 1 {
			opts.Follow = follow
			opts.Exclude = []string{"link", "spare"}
		}
		if _, err = copyInto(t.Context(), t, Source{root, "src"}, dst, opts); err == nil {
			succeeded++
		}
		for _, file := range paths(t, dst) {
			if info, _ := os.Lstat(filepath.Join(dst, file)); info != nil && info.Mode().IsRegular() {
				if content, _ := os.ReadFile(filepath.Join(dst, file)); strings.Contains(string(content), "SECRET") {
					t.Fatalf("round %d copied a secret as %s", i, file)
				}
			}
		}
		must(t, os.RemoveAll(dst))
		_ = root.Close()
	}
	t.Logf("%d of %d copies succeeded", succeeded, n)
}

func TestCopy_HolesStayHoles(t *testing.T) {
	src := t.TempDir()
	const size = 300 << 20
	f, err := os.Create(filepath.Join(src, "sparse"))
	must(t, err)
	for _, at := range []int64{1 << 20, 100 << 20} {
		_, err := f.WriteAt([]byte("data"), at)
		must(t, err)
	}
	must(t, f.Truncate(size))
	must(t, f.Close())
	must(t, os.Truncate(filepath.Join(src, "sparse"), size))
	must(t, os.WriteFile(filepath.Join(src, "hole only"), nil, 0o644))
	must(t, os.Truncate(filepath.Join(src, "hole only"), 48<<10))
	dst, _, err := copied(t, src, ".", Options{})
	must(t, err)
	for name, want := range map[string]int64{"sparse": size, "hole only": 48 << 10} {
		info, err := os.Stat(filepath.Join(dst, name))
		must(t, err)
		if blocks := info.Sys().(*unixStat).Blocks; info.Size() != want || blocks*512 > 1<<20 {
			t.Errorf("the copy of %s has %d bytes in %d blocks, want %d bytes and few blocks", name, info.Size(), blocks, want)
		}
	}
	if diff := differ(t, filepath.Join(src, "sparse"), filepath.Join(dst, "sparse")); diff {
		t.Error("the copy has other content")
	}
}

func TestCopy_HugeFileIsCopiedInPieces(t *testing.T) {
	src := t.TempDir()
	size := int64(testkit.Size(2*piece+12_345, 3<<30))
	f, err := os.Create(filepath.Join(src, "huge"))
	must(t, err)
	chunk := make([]byte, 1<<20)
	for i := int64(0); i*int64(len(chunk)) < size; i++ {
		chunk[0], chunk[1] = byte(i), byte(i>>8)
		chunk[len(chunk)-1] = 1
		_, err := f.Write(chunk[:min(int64(len(chunk)), size-i*int64(len(chunk)))])
		must(t, err)
	}
	must(t, f.Close())
	dst, sum, err := copied(t, src, ".", Options{})
	must(t, err)
	if sum.Bytes != size || differ(t, filepath.Join(src, "huge"), filepath.Join(dst, "huge")) {
		t.Errorf("%d bytes were copied, want the %d of the source", sum.Bytes, size)
	}
}
