// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

// eventLog collects the events of a cell.
type eventLog struct {
	mu  sync.Mutex
	all []event.Payload
}

func (l *eventLog) emit(p event.Payload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, p)
}

// of are the events of one kind.
func of[T event.Payload](l *eventLog) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []T
	for _, p := range l.all {
		if p, ok := p.(T); ok {
			found = append(found, p)
		}
	}
	return found
}

// playIn has the real CLI make all calls in one run under an isolation. It may do everything
// without a question, except as root, where the CLI refuses that: tools that ask are denied there. The
// functions change the options before.
func playIn(t *testing.T, cli *claudetest.RealCLI, i *isolation.Isolation, tries []try, change ...func(*claude.Options)) *eventLog {
	t.Helper()
	var calls []script.Block
	for _, a := range tries {
		calls = append(calls, script.ToolCall{ID: a.id, Name: a.tool, Input: a.input})
	}
	model := claudetest.NewModel(t, script.Reply(calls...), script.Text("done"))
	opts := cli.Options(model)
	opts.SettingSources = nil
	if os.Getuid() != 0 {
		opts.PermissionMode = claude.ModeBypassPermissions
	}
	opts.CanUseTool = func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		return claude.Deny{Message: "asked about " + r.ToolName}, nil
	}
	for _, change := range change {
		change(opts)
	}
	var events eventLog
	if i.TempDir == "" {
		i.TempDir = shortFolder(t)
	}
	c, err := claudecell.Open(t.Context(), i, opts, isolation.OpenOptions{Emit: events.emit})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			t.Fatal(err)
		}
	}
	checkTries(t, model, tries)
	return &events
}

func checkTries(t *testing.T, model *claudetest.Model, tries []try) {
	t.Helper()
	for _, a := range tries {
		text, isError, ok := model.ToolResult(a.id)
		if !ok || !strings.Contains(text, a.want) || a.not != "" && strings.Contains(text, a.not) || a.refused && !isError {
			t.Errorf("%s (%s): got %q, error %t; want %q in it, not %q, refused %t", a.id, a.tool, text, isError, a.want, a.not, a.refused)
		}
	}
}

func command(line string) script.Input { return script.Input{"command": line} }

// tcpServer is a server on the host's loopback that no process inside may reach. It fails the test if one
// does.
func tcpServer(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Errorf("a process reached the server of the test: %v", conn.RemoteAddr())
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// oneProtection returns the one Protection event.
func oneProtection(t *testing.T, events *eventLog, level isolation.Level) isolation.Protection {
	t.Helper()
	all := of[isolation.Protection](events)
	if len(all) != 1 || all[0].Level != level {
		t.Fatalf("got the protections %+v, want one of level %s", all, level)
	}
	return all[0]
}

// helloServer is a web server on the host's loopback. It returns its address.
func helloServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// A callersProxy is a proxy of the caller's on the host's loopback: it answers all that it is asked itself.
type callersProxy struct {
	port     int
	requests atomic.Int64
}

func ownProxy(t *testing.T) *callersProxy {
	t.Helper()
	var p callersProxy
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "your proxy was asked for "+r.URL.String())
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			p.requests.Add(1)
		}
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // SOCKS is not HTTP
	server.Start()
	t.Cleanup(server.Close)
	p.port = server.Listener.Addr().(*net.TCPAddr).Port
	return &p
}

// freePort is a TCP port that no process uses.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// shortFolder is a folder with a short name, as sockets in homes need it.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
