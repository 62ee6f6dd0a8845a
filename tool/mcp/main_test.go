// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/tool/mcp"
)

// serveVariable names the server that this test binary is instead of running tests.
const serveVariable = "DROVER_TEST_SERVE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(serveVariable) {
	case "":
		claudetest.Main(m)
	case "registry":
		err = mcp.Serve(context.Background(), newFixture().registry, &mcp.ServeOptions{Name: "fixture", Version: "1.2.3"})
	case "stubborn": // does not end with its input
		if err = mcp.Serve(context.Background(), newFixture().registry, nil); err == nil {
			time.Sleep(time.Hour)
		}
	case "foreign":
		err = foreignServer().Run(context.Background(), &sdk.StdioTransport{})
	case "silent": // reads, and never answers
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is this test binary as a server, with an environment of two variables.
func child(t testing.TB, which string, more ...string) mcp.Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append([]string{"PATH=" + os.Getenv("PATH"), serveVariable + "=" + which}, more...)
	return mcp.Command{Path: self, Env: env, Stderr: testWriter{t}}
}

// testWriter shows what a child complains of.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("child: %s", b)
	return len(b), nil
}
