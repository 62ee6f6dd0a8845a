// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The list of children and the question for parents must find the same.
func TestDescendants_BothMethodsAgree(t *testing.T) {
	if !listsChildren() {
		t.Skip("this kernel does not list children")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sh -c 'sleep 60 & sleep 60; :' & sleep 60; :")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	root := cmd.Process.Pid
	defer func() {
		killDescendants(root)
		_ = cmd.Wait()
	}()
	for len(below(scannedChildren(), root)) < 5 {
		time.Sleep(time.Millisecond)
	}
	listed, scanned := below(listedChildren, root), below(scannedChildren(), root)
	slices.Sort(listed)
	slices.Sort(scanned)
	if diff := cmp.Diff(scanned, listed); diff != "" {
		t.Errorf("the ways differ (-scanned +listed):\n%s", diff)
	}
	if got := len(Descendants(root)); got != len(scanned) {
		t.Errorf("Descendants: got %d, want %d", got, len(scanned))
	}
}

func BenchmarkDescendants(b *testing.B) {
	for name, find := range map[string]func(){
		"listed":  func() { below(listedChildren, os.Getpid()) },
		"scanned": func() { below(scannedChildren(), os.Getpid()) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				find()
			}
		})
	}
}
