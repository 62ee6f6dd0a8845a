// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

// TestRoot_AsOrdinaryUser runs what depends on permissions without root's rights.
func TestRoot_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^Test(Rename|Remove|RemoveAll|SetMeta|OpenFile|Root_(VeryDeep|Swapped|Lists|Paths|Changes|Locked|Locks|Widened)|Walk_(FindsEntries|Reports))")
}

// oldKernel runs a test as on a kernel that lacks the newer system calls.
func oldKernel(t *testing.T, test func(t *testing.T)) {
	t.Run("old kernel", func(t *testing.T) {
		noOpenat2.Store(true)
		noListxattrat.Store(true)
		defer noOpenat2.Store(false)
		defer noListxattrat.Store(false)
		test(t)
	})
}

func TestRoot_OldKernelsRefuseTheSame(t *testing.T) {
	oldKernel(t, func(t *testing.T) {
		TestRoot_PathsThatLeaveItAreRefused(t)
		TestMkdirAll_FailsAtAnEntryThatIsNotAFolder(t)
		TestSetMeta_SetsAndRemovesExtendedAttributes(t)
		TestWalk_AgreesWithLstat(t)
	})
}

func TestRoot_NamesAreBytes(t *testing.T) {
	r := openTemp(t)
	for _, name := range []string{"\xff\xfe", "new\nline", "tab\t", " ", "-rf", "*", `back\slash`, "..a", "\x01", strings.Repeat("\xf0", 255)} {
		must(t, r.Mkdir(name, 0o755))
		path := name + "/" + name
		write(t, r, path, name)
		if got := read(t, r, path); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
		must(t, r.Symlink(name, name+"/link"))
		if got := lstat(t, r, name+"/link").Target; got != name {
			t.Errorf("got target %q, want %q", got, name)
		}
		must(t, r.SetMeta(Entry{Path: path, Perm: 0o640, UID: lstat(t, r, path).UID, GID: lstat(t, r, path).GID}))
	}
	for _, e := range all(t, r) {
		if diff := cmp.Diff(lstat(t, r, e.Path), e); diff != "" {
			t.Errorf("%q (-lstat +walk):\n%s", e.Path, diff)
		}
	}
	if err := r.Mkdir(strings.Repeat("x", 256), 0o755); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("got error %v, want %v", err, unix.ENAMETOOLONG)
	}
}

func TestRoot_VeryDeepTree(t *testing.T) {
	for name, c := range map[string]struct {
		name  string
		depth int
	}{
		"many folders": {"dir", testkit.Size(1500, 5000)},
		"long names":   {strings.Repeat("n", 255), 60},
	} {
		t.Run(name, func(t *testing.T) {
			r := openTemp(t)
			path := strings.TrimSuffix(strings.Repeat(c.name+"/", c.depth), "/")
			must(t, r.MkdirAll(path, 0o755))
			write(t, r, path+"/file", "content")
			must(t, r.Rename(path+"/file", path+"/moved"))
			if got := read(t, r, path+"/moved"); got != "content" {
				t.Errorf("got %q, want %q", got, "content")
			}
			got, err := r.Walk(t.Context(), &WalkOptions{NoXattrs: true})
			must(t, err)
			if len(got) != c.depth+1 {
				t.Errorf("got %d entries, want %d", len(got), c.depth+1)
			}
			if last := got[len(got)-1].Path; last != path+"/moved" {
				t.Errorf("the last path has %d bytes, want %d", len(last), len(path)+6)
			}
			must(t, r.RemoveAll(c.name))
			if left := all(t, r); len(left) > 0 {
				t.Errorf("left: %d entries", len(left))
			}
		})
	}
}

func TestRoot_ListsSpecialFilesButDoesNotOpenThem(t *testing.T) {
	r := openTemp(t)
	must(t, r.Mkfifo("pipe", 0o600))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(r.Dir(), "socket"), Net: "unix"})
	must(t, err)
	defer listener.Close()
	want := map[string]Kind{"pipe": Pipe, "socket": Socket}
	if unix.Mknod(filepath.Join(r.Dir(), "null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) == nil { // only root may
		want["null"] = Device
	}
	for path, kind := range want {
		if got := lstat(t, r, path).Kind; got != kind {
			t.Errorf("%s: got %s, want %s", path, got, kind)
		}
		if err := opened(r.OpenFile(path)); !errors.Is(err, ErrNotFile) {
			t.Errorf("%s: got error %v, want %v", path, err, ErrNotFile)
		}
	}
	all(t, r)
	must(t, r.RemoveAll("pipe"))
}

