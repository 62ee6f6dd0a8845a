// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A process that a command has left goes on writing while the command is rolled back. Whatever comes of
// it, the rollback ends, other files are as they were, and nothing that was written is gone for good.
func TestRollback_BesideAProcessThatStillWrites(t *testing.T) {
	b := newBound(t, Options{})
	b.begins("c")
	child := exec.Command("sh", "-c", `i=0; while [ $i -lt 20000 ]; do echo $i >> m/a.txt; echo $i > m/new; mkdir -p m/dir/sub; echo $i > m/dir/sub/f; i=$((i+1)); done`)
	child.Dir = b.w.Root()
	must(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	b.write("m/d/b.txt", "x")
	time.Sleep(30 * time.Millisecond) // the process is at work
	text := b.fails("c")
	must(t, child.Process.Kill())
	_ = child.Wait()
	if !strings.Contains(text, "m/d/b.txt") || len(b.emitted) != 1 {
		t.Fatalf("the model receives %q, and the events are %+v", text, b.emitted)
	}
	for _, c := range b.emitted[0].Conflicts {
		if strings.Count(text, c.Path+"`") != 1 {
			t.Errorf("%s is not named once: %q", c.Path, text)
		}
		if c.Aside == "" {
			continue
		}
		if _, err := os.Lstat(c.Aside); err != nil {
			t.Errorf("what was put aside is gone: %v", err)
		}
	}
	b.wants(map[string]string{"m/d/b.txt": "d/b.txt"})
	b.begins("next")
}
