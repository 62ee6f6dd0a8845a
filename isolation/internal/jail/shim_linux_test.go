// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

// A shim is this test binary in the place of bubblewrap. It does what the files beside it say, and then becomes
// the real one.
type shim string

const (
	shimReal     = ".path"     // the real bubblewrap
	shimOld      = ".old"      // options with bind-fd are not known
	shimExchange = ".exchange" // two names that are exchanged first, one on each line
	shimDrop     = ".drop"     // an option that is left out, and with how many values
	shimDump     = ".dump"     // where the command line goes
)

// newShim makes a shim. As root it is run by another user.
func newShim(t *testing.T) shim {
	t.Helper()
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("needs bubblewrap: install it")
	}
	dir := testkit.SharedFolder(t)
	s := shim(filepath.Join(dir, "bwrap-shim"))
	if err := os.Rename(testkit.PutProgram(t, os.Args[0], dir), string(s)); err != nil {
		t.Fatal(err)
	}
	s.set(t, shimReal, real)
	return s
}

func (s shim) set(t *testing.T, what, value string) {
	t.Helper()
	if err := os.WriteFile(string(s)+what, []byte(value), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(string(s)+what, 0o666); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func (s shim) get(what string) (string, bool) {
	value, err := os.ReadFile(string(s) + what)
	return string(value), err == nil
}

// isShim reports whether this process is a shim.
func isShim() bool { return filepath.Base(os.Args[0]) == "bwrap-shim" }

// runShim becomes the real bubblewrap.
func runShim() {
	s := shim(os.Args[0])
	args := s.arguments()
	if _, old := s.get(shimOld); old && bytes.Contains(args, []byte("bind-fd\x00")) {
		s.fail("bwrap: Unknown option --ro-bind-fd")
	}
	if names, ok := s.get(shimExchange); ok {
		a, b, _ := strings.Cut(names, "\n")
		if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
			s.fail(err)
		}
	}
	if _, ok := s.get(shimDump); ok {
		text := strings.Join(os.Args[1:], " ") + "\n" + strings.ReplaceAll(string(args), "\x00", "\n")
		if err := os.WriteFile(string(s)+shimDump, []byte(text), 0o666); err != nil {
			s.fail(err)
		}
	}
	if option, ok := s.get(shimDrop); ok {
		s.drop(args, option)
	}
	real, _ := s.get(shimReal)
	s.fail(syscall.Exec(real, append([]string{real}, os.Args[1:]...), os.Environ()))
}

func (s shim) fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}

// arguments reads those in the file of --args, and leaves them for the next reader.
func (s shim) arguments() []byte {
	n, err := strconv.Atoi(os.Args[2])
	if err != nil || os.Args[1] != "--args" {
		s.fail("bwrap-shim: the first argument is not --args")
	}
	args := make([]byte, 1<<20)
	length, err := unix.Pread(n, args, 0)
	if err != nil {
		s.fail(err)
	}
	return args[:length]
}

// drop leaves an option out, given as its name and the number of its values.
func (s shim) drop(args []byte, option string) {
	name, values, _ := strings.Cut(option, " ")
	count, err := strconv.Atoi(values)
	words := strings.Split(string(args), "\x00")
	for i, word := range words {
		if word == name && err == nil {
			words = append(words[:i:i], words[i+1+count:]...)
			break
		}
	}
	fd, err := unix.MemfdCreate("args", 0)
	if err != nil {
		s.fail(err)
	}
	if _, err := unix.Pwrite(fd, []byte(strings.Join(words, "\x00")), 0); err != nil {
		s.fail(err)
	}
	os.Args[2] = strconv.Itoa(fd)
}