func TestOpenFile_NeverReleasesTheWriterOfAPipe(t *testing.T) {
	r := openTemp(t)
	must(t, r.Mkfifo("pipe", 0o600))
	met := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(filepath.Join(r.Dir(), "pipe"), os.O_WRONLY, 0) // blocks until a reader opens it
		if err == nil {
			err = f.Close()
		}
		met <- err
	}()
	for range 100 {
		_ = opened(r.OpenFile("pipe"))
	}
	select {
	case err := <-met:
		t.Errorf("the writer was let go: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	f, err := os.OpenFile(filepath.Join(r.Dir(), "pipe"), os.O_RDWR, 0)
	must(t, err)
	must(t, <-met, f.Close())
}

func TestSetMeta_SetsMetadata(t *testing.T) {
	someone := uint32(os.Getuid())
	if someone == 0 {
		someone = testkit.Nobody
	}
	cases := map[string]Entry{
		"mode of a file":        {Path: "file", Kind: File, Perm: 0o640},
		"no mode at all":        {Path: "file", Kind: File},
		"set-id bits":           {Path: "file", Kind: File, Perm: 0o755 | fs.ModeSetuid | fs.ModeSetgid, UID: someone, GID: someone},
		"sticky folder":         {Path: "folder", Kind: Dir, Perm: 0o777 | fs.ModeSticky},
		"folder that is locked": {Path: "folder", Kind: Dir, ModTime: 5},
		"nanoseconds":           {Path: "file", Kind: File, Perm: 0o600, ModTime: 1_234_567_890_123_456_789},
		"before 1970":           {Path: "file", Kind: File, Perm: 0o600, ModTime: -1_500_000_001},
		"of a link":             {Path: "link", Kind: Link, Perm: 0o777, Target: "file", ModTime: 42, UID: someone, GID: someone},
		"of a dangling link":    {Path: "dangling", Kind: Link, Perm: 0o777, Target: "missing", ModTime: 42},
		"of a pipe":             {Path: "pipe", Kind: Pipe, Perm: 0o444, ModTime: 42},
		"below a folder":        {Path: "folder/file", Kind: File, Perm: 0o400, ModTime: 42},
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			r := openTemp(t)
			write(t, r, "file", "content")
			must(t, r.Mkdir("folder", 0o755), r.Symlink("file", "link"), r.Symlink("missing", "dangling"), r.Mkfifo("pipe", 0o600))
			write(t, r, "folder/file", "content")
			defer r.RemoveAll("folder")
			now := lstat(t, r, want.Path)
			want.Size = now.Size
			if want.UID == 0 {
				want.UID, want.GID = now.UID, now.GID
			}
			target := lstat(t, r, "file")
			must(t, r.SetMeta(want))
			got := lstat(t, r, want.Path)
			got.Stamp = Stamp{}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want.Kind == Link && lstat(t, r, "file") != target {
				t.Error("the link was followed")
			}
		})
	}
}

func TestSetMeta_LeavesCorrectMetadataAlone(t *testing.T) {
	r := openTemp(t)
	write(t, r, "file", "content")
	e := lstat(t, r, "file")
	must(t, r.SetMeta(e))
	if got := lstat(t, r, "file"); !e.Untouched(got) {
		t.Errorf("got %+v, want %+v", got, e)
	}
}

func TestSetMeta_RefusesAnotherKind(t *testing.T) {
	r := openTemp(t)
	must(t, r.Symlink("file", "link"))
	write(t, r, "file", "content")
	before := lstat(t, r, "file")
	if err := r.SetMeta(Entry{Path: "link", Kind: File, Perm: 0o777}); !errors.Is(err, ErrKind) {
		t.Errorf("got error %v, want %v", err, ErrKind)
	}
	if got := lstat(t, r, "file"); got != before {
		t.Errorf("got %+v, want %+v", got, before)
	}
}

func TestSetMeta_SetsAndRemovesExtendedAttributes(t *testing.T) {
	for _, path := range []string{"file", "folder"} {
		r := openTemp(t)
		write(t, r, "file", "content")
		must(t, r.Mkdir("folder", 0o755))
		full := filepath.Join(r.Dir(), path)
		if err := unix.Setxattr(full, "user.old", []byte("1"), 0); errors.Is(err, unix.EOPNOTSUPP) {
			t.Skip("the file system has no extended attributes: set TMPDIR to a folder on ext4")
		}
		must(t, unix.Setxattr(full, "user.both", []byte("1"), 0))
		old := lstat(t, r, path)
		if attrs, err := r.Xattrs(path); attrs != old.Xattrs || attrs == "" || err != nil {
			t.Errorf("got %q, %v, want %q", attrs, err, old.Xattrs)
		}
		for _, e := range all(t, r) {
			if e.Path == path && e != old {
				t.Errorf("got %+v from Walk, want %+v", e, old)
			}
		}
		for _, perm := range []fs.FileMode{0o700, 0} { // which is no obstacle for an owner
			want := old
			want.Perm = perm
			want.Xattrs = encodeXattrs(map[string]string{"user.both": "2", "user.new": strings.Repeat("\x00", 300), "user.empty": ""})
			must(t, r.SetMeta(want))
			if got := lstat(t, r, path); !got.Same(want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			old.Perm = perm
			must(t, r.SetMeta(old))
			if got := lstat(t, r, path); !got.Same(old) {
				t.Errorf("got %+v, want %+v", got, old)
			}
		}
		if err := r.SetMeta(Entry{Path: path, Kind: old.Kind, Perm: 0o700, UID: old.UID, GID: old.GID, Xattrs: "\xff"}); !errors.Is(err, errXattrs) {
			t.Errorf("got error %v, want %v", err, errXattrs)
		}
	}
}

func FuzzXattrs(f *testing.F) {
	f.Add("")
	f.Add(encodeXattrs(map[string]string{"user.a": "b", "user.": ""}))
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a")
	f.Fuzz(func(t *testing.T, encoded string) {
		attrs, err := decodeXattrs(encoded)
		if err != nil {
			return
		}
		again, err := decodeXattrs(encodeXattrs(attrs))
		if diff := cmp.Diff(attrs, again); diff != "" || err != nil {
			t.Errorf("%v (-first +second):\n%s", err, diff)
		}
	})
}
