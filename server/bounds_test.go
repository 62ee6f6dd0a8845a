// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// pipes is a listener in memory: its connections wait in the time of a test.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.over)
	return nil
}

func (pipes) Addr() net.Addr { return &net.UnixAddr{Net: "pipe"} }

// A pipeSite is a server on pipes.
type pipeSite struct {
	*server.Server
	t     *testing.T
	pipes pipes
}

// inTime runs f in a time of its own, with a server.
func inTime(t *testing.T, store *record.Store, f func(t *testing.T, s *pipeSite)) {
	t.Helper()
	outside := plainfile.NewWatch(t.TempDir()) // the goroutine of the system's reports is not in the bubble
	defer outside.Close()
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(context.Background(), server.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		own := &pipeSite{s, t, pipes{make(chan net.Conn), make(chan struct{})}}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, own.pipes) }()
		defer func() {
			stop()
			if err := errors.Join(<-served, s.Close()); err != nil {
				t.Error(err)
			}
		}()
		f(t, own)
	})
}

// dial opens a connection and sends text. It is closed with the test.
func (s *pipeSite) dial(text string) net.Conn {
	here, there := net.Pipe()
	s.t.Cleanup(func() { _ = here.Close() })
	s.pipes.conns <- there
	go func() { _, _ = io.WriteString(here, text) }() // a server that refuses it may not read it
	return here
}

// get is a request with the owner's token, without its end.
func (s *pipeSite) get(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + s.Token() + "\r\n"
}

// answer reads the head of a response. The connection must have one within a minute.
func answer(t *testing.T, c net.Conn) (*http.Response, *bufio.Reader) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp, in
}

// closedAfter fails the test unless the server closes the connection after a time.
func closedAfter(t *testing.T, c net.Conn, want time.Duration) {
	t.Helper()
	began := time.Now()
	_ = c.SetReadDeadline(began.Add(time.Hour))
	_, err := io.Copy(io.Discard, c)
	if took := time.Since(began); err != nil || took < want || took > want+time.Second {
		t.Errorf("the connection was closed after %v (%v), want %v", took, err, want)
	}
}

func isProblem(t *testing.T, resp *http.Response, status int) {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != status || resp.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(string(text), `"next":`) {
		t.Errorf("status %d, %s: %s, %v; want the problem document of %d, with what to do", resp.StatusCode, resp.Header.Get("Content-Type"), text, err, status)
	}
	if status == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
		t.Error("status 429 without Retry-After")
	}
}

// A client that sends slowly, or nothing, does not keep its connection.
func TestBounds_SlowSender(t *testing.T) {
	store := openStore(t)
	t.Run("header", func(t *testing.T) {
		inTime(t, store, func(t *testing.T, s *pipeSite) {
			closedAfter(t, s.dial("GET /v1/runs HTTP/1.1\r\nHost: loc"), 10*time.Second)
		})
	})
	t.Run("body", func(t *testing.T) {
		inTime(t, store, func(t *testing.T, s *pipeSite) {
			began := time.Now()
			resp, _ := answer(t, s.dial("POST /v1/session HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 20\r\n\r\n{"))
			isProblem(t, resp, http.StatusRequestTimeout)
			if took := time.Since(began); took != 30*time.Second {
				t.Errorf("the answer came after %v", took)
			}
		})
	})
	t.Run("body_of_a_refused_request", func(t *testing.T) {
		inTime(t, store, func(t *testing.T, s *pipeSite) {
			closedAfter(t, s.dial("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\n\r\n{"), 30*time.Second)
		})
	})
	t.Run("nothing", func(t *testing.T) {
		inTime(t, store, func(t *testing.T, s *pipeSite) {
			c := s.dial(s.get("/v1/offer") + "\r\n")
			resp, _ := answer(t, c)
			isProblem(t, resp, http.StatusForbidden)
			closedAfter(t, c, 2*time.Minute)
		})
	})
}

