// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/internal/proc"
)

// exitGrace is how long a command may take to end by itself once its input is closed.
const exitGrace = 2 * time.Second

// A Source is where an MCP server is: a [Command] or an [HTTP].
type Source interface {
	open(ctx context.Context, log *slog.Logger) (*link, error)
}

// A link is an open way to a server.
type link struct {
	transport sdk.Transport
	// gone returns how the server ended, as far as that is known.
	gone func() string
	// advice tells the importer, and no model, what to check if the handshake failed. It is called after the end.
	advice func() string
	// cancels counts the cancellations that the server received. It is nil where the end of the connection tells it as well.
	cancels *counter
	// end ends what is left of it when the session is closed, or cannot be.
	end func()
}

// A Command is an MCP server that is started as a program and spoken to over its standard streams. It
// belongs to its importer: closing ends it and all that it started.
type Command struct {
	// Path is the program: a file, or a name to look for in this process's PATH.
	Path string
	Args []string
	// Dir is its working directory. Empty means the current one.
	Dir string
	// Env is its whole environment. Nil means the PATH of this process and nothing else of it.
	Env []string
	// Stderr gets what it writes to its standard error. Nil logs each line.
	Stderr io.Writer
}

func (c Command) open(ctx context.Context, log *slog.Logger) (*link, error) {
	if c.Path == "" {
		return nil, errors.New("Command.Path is empty; it is the program to start")
	}
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, fmt.Errorf("finding the program: %w", err)
	}
	env := c.Env
	if env == nil {
		env = []string{"PATH=" + os.Getenv("PATH")}
	}
	p, err := proc.Start(ctx, proc.Spec{Path: path, Args: c.Args, Dir: c.Dir, Env: env})
	if err != nil {
		return nil, err
	}
	var reader sync.WaitGroup
	var last lastLine
	reader.Go(func() { c.drain(p.Stderr(), log, &last) })
	return &link{
		transport: &sdk.IOTransport{Reader: io.NopCloser(p.Stdout()), Writer: p.Stdin()},
		gone:      func() string { return fate(p) },
		advice: func() string {
			return last.describe() + "; a server must write MCP to its standard output, and nothing else"
		},
		end: func() {
			endProcess(p)
			reader.Wait()
		},
	}, nil
}

// drain reads standard error to its end; a program whose output is not read would block.
func (c Command) drain(stderr io.Reader, log *slog.Logger, last *lastLine) {
	if c.Stderr != nil {
		_, _ = io.Copy(c.Stderr, stderr) // a writer that fails loses its own output
		_, _ = io.Copy(io.Discard, stderr)
		return
	}
	lines := bufio.NewReader(stderr)
	for {
		line, _, err := lines.ReadLine() // a long line comes in parts
		if err != nil {
			return
		}
		last.set(string(line))
		log.Info("stderr of an MCP server", "program", c.Path, "stderr", string(line))
	}
}

// A lastLine is the last thing that a program wrote to its standard error: most often, why it ended.
type lastLine struct {
	mu   sync.Mutex
	text string
}

func (l *lastLine) set(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
}

func (l *lastLine) describe() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		return ""
	}
	return fmt.Sprintf("; its last line was %.200q", l.text)
}

// fate returns how a program ended, if it has, or does so in a moment.
func fate(p *proc.Process) string {
	select {
	case <-p.Done():
	case <-time.After(exitGrace / 10):
		return "it closed its output"
	}
	st := p.Wait()
	if st.Signal != "" {
		return "signal: " + st.Signal
	}
	return fmt.Sprintf("exit status %d", st.Code)
}

// endProcess lets a program end by itself, and otherwise ends it with all that it started.
func endProcess(p *proc.Process) {
	_ = p.Stdin().Close() // an ended program has closed it
	select {
	case <-p.Done():
	case <-time.After(exitGrace):
		_ = p.Kill() // what cannot be killed cannot be waited for either, except by Wait
	}
	p.Wait()
}

// HTTP is an MCP server that is reached over streamable HTTP.
type HTTP struct {
	URL string
	// Header is sent with each request, for example to say who asks.
	Header http.Header
	// Client sends the requests. Nil means one without limits. A Timeout would end the server's streams: set none.
	Client *http.Client
}

func (h HTTP) open(context.Context, *slog.Logger) (*link, error) {
	u, err := url.Parse(h.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("URL %q is not an absolute http or https address", h.URL)
	}
	cancels := &counter{grown: make(chan struct{})}
	client, end := h.client(cancels)
	return &link{
		cancels:   cancels,
		transport: &sdk.StreamableClientTransport{Endpoint: h.URL, HTTPClient: client},
		gone:      func() string { return "" },
		advice:    func() string { return "" },
		end:       end,
	}, nil
}

func (h HTTP) client(cancels *counter) (client *http.Client, end func()) {
	client, end = &http.Client{}, func() {}
	if h.Client != nil {
		*client = *h.Client
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
		if own, ok := http.DefaultTransport.(*http.Transport); ok {
			own = own.Clone()
			client.Transport, end = own, own.CloseIdleConnections
		}
	}
	client.Transport = &withHeader{h.Header.Clone(), cancels, client.Transport}
	return client, end
}

// withHeader adds a header to requests, but does not take it to other hosts. It counts the cancellations among them.
type withHeader struct {
	header  http.Header
	cancels *counter
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w *withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil && r.Response.Request.URL.Host != r.URL.Host {
		return nil, errors.New("the server redirects to another host; import from there if that is right")
	}
	r = r.Clone(r.Context())
	for key, values := range w.header {
		r.Header[http.CanonicalHeaderKey(key)] = values
	}
	if isCancellation(r) {
		defer w.cancels.add()
	}
	return w.next.RoundTrip(r)
}

// isCancellation looks at the beginning of a message, where the SDK writes the method of those that have no id.
func isCancellation(r *http.Request) bool {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }()
	head, _ := io.ReadAll(io.LimitReader(body, 100))
	return bytes.Contains(head, []byte(`"notifications/cancelled"`))
}

type counter struct {
	mu    sync.Mutex
	n     int
	grown chan struct{}
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	close(c.grown)
	c.grown = make(chan struct{})
}

func (c *counter) await(ctx context.Context, n int) {
	for {
		c.mu.Lock()
		have, grown := c.n, c.grown
		c.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return
		}
	}
}
