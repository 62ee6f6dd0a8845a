// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestSpec_InvalidIsRefused(t *testing.T) {
	work := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	listen := func(s string) []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(s)} }
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"fine":                       {func(*Spec) {}, ""},
		"a program without a path":   {func(s *Spec) { s.Path = "true" }, `"true" is not absolute`},
		"no program":                 {func(s *Spec) { s.Path = "" }, "not absolute"},
		"a folder with dots":         {func(s *Spec) { s.Dir = "/tmp/../etc" }, "without dots"},
		"a relative mount":           {func(s *Spec) { s.Mounts = []Mount{{Source: "x", Target: "/x"}} }, `"x" is not absolute`},
		"everything mounted":         {func(s *Spec) { s.Mounts = []Mount{{Source: "/"}} }, "whole file system"},
		"a relative file":            {func(s *Spec) { s.Files = []File{{Path: "hosts"}} }, "not absolute"},
		"options in a variable":      {func(s *Spec) { s.Env = []string{"A=b\x00--bind\x00/\x00/host"} }, "zero byte"},
		"options in a path":          {func(s *Spec) { s.Mounts = []Mount{{Source: "/a\x00--bind"}} }, "zero byte"},
		"options in an argument":     {func(s *Spec) { s.Args = []string{"a\x00b"} }, "zero byte"},
		"a listener for everybody":   {func(s *Spec) { s.Listen = listen("0.0.0.0:8080") }, "127.0.0.0/8"},
		"a listener on IPv6":         {func(s *Spec) { s.Listen = listen("[::1]:8080") }, "127.0.0.0/8"},
		"a listener without a port":  {func(s *Spec) { s.Listen = listen("127.0.0.1:0") }, "a port from 1024"},
		"a listener of root alone":   {func(s *Spec) { s.Listen = listen("127.0.0.1:80") }, "a port from 1024"},
		"too many listeners":         {func(s *Spec) { s.Listen = make([]netip.AddrPort, 17) }, "at most 16"},
		"a link out of a writable":   {func(s *Spec) { s.Mounts = []Mount{{Source: work, Writable: true}, {Source: work + "/link"}} }, "a symbolic link in the writable"},
		"a link out of a read-only":  {func(s *Spec) { s.Mounts = []Mount{{Source: work}, {Source: work + "/link"}} }, "a symbolic link is on the way"},
		"nothing below the writable": {func(s *Spec) { s.Mounts = []Mount{{Source: work, Writable: true}, {Source: work + "/none"}} }, "take it out"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Spec{Path: "/bin/true", Dir: "/"}
			c.change(&s)
			err := s.check()
			if err == nil {
				var from sources
				from, err = s.openSources()
				from.close()
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(advice.Text(err), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// User namespaces are closed twice, by bubblewrap and by the filter; only Nested opens them.
func TestSpec_OnlyNestedAllowsUserNamespaces(t *testing.T) {
	for _, nested := range []bool{false, true} {
		args := Spec{Dir: "/", Nested: nested}.arguments(nil, 3, nil)
		if got, want := slices.Contains(args, "--disable-userns"), !nested; got != want {
			t.Errorf("nested %v: bubblewrap forbids user namespaces: got %v, want %v", nested, got, want)
		}
	}
}

// Whatever ids exist and whichever two change places: every id is mapped once, and only those two
// to another.
func TestSwapped_IsAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(0, 5).Draw(t, "first")
		count := rapid.IntRange(1, 30).Draw(t, "count")
		ranges := []idRange{{first, count}, {first + count + rapid.IntRange(0, 5).Draw(t, "gap"), 10}}
		in := func(id int) bool {
			for _, r := range ranges {
				if id >= r.start && id < r.start+r.count {
					return true
				}
			}
			return false
		}
		id := rapid.IntRange(0, 50).Filter(in)
		a, b := id.Draw(t, "a"), id.Draw(t, "b")
		got := map[int]int{}
		for _, m := range swapped(ranges, a, b) {
			for i := range m.Size {
				got[m.ContainerID+i] = m.HostID + i
			}
		}
		want := map[int]int{}
		for id := range 60 {
			if in(id) {
				want[id] = id
			}
		}
		want[a], want[b] = b, a
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestSwapped_MapOfAWholeMachine(t *testing.T) {
	got := swapped([]idRange{{0, 4294967295}}, 0, 65534)
	want := []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: 65534, Size: 1},
		{ContainerID: 1, HostID: 1, Size: 65533},
		{ContainerID: 65534, HostID: 0, Size: 1},
		{ContainerID: 65535, HostID: 65535, Size: 4294901760},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Where a cell cannot be had, the answer says why and what to do, and nothing weaker is started.
func TestSupported_ErrorHasTheNextStep(t *testing.T) {
	dir := testkit.SharedFolder(t)
	for name, c := range map[string]struct{ message, reason, fix string }{
		"user namespaces are forbidden":  {"bwrap: No permissions to create new namespace", "No permissions", "allow user namespaces"},
		"too old":                        {"bwrap: Unknown option --disable-userns", "Unknown option", "0.8 or newer"},
		"a container with a masked proc": {"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "mount proc", "unmasked /proc"},
		"something else":                 {"bwrap: out of luck", "out of luck", "by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			bwrap := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			script := "#!/bin/sh\necho \"" + c.message + "\" >&2\nexit 1\n"
			if err := os.WriteFile(bwrap, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			err := probe(t.Context(), bwrap).err
			unsupported, ok := errors.AsType[*UnsupportedError](err)
			if !ok || !strings.Contains(unsupported.Reason, c.reason) || !strings.Contains(unsupported.Fix, c.fix) {
				t.Errorf("got %v, want %q and %q", err, c.reason, c.fix)
			}
		})
	}
	err := unsupported(&os.PathError{Op: "fork/exec", Path: "/usr/bin/bwrap", Err: syscall.EPERM})
	if e, ok := errors.AsType[*UnsupportedError](err); !ok || !strings.Contains(e.Fix, "CAP_SETUID") {
		t.Errorf("a root that may not become another user: got %v", err)
	}
	err = Supported(t.Context(), filepath.Join(dir, "none"))
	if e, ok := errors.AsType[*UnsupportedError](err); !ok || !strings.Contains(e.Fix, "install the package bubblewrap") {
		t.Errorf("without bubblewrap: got %v", err)
	}
	_, err = Start(t.Context(), Spec{Path: "/bin/true", Bwrap: filepath.Join(dir, "none")})
	if _, ok := errors.AsType[*UnsupportedError](err); !ok {
		t.Errorf("starting without bubblewrap: got %v", err)
	}
}

func TestUnsupportedOn_NamesTheAlternative(t *testing.T) {
	for system, want := range map[string]string{
		"linux": "not built for riscv64", "darwin": "the CLI's own sandbox", "windows": "private environment",
	} {
		if got := advice.Text(UnsupportedOn(system, "riscv64")); !strings.Contains(got, want) || !strings.Contains(got, "\n  next: ") {
			t.Errorf("%s: got %q, want %q in it", system, got, want)
		}
	}
}
