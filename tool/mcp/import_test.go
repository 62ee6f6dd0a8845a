// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/mcp"
)

func TestCommand_GetsTheGivenEnvironment(t *testing.T) {
	t.Setenv("DROVER_TEST_SECRET", "of the host")
	_, r, _ := imported(t, child(t, "registry", "GIVEN=1"), nil)
	result := call(t, r, "variables", `{}`)
	got := result.Render()
	var names []string
	for _, name := range strings.Split(strings.Trim(got, `[]`), ",") {
		switch name = strings.Trim(name, `"`); name {
		case "PWD": // bubblewrap sets it
		default:
			names = append(names, name)
		}
	}
	if diff := cmp.Diff([]string{serveVariable, "GIVEN", "PATH"}, names); diff != "" {
		t.Errorf("(-given +got)\n%s", diff)
	}
}

func TestCommand_ExitDuringACallIsTransient(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	im, r, events := imported(t, child(t, "registry"), nil)
	defer im.Close()
	blocked := make(chan tool.Result, 1)
	go func() { blocked <- call(t, r, "block", `{}`) }()
	await[event.ToolProgress](t, events)
	call(t, r, "die", `{}`)
	for _, got := range []tool.Result{<-blocked, call(t, r, "plain", `{}`)} {
		if got.Err == nil || got.Err.Code != mcp.CodeServerGone || got.Err.Category != tool.CategoryTransient || !got.Err.Retryable {
			t.Errorf("got %+v, want a transient failure that can be retried", got.Err)
		}
		wantIn(t, got.Render(), "fixture is lost", "exit status 3")
	}
}

func TestHTTP_LostServerIsTransient(t *testing.T) {
	f := newFixture()
	server := mcp.NewServer(f.registry, nil)
	web := httptest.NewServer(server)
	im, r, events := imported(t, mcp.HTTP{URL: web.URL}, nil)
	defer im.Close()
	blocked := make(chan tool.Result, 1)
	go func() { blocked <- call(t, r, "block", `{}`) }()
	await[event.ToolProgress](t, events)
	web.CloseClientConnections()
	server.Close()
	web.Close()
	if got := <-blocked; got.OK() {
		t.Errorf("the call succeeded: %s", got.Render())
	}
	got := call(t, r, "plain", `{}`)
	if got.Err == nil || got.Err.Category != tool.CategoryTransient || !got.Err.Retryable {
		t.Errorf("got %+v, want a transient failure that can be retried", got.Err)
	}
}

func TestImport_FailureStatesTheCause(t *testing.T) {
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	tests := []struct {
		name string
		from mcp.Source
		want string
	}{
		{"no program", mcp.Command{Path: "drover-no-such-program"}, "drover-no-such-program"},
		{"a program that ends at once", mcp.Command{Path: "false"}, "exit status 1"},
		{"a program that says why it ends", mcp.Command{Path: "sh", Args: []string{"-c", "echo no such table >&2; exit 2"}}, `(exit status 2; its last line was "no such table"`},
		{"a program that is no server", mcp.Command{Path: "echo", Args: []string{"hello"}}, "MCP to its standard output, and nothing else"},
		{"no path", mcp.Command{}, "Command.Path is empty"},
		{"nothing", nil, "give a Command or an HTTP"},
		{"no address", mcp.HTTP{URL: "localhost:1"}, "not an absolute http"},
		{"not a server", mcp.HTTP{URL: refusing.URL}, "not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			im, err := mcp.Import(t.Context(), tt.from, nil)
			if err == nil {
				im.Close()
				t.Fatal("it was imported")
			}
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(tt.want)) {
				t.Errorf("got %q, want %q in it", err, tt.want)
			}
		})
	}
}

func TestImport_EndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	im, err := mcp.Import(ctx, child(t, "silent"), nil)
	if err == nil {
		im.Close()
		t.Fatal("a silent server was imported")
	}
	wantIn(t, err.Error(), context.DeadlineExceeded.Error())
}

func TestClose_DuringACall(t *testing.T) {
	eachWay(t, func(t *testing.T, from mcp.Source) {
		im, r, events := imported(t, from, nil)
		blocked := make(chan tool.Result, 1)
		go func() { blocked <- call(t, r, "block", `{}`) }()
		await[event.ToolProgress](t, events)
		im.Close()
		got := <-blocked
		if got.OK() || !strings.Contains(got.Render(), "closed") {
			t.Errorf("got %q, want that the server is closed", got.Render())
		}
	})
}
