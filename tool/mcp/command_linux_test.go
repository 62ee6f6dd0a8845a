// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/tool"
)

// treeVariable marks the processes of one test: whatever a child starts inherits it.
const treeVariable = "DROVER_TEST_TREE"

func init() {
	moreTools = append(moreTools, tool.Must("litter", "Leaves processes behind.", litter))
}

type litterArgs struct {
	Detached []bool `json:"detached"`
}

// litter starts programs in the group of the server, or ones that have left it.
func litter(_ context.Context, in litterArgs) (string, error) {
	for _, detached := range in.Detached {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: detached}
		if err := cmd.Start(); err != nil {
			return "", err
		}
	}
	return "left", nil
}

// marked counts the processes with the mark.
func marked(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(treeVariable+"="+mark)) {
			n++
		}
	}
	return n
}

func TestClose_EndsTheWholeProcessTree(t *testing.T) {
	for _, which := range []string{"registry", "stubborn"} {
		t.Run(which, func(t *testing.T) {
			mark := rand.Text()
			im, r, _ := imported(t, child(t, which, treeVariable+"="+mark), nil)
			detached := proc.NamespaceAvailable(t.Context(), "") // without, what has detached itself may stay
			if got := call(t, r, "litter", fmt.Sprintf(`{"detached":[false,%t]}`, detached)); !got.OK() {
				t.Fatal(got.Render())
			}
			if n := marked(mark); n < 3 {
				t.Fatalf("%d processes run, want the server and two more", n)
			}
			im.Close()
			deadline := time.Now().Add(5 * time.Second) // a zombie's parent may take a moment
			for marked(mark) > 0 && time.Now().Before(deadline) {
				time.Sleep(5 * time.Millisecond)
			}
			if n := marked(mark); n > 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}