// keepLongRun keeps a run whose log has megabytes, and returns its id.
func keepLongRun(t *testing.T, store *record.Store) string {
	t.Helper()
	steps := []agenttest.Step{}
	for i := range 40 {
		steps = append(steps, agenttest.Emit(event.Text{Content: fmt.Sprint(i, strings.Repeat(" word", 20_000))}))
	}
	r := start(t, store, nil, server.LiveOptions{}, append(steps, agenttest.Done("token-1"))...)
	<-r.done
	return r.id
}

// A client that does not read loses its connection; one that reads a little at a time keeps it.
func TestBounds_SlowReader(t *testing.T) {
	store := openStore(t)
	id := keepLongRun(t, store)
	for name, head := range map[string]string{"stream": "Accept: text/event-stream\r\n", "lines": ""} {
		for _, reads := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reads=%t", name, reads), func(t *testing.T) {
				inTime(t, store, func(t *testing.T, s *pipeSite) {
					c := s.dial(s.get("/v1/runs/"+id+"/events") + head + "\r\n")
					if !reads {
						time.Sleep(31 * time.Second)
					}
					resp, err := http.ReadResponse(bufio.NewReader(c), nil)
					got := int64(0)
					for err == nil {
						var n int64
						n, err = io.CopyN(io.Discard, resp.Body, 256<<10)
						got += n
						if reads {
							time.Sleep(20 * time.Second)
						}
					}
					if whole := got > 3_900_000 && errors.Is(err, io.EOF); whole != reads {
						t.Errorf("%d bytes came, and then %v", got, err)
					}
				})
			})
		}
	}
}

// A stream too many is refused until another one ends.
func TestBounds_Streams(t *testing.T) {
	inTime(t, openStore(t), func(t *testing.T, s *pipeSite) {
		open := func() (net.Conn, *http.Response) {
			c := s.dial(s.get("/v1/events") + "\r\n")
			resp, _ := answer(t, c)
			return c, resp
		}
		first, resp := open()
		for range 255 {
			_, resp = open()
		}
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("stream 256 is refused: %d", resp.StatusCode)
		}
		_, resp = open()
		isProblem(t, resp, http.StatusTooManyRequests)
		_ = first.Close()
		synctest.Wait()
		if _, resp = open(); resp.StatusCode != http.StatusOK {
			t.Errorf("after another one has ended: %d", resp.StatusCode)
		}
	})
}

// A connection too many waits for another one to end.
func TestBounds_Connections(t *testing.T) {
	inTime(t, openStore(t), func(t *testing.T, s *pipeSite) {
		var first net.Conn
		for range 512 {
			if c := s.dial(""); first == nil {
				first = c
			}
		}
		accepted := make(chan net.Conn, 1)
		go func() { accepted <- s.dial(s.get("/v1/runs") + "\r\n") }()
		synctest.Wait()
		if len(accepted) > 0 {
			t.Error("connection 513 is accepted")
		}
		_ = first.Close()
		if resp, _ := answer(t, <-accepted); resp.StatusCode != http.StatusOK {
			t.Errorf("after another one was closed: %d", resp.StatusCode)
		}
	})
}

// Requests of those who are unknown are bounded, and do not keep the owner out.
func TestBounds_Rates(t *testing.T) {
	inTime(t, openStore(t), func(t *testing.T, s *pipeSite) {
		c := s.dial("")
		in := bufio.NewReader(c)
		ask := func(request string) *http.Response {
			go func() { _, _ = io.WriteString(c, request+"\r\n") }()
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body = io.NopCloser(strings.NewReader(string(text)))
			return resp
		}
		unknown := "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\n"
		for range 400 {
			if resp := ask(unknown); resp.StatusCode != http.StatusUnauthorized {
				t.Fatalf("status %d", resp.StatusCode)
			}
		}
		isProblem(t, ask(unknown), http.StatusTooManyRequests)
		isProblem(t, ask("GET / HTTP/1.1\r\nHost: localhost\r\n"), http.StatusTooManyRequests)
		if resp := ask(s.get("/v1/server")); resp.StatusCode != http.StatusOK {
			t.Errorf("the owner gets status %d", resp.StatusCode)
		}
		time.Sleep(time.Second)
		isProblem(t, ask(unknown), http.StatusUnauthorized)
		for range 999 {
			ask(s.get("/v1/server"))
		}
		for range 10 {
			if resp := ask(s.get("/v1/server")); resp.StatusCode == http.StatusTooManyRequests {
				isProblem(t, resp, http.StatusTooManyRequests)
				return
			}
		}
		t.Error("the owner's requests have no bound")
	})
}

