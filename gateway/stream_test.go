// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
)

// server is an upstream of the test's own, over HTTP.
func server(t testing.TB, handler http.HandlerFunc) gateway.Upstream {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return endpoint(t, s.URL)
}

// client speaks with a run over connections of its own.
func client(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// askHTTP asks a run over HTTP.
func askHTTP(ctx context.Context, c *http.Client, run *gateway.Run, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages?beta=true", strings.NewReader(question))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", run.Token())
	return c.Do(req)
}

// The upstream sends the next piece only when the agent has the one before.
func TestStream_EachPieceIsPassedAtOnce(t *testing.T) {
	pieces := []string{"event: x\nda", "ta: {}\n", "\n", ": half a comm", "ent\n\n", delta}
	got := make(chan string, len(pieces))
	upstream := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", streamType)
		w.(http.Flusher).Flush()
		for _, piece := range pieces {
			io.WriteString(w, piece)
			w.(http.Flusher).Flush()
			select {
			case have := <-got:
				if have != piece {
					t.Errorf("the agent has %q, want %q", have, piece)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("the agent did not get %q", piece)
				return
			}
		}
	})
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
	resp, err := askHTTP(t.Context(), client(t), run, url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, piece := range pieces {
		part := make([]byte, len(piece))
		if _, err := io.ReadFull(resp.Body, part); err != nil {
			t.Fatal(err)
		}
		got <- string(part)
	}
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("there is more: %q, %v", rest, err)
	}
}

// The head of an answer is passed on before there is anything after it.
func TestStream_HeadersArePassedAtOnce(t *testing.T) {
	has := make(chan struct{})
	upstream := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", streamType)
		w.(http.Flusher).Flush()
		select {
		case <-has:
		case <-time.After(10 * time.Second):
			t.Error("the agent did not get the head")
		}
	})
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
	resp, err := askHTTP(t.Context(), client(t), run, url)
	close(has)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// Only the end of an answer says what it cost. It is read on when the agent has gone, for ten seconds.
func TestStream_IsReadToTheEndAfterTheAgentLeaves(t *testing.T) {
	cases := []struct {
		name      string
		after     time.Duration // until the end of the answer comes
		output    int64
		estimated bool
		took      time.Duration
	}{
		{"the end comes in time", 9 * time.Second, 500, false, 9 * time.Second},
		{"the end comes late", 11 * time.Second, 800, true, 10 * time.Second}, // ten seconds of writing
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, hangUp := context.WithCancel(t.Context())
				upstream := streaming(func(w io.Writer) {
					io.WriteString(w, messageStart(10)+delta)
					hangUp()
					time.Sleep(tc.after)
					io.WriteString(w, messageEnd(500)+messageStop)
				})
				var events recorder
				tracker := guard.NewTracker(guard.Budget{})
				run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream, Emit: events.emit, Trackers: []*guard.Tracker{tracker}})
				began := time.Now()
				req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/messages", strings.NewReader(question))
				req.Header.Set("X-Api-Key", run.Token())
				run.ServeHTTP(httptest.NewRecorder(), req)
				if took := time.Since(began); took != tc.took {
					t.Errorf("the call took %s, want %s", took, tc.took)
				}
				calls := eventsOf[gateway.ModelCall](&events)
				if len(calls) != 1 || calls[0].Tokens.Input != 10 || calls[0].Tokens.Output != tc.output || calls[0].Error != "the agent has gone" ||
					!calls[0].Aborted || calls[0].Estimated != tc.estimated {
					t.Errorf("the events are %+v", calls)
				}
				if got := tracker.Consumed().OutputTokens; got != tc.output {
					t.Errorf("the budget was charged %d output tokens, want %d", got, tc.output)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// Who hangs up on every answer pays for every answer.
func TestStream_DisconnectedAnswersAreCharged(t *testing.T) {
	const limit, input, output = 3000, 10, 1000
	var written atomic.Int64
	upstream := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", streamType)
		io.WriteString(w, messageStart(input))
		w.(http.Flusher).Flush()
		io.WriteString(w, strings.Repeat(delta, 10)+messageEnd(output)+messageStop)
		written.Add(input + output)
	})
	var events recorder
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: limit})
	run, url := serve(t, gateway.New(&gateway.Options{MaxInFlight: 1}), gateway.RunOptions{Upstream: upstream, Emit: events.emit, Trackers: []*guard.Tracker{tracker}})
	for range 30 {
		ctx, hangUp := context.WithCancel(t.Context())
		resp, err := askHTTP(ctx, client(t), run, url)
		if err != nil {
			t.Fatal(err)
		}
		status := resp.StatusCode
		hangUp()
		resp.Body.Close()
		if status == http.StatusPaymentRequired {
			break
		}
	}
	if got := written.Load(); got > limit+input+output {
		t.Errorf("%d tokens were written under a limit of %d", got, limit)
	}
	assertStopped(t, run, &events, "MaxTotalTokens", guard.ErrBudgetExhausted)
}

