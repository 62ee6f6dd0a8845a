// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// closeLimit is how long Close waits for answers that are under way.
const closeLimit = 5 * time.Second

// ErrStillRunning is returned by [Server.Close] when an answer does not end, which only a function of the script can cause.
var ErrStillRunning = errors.New("script: an answer is still running")

// A Server serves a [Model] on a loopback port of its own. It owns one goroutine for accepting and
// one for each connection; Close ends them.
type Server struct {
	*Model

	url     string
	limit   time.Duration // closeLimit but for tests
	http    *http.Server
	cancel  context.CancelFunc
	running sync.WaitGroup // the accepting goroutine, connections, and handlers
	close   sync.Once
	err     error
}

// Start serves s on 127.0.0.1, on a port that the system chooses. Close the server when done.
func Start(s Script) (*Server, error) {
	model, err := NewModel(s)
	if err != nil {
		return nil, err
	}
	return serve(model)
}

// serve serves a model on 127.0.0.1, on a port that the system chooses. Close the server when done.
func serve(model *Model) (*Server, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("script: no loopback port: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{Model: model, url: "http://" + listener.Addr().String(), limit: closeLimit, cancel: cancel}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         s.connState,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that break off are expected
	}
	s.running.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// URL is the base address, without a final slash.
func (s *Server) URL() string { return s.url }

// Close stops listening, drops all connections and waits up to five seconds for answers that are
// under way; then it returns [ErrStillRunning]. Later calls return the same.
func (s *Server) Close() error {
	s.close.Do(func() {
		s.cancel()
		s.err = s.http.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.running.Wait()
		}()
		select {
		case <-done:
		case <-time.After(s.limit):
			s.err = fmt.Errorf("%w after %s: look for a Func or condition that blocks", ErrStillRunning, s.limit)
		}
	})
	return s.err
}

// handle counts the answer itself, because a reset takes its connection away from the server.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.running.Add(1)
	defer s.running.Done()
	s.ServeHTTP(w, r)
}

func (s *Server) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.running.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.running.Done()
	}
}
