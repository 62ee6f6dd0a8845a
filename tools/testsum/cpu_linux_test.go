// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// The time of a child counts once for the folder: while it lives, and after its end, also if it was never seen.
func TestLook_CountsTimeOfChildrenOnce(t *testing.T) {
	child := func() (*exec.Cmd, func() time.Duration) {
		cmd := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo; read x")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return cmd, func() time.Duration {
			_ = in.Close()
			_ = cmd.Wait() // read fails
			return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
	}
	seen := cpu{map[int]string{}, map[string]float64{}}
	seen.look(os.Getppid())
	if got := seen.folders[os.Getpid()]; got != "." {
		t.Errorf("the folder of this test is %q", got)
	}
	check := func(when string, before float64, took time.Duration) {
		t.Helper()
		seen.look(os.Getppid())
		if got := seen.seconds["."] - before; took < 50*time.Millisecond || got < took.Seconds()-0.03 || got > took.Seconds()*3/2+0.03 {
			t.Errorf("%s: %.2f s were added for a child that took %v", when, got, took)
		}
	}
	before := seen.seconds["."]
	_, end := child()
	check("after its end", before, end())

	before = seen.seconds["."]
	live, end := child()
	seen.look(os.Getppid())
	if got := seen.folders[live.Process.Pid]; got != "." {
		t.Errorf("the folder of a child is %q", got)
	}
	whileLive := seen.seconds["."] - before
	took := end()
	if whileLive < took.Seconds()-0.03 {
		t.Errorf("%.2f s were added while a child lived that took %v", whileLive, took)
	}
	check("seen while it lived", before, took)
}