func waitFor(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing happened for ten seconds")
	}
}

func TestStream_BrokenAnswerIsBrokenForTheAgent(t *testing.T) {
	upstream := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", streamType)
		io.WriteString(w, messageStart(10))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
	resp, err := askHTTP(t.Context(), client(t), run, url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if string(body) != messageStart(10) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v; want the beginning and an unexpected end", body, err)
	}
}

// An agent that does not read does not keep a run from ending, and what it does not read is not
// kept.
func TestStream_SlowReaderDoesNotDelayClose(t *testing.T) {
	full := make(chan struct{})
	upstream := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", streamType)
		block := []byte(strings.Repeat(delta, 1000))
		for range 1000 { // about 60 MB, more than all buffers on the way
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			if _, err := w.Write(block); err != nil {
				close(full)
				return
			}
		}
	})
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
	resp, err := askHTTP(t.Context(), client(t), run, url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	waitFor(t, full)
	done := make(chan struct{})
	go func() {
		run.Close()
		close(done)
	}()
	waitFor(t, done)
}

func TestStream_ConnectionsAreReused(t *testing.T) {
	addresses := map[string]bool{}
	upstream := server(t, func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		w.Header().Set("Content-Type", streamType)
		io.WriteString(w, messageStart(1)+messageEnd(1)+messageStop)
	})
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for range 3 {
		fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s", run.Token(), len(question), question)
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || !bytes.HasSuffix(body, []byte(messageStop)) {
			t.Fatalf("got %q, %v", body, err)
		}
	}
	if len(addresses) != 1 {
		t.Errorf("the upstream saw %d connections, want 1", len(addresses))
	}
}

func TestRun_CloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then net/http sees that the client has gone
		close(hang)
		<-r.Context().Done()
	}))
	run, err := gateway.New(nil).Open(gateway.RunOptions{Upstream: endpoint(t, s.URL)})
	if err != nil {
		t.Fatal(err)
	}
	var served []chan error
	var urls []string
	for range 2 { // several listeners may be served
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- run.Serve(l) }()
		served, urls = append(served, done), append(urls, "http://"+l.Addr().String())
	}
	idle, err := net.Dial("tcp", strings.TrimPrefix(urls[1], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	c := client(t)
	asked := make(chan error, 1)
	go func() {
		_, err := askHTTP(context.Background(), c, run, urls[0])
		asked <- err
	}()
	waitFor(t, hang)
	for range 2 {
		if err := run.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := <-asked; err == nil {
		t.Error("the call that was under way succeeded")
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("an idle connection is still there")
	}
	idle.Close()
	for _, done := range served {
		if err := <-done; !errors.Is(err, gateway.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	}
	if err := run.Stopped(); err != nil {
		t.Errorf("a closed run was stopped by %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Serve(l); !errors.Is(err, gateway.ErrClosed) {
		t.Errorf("Serve after Close: %v", err)
	}
	s.Close()
	c.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

// A pipeListener has one connection, in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// An agent that has stopped reading is given five seconds when the run is over.
func TestStream_SlowReaderIsDroppedWhenTheRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := streaming(func(w io.Writer) {
			for {
				if _, err := io.WriteString(w, delta); err != nil {
					return
				}
			}
		})
		var events recorder
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream, Emit: events.emit})
		agent, conn := net.Pipe()
		l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conns <- conn
		go run.Serve(l)
		fmt.Fprintf(agent, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s", run.Token(), len(question), question)
		time.Sleep(10 * time.Second)
		run.Stop(nil)
		time.Sleep(4 * time.Second)
		if got := eventsOf[gateway.ModelCall](&events); len(got) != 0 {
			t.Errorf("the call ended at once: %+v", got)
		}
		time.Sleep(2 * time.Second)
		if got := eventsOf[gateway.ModelCall](&events); len(got) != 1 {
			t.Errorf("the call goes on: %+v", got)
		}
		agent.Close()
		run.Close()
	})
}
