// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A child is this test program as another process, which reads its orders line by line.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startChild runs one of the children below.
func startChild(t testing.TB, kind string, args ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild_TreeProcess$")
	cmd.Env = append(os.Environ(), "TREE_CHILD="+kind, "TREE_CHILD_ARGS="+strings.Join(args, "\n"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(c.kill)
	return c
}

// send sends a line and waits for the answer.
func (c *child) send(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatal(err)
	}
	if answer, err := c.out.ReadString('\n'); err != nil || answer != "ok\n" {
		c.t.Fatalf("%s: the child answers %q, %v", line, answer, err)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()
}

func TestChild_TreeProcess(t *testing.T) {
	args := strings.Split(os.Getenv("TREE_CHILD_ARGS"), "\n")
	switch os.Getenv("TREE_CHILD") {
	case "":
		t.Skip("this is run by other tests, as a process of its own")
	case "map":
		writeThroughMapping(t, args[0])
	case "roll":
		rollForever(t, args[0], args[1], args[2])
	}
}

// writeThroughMapping maps a file and writes to it on request. The file itself is closed: only
// the mapping holds it.
func writeThroughMapping(t *testing.T, name string) {
	var mapping []byte
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch order, arg, _ := strings.Cut(lines.Text(), " "); order {
		case "map":
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			mapping, err = syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
			if err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
		case "write":
			copy(mapping, arg)
		case "unmap":
			_ = syscall.Munmap(mapping)
		}
		fmt.Println("ok")
	}
}

// rollForever takes checkpoints and rolls back to them, until it is killed. The log says, before it
// begins, what is in the tree, what it will be, and which contents there are.
func rollForever(t *testing.T, dir, store, log string) {
	tree, err := OpenTree(dir, &TreeOptions{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	c, err := tree.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	base := snapshotHash(t, dir)
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		fmt.Fprintln(out, "{}")
		editFor(t, dir, fmt.Sprintf("%d-%d", os.Getpid(), i))
		line, err := json.Marshal(rolling{Before: snapshotHash(t, dir), After: base, Contents: contents(t, dir)})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "%s\n", line)
		fmt.Println("ok")
		if c2, err := tree.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		} else {
			c2.Release()
		}
		if _, err := tree.Rollback(context.Background(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// rolling is a line of the log.
type rolling struct {
	Before, After string
	Contents      []string
}

// editFor makes the changes of one round, with contents of which there is no second.
func editFor(t *testing.T, dir, round string) {
	write := func(p string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p), []byte(p+round), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		write(fmt.Sprintf("changed/%d", i))
		write(fmt.Sprintf("new-%s/deep/%d", round, i))
	}
	if err := os.Rename(filepath.Join(dir, "moved"), filepath.Join(dir, "moved-"+round)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(round, filepath.Join(dir, "link-"+round)); err != nil {
		t.Fatal(err)
	}
}

// snapshotHash is short for a snapshot.
func snapshotHash(t *testing.T, dir string) string {
	text, err := json.Marshal(snapshot(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// contents are the hashes of all files.
func contents(t *testing.T, dir string) []string {
	var all []string
	for _, s := range snapshot(t, dir) {
		if s.Mode&syscall.S_IFMT == syscall.S_IFREG {
			all = append(all, s.Content)
		}
	}
	return all
}