// What is too large is refused by name.
func TestBounds_Sizes(t *testing.T) {
	s := serve(t, server.Options{Store: openStore(t)})
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
	}{
		"address":      {"GET", "/v1/runs?q=" + strings.Repeat("x", 9<<10), "", nil, 414},
		"header":       {"GET", "/v1/runs", "", []string{"Other: " + strings.Repeat("x", 33<<10)}, 431},
		"JSON":         {"POST", "/v1/session", strings.Repeat(" ", 4<<20) + "{}", []string{"Origin: " + s.base}, 413},
		"not declared": {"POST", "/v1/session", `{"token":"x"}`, []string{"Origin: " + s.base, "Content-Type: text/plain"}, 415},
	} {
		resp, text := s.request(c.method, c.path, c.body, c.headers...)
		if resp.StatusCode != c.status || !strings.Contains(text, `"next":`) {
			t.Errorf("%s: status %d, want %d: %s", name, resp.StatusCode, c.status, text)
		}
	}
	began := time.Now()
	uploading := make(chan struct{})
	body, feed := io.Pipe()
	go func() {
		defer close(uploading)
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.base+"/v1/bundles", body)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+s.Token())
		if resp, err := http.DefaultClient.Do(r); err != nil || resp.Body.Close() != nil || resp.StatusCode != 422 {
			t.Errorf("the first upload: %v %v", resp, err)
		}
	}()
	if _, err := feed.Write([]byte("no zip")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a second upload is refused", func() bool {
		resp, text := s.request("POST", "/v1/bundles", "x")
		return resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "" && strings.Contains(text, "another bundle")
	})
	if resp, _ := s.request("GET", "/v1/runs/bundle-1", ""); resp.StatusCode != 404 || time.Since(began) > 5*time.Second {
		t.Errorf("a request beside an upload: %d after %v", resp.StatusCode, time.Since(began))
	}
	_ = feed.Close()
	<-uploading
}

// Bundles are bounded: how many are open, how large one is, and how many are made at a time.
func TestBounds_Bundles(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Done("token-1"))
	<-r.done
	leave := server.FillExports(s.Server)
	if resp, text := s.request("GET", "/v1/runs/"+r.id+"/bundle", ""); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, "4 bundles are being made") {
		t.Errorf("a fifth bundle: %d %s", resp.StatusCode, text)
	}
	leave()
	_, bundle := s.request("GET", "/v1/runs/"+r.id+"/bundle", "")
	restore := server.SetMaxBundle(int64(len(bundle)) - 1)
	if resp, text := s.request("POST", "/v1/bundles", bundle); resp.StatusCode != 413 || !strings.Contains(text, `"next":`) {
		t.Errorf("a bundle that is too large: %d %s", resp.StatusCode, text)
	}
	restore()
	for i := range 20 {
		if resp, text := s.request("POST", "/v1/bundles", bundle); resp.StatusCode != 201 {
			t.Fatalf("bundle %d: %d %s", i+1, resp.StatusCode, text)
		}
	}
	if resp, text := s.request("POST", "/v1/bundles", bundle); resp.StatusCode != 422 || !strings.Contains(text, "20 bundles are open") {
		t.Errorf("bundle 21: %d %s", resp.StatusCode, text)
	}
}
