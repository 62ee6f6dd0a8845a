// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"io"
	"testing"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// programIn is a program that works in a folder, and whose model is never asked.
func programIn(dir string) isolation.Program {
	return isolation.Program{Dir: dir, Upstream: func(context.Context, *isolation.Isolation) (gateway.Upstream, error) {
		return gateway.Endpoint("http://127.0.0.1:9", gateway.APIKey("key"))
	}}
}

// bashIn is a command of bash as it is started in a cell.
func bashIn(cell *isolation.Cell, line string) launch.Command {
	in := cell.Inside()
	return launch.Command{Path: "/bin/bash", Args: []string{"-c", "exec 2>&1; " + line}, Dir: in.Dir, Env: in.Environ()}
}

// bashOutput starts a command of bash in a cell and returns its output.
func bashOutput(t *testing.T, cell *isolation.Cell, line string) string {
	t.Helper()
	p, err := cell.Spawn(t.Context(), bashIn(cell, line))
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin().Close()
	output, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	return string(output)
}
