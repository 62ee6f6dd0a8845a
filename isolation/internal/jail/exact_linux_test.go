// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"embed"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/isolation/internal/jail"
)

//go:embed testdata
var golden embed.FS

// The command line of the jail, word by word: bubblewrap's own, and the arguments that it reads from a file. A
// change of it is a change of the isolation.
//
//	go test ./isolation/internal/jail -run TestCell_CommandLineIsExact -update    as root and as an ordinary user
func TestCell_CommandLineIsExact(t *testing.T) {
	requireCells(t)
	bwrap, dir := newShim(t), tree(t, map[string]string{"work/kept/file": "", "read/file": ""})
	bwrap.set(t, shimDump, "")
	user := "user"
	if os.Geteuid() == 0 {
		user = "root"
	} else if !jail.MountsByHandle(t.Context(), "") {
		t.Skip("bubblewrap has no --bind-fd here: use a newer one")
	}
	for _, name := range []string{user, user + "-nested"} {
		s := shellSpec("true")
		s.Bwrap, s.Nested, s.Dir = string(bwrap), name != user, filepath.Join(dir, "work")
		s.Mounts = []jail.Mount{
			{Source: s.Dir, Writable: true}, {Source: filepath.Join(s.Dir, "kept")}, {Source: filepath.Join(dir, "read"), Target: "/opt/read"},
		}
		s.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.2:8080")}
		s.Limits = jail.Limits{Processes: 50, FileSize: 1 << 20}
		s.Files = []jail.File{{Path: "/etc/extra", Data: []byte("x")}}
		output(t, s)
		got, _ := bwrap.get(shimDump)
		compareGolden(t, name+".golden", exactly(got, dir))
	}
	for _, word := range jail.SystemArguments() {
		if strings.HasPrefix(word, "-") && !slices.Contains([]string{"--ro-bind", "--symlink", "--perms", "--dir"}, word) {
			t.Errorf("the system is shown by %s", word)
		}
	}
}

// exactly replaces what differs between machines: the folder of the test, the numbers of files, and what is shown
// of the system.
func exactly(text, dir string) string {
	text = strings.ReplaceAll(text, dir, "DIR")
	for above := filepath.Dir(dir); above != "/"; above = filepath.Dir(above) {
		text = strings.ReplaceAll(text, "--perms\n0755\n--dir\n"+above+"\n", "")
	}
	text = regexp.MustCompile(`-m \d+:\d+:\d+:`).ReplaceAllString(text, "-m DEVICE:INODE:")
	text = strings.Replace(text, strings.Join(jail.SystemArguments(), "\n")+"\n", "SYSTEM\n", 1)
	return text
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := golden.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// User namespaces are closed by two layers, and each holds without the other: the filter refuses the calls, and
// bubblewrap leaves no namespace to make.
func TestCell_EachLayerAloneRefusesUserNamespaces(t *testing.T) {
	requireCells(t)
	for drop, want := range map[string]string{
		"--seccomp 1":        "No space left on device",
		"--disable-userns 0": "Operation not permitted",
	} {
		bwrap := newShim(t)
		bwrap.set(t, shimDrop, drop)
		s := shellSpec("unshare --user true && echo made")
		s.Bwrap = string(bwrap)
		if got := output(t, s); !strings.Contains(got, want) || strings.Contains(got, "made") {
			t.Errorf("without %s: got %q, want %q", drop, got, want)
		}
	}
}

// The time zone has a name inside if it has one outside.
func TestCell_TimeZoneIsALinkAsOnTheHost(t *testing.T) {
	requireCells(t)
	want, err := os.Readlink("/etc/localtime")
	if err != nil || !strings.HasPrefix(filepath.Join("/etc", want), "/usr/") && !strings.HasPrefix(want, "/usr/") {
		t.Skip("the host's /etc/localtime is no link into /usr: make it one")
	}
	if got := output(t, shellSpec("readlink /etc/localtime; test -s /etc/localtime && echo there")); got != want+"\nthere" {
		t.Errorf("got %q, want %q, which leads somewhere", got, want)
	}
}
