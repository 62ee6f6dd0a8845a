// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"
)

// The time of a child counts for the folder, also after the child has ended.
func TestLook_CountsTimeOfEndedChildren(t *testing.T) {
	child := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo; read x")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	seen := map[int]process{}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	look(os.Getppid(), seen)
	_ = in.Close()
	_ = child.Wait() // read fails
	look(os.Getppid(), seen)
	if own := seen[os.Getpid()]; own.folder != "." {
		t.Errorf("this test is seen as %+v, want its folder", own)
	}
	if got := seen[child.Process.Pid]; got.folder != "." || got.seconds <= 0 {
		t.Errorf("its child is seen as %+v, want the folder and some time", got)
	}
}
