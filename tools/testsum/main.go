// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	code, err := testAll(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
	}
	os.Exit(code)
}

// testAll runs go test with args and prints its summary. The code is for os.Exit.
func testAll(ctx context.Context, args []string) (int, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	sum := newSummary(os.Stdout)
	ended := make(chan struct{})
	cpu := make(chan map[string]float64)
	go func() { cpu <- watchCPU(cmd.Process.Pid, ended) }()
	readErr := sum.read(out)
	err = cmd.Wait()
	close(ended)
	sum.finish(<-cpu)
	if readErr != nil {
		return 1, readErr
	}
	if err != nil && !sum.failed() {
		return 1, fmt.Errorf("go test: %w", err)
	}
	if err != nil || sum.failed() {
		return 1, nil
	}
	return 0, nil
}
