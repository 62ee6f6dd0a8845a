// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// StartProgram starts this test program again, as another program that a test can kill, with nothing but env in
// its environment. It returns the first line that the program prints. Kill ends it and waits until it is gone, as
// the end of the test does. The input of the program ends with this process: the program shall end then.
func StartProgram(t testing.TB, env ...string) (line string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed, _ := bufio.NewReader(stdout).ReadString('\n') // the caller notices an empty line
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = stdin.Close()
	})
	t.Cleanup(kill)
	return strings.TrimSpace(printed), kill
}
