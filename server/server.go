// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/record/index"
)

// Options configure a [Server].
type Options struct {
	// Store has the runs.
	Store *record.Store
	// Starter starts runs and continues them. Nil refuses both.
	Starter Starter
	// Hosts are names of the server beside localhost and addresses. A request for another name is refused.
	Hosts []string
	// TLS has the certificate of the server. Nil means no TLS. If it verifies certificates of clients, a program with one needs no
	// token.
	TLS *tls.Config
	// Version is what the server says it is.
	Version string
	// Notify is called for each question and each end of a run, one after the other. Nil means no notices.
	Notify func(Notice)
	// Logger receives failures that no client receives. Nil discards them.
	Logger *slog.Logger
}

// A Server is the API and the page. It is an [http.Handler]; [Server.Serve] bounds its connections too. It must be closed.
type Server struct {
	o       Options
	index   *index.Index
	keys    keyring
	handler http.Handler
	watch   watch
	closing chan struct{} // ends the streams
	streams slots
	exports slots
	uploads slots

	feeds   feeds
	syncing syncing

	mu      sync.Mutex
	bundles []*record.Run
	dir     string // of the bundles
	closed  bool
}

// New returns a server for the runs of a store.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Store == nil {
		return nil, errors.New("server: Options.Store is missing")
	}
	o.Logger = safelog.Logger(o.Logger)
	ix, err := index.Open(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, index: ix, keys: keyring{owner: rand.Text(), viewer: rand.Text(), hosts: o.Hosts, rates: limiters()}, closing: make(chan struct{})}
	s.streams, s.exports, s.uploads = make(slots, maxStreams), make(slots, maxExports), make(slots, 1)
	s.handler = s.routes()
	s.watch.changed, s.watch.states = make(chan struct{}), map[string]liveState{}
	if o.Notify != nil {
		s.startWatching()
	}
	return s, nil
}

// Token is the owner's token, and ViewerToken one that can only read.
func (s *Server) Token() string { return s.keys.owner }

// ViewerToken is a token that can only read.
func (s *Server) ViewerToken() string { return s.keys.viewer }

// Address is the address of a run's page at a base such as "http://127.0.0.1:7070", or that of the list without a run. The page takes
// the token out of it at once.
func (s *Server) Address(base, run string) string {
	path := "/"
	if run != "" {
		path = "/r/" + url.PathEscape(run)
	}
	return base + path + "#t=" + s.keys.owner
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		h.Set("Cache-Control", "no-store")
	}
	serving(s.serve)(patient(w), r)
}

// serve checks what is the same for all requests.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the time is for bodies, and not for streams
	}
	if err := errors.Join(checkSize(r), s.keys.checkOrigin(r)); err != nil {
		return err
	}
	if at := r.URL.Path; at != "/" && path.Clean(at) != strings.TrimSuffix(at, "/") || r.Method == http.MethodConnect {
		return problem(http.StatusNotFound, "there is nothing at "+at, "GET /v1/openapi.json lists what there is")
	}
	s.handler.ServeHTTP(w, r)
	return nil
}

const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Serve serves connections of a listener until ctx ends. Requests under way get a second to end; streams end at once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: slowClient, IdleTimeout: idleTime, MaxHeaderBytes: 2 * (maxTarget + maxHeader),
		ErrorLog: slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		s.endStreams()
		patience, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		if server.Shutdown(patience) != nil {
			_ = server.Close() // the listener is closed already
		}
	})
	defer func() {
		if !stop() {
			<-closed
		}
	}()
	l = netutil.LimitListener(l, maxConnections)
	if s.o.TLS != nil {
		own := s.o.TLS.Clone()
		own.NextProtos = []string{"h2", "http/1.1"}
		l = tls.NewListener(l, own) // outside of the other: net/http looks for its connections
	}
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("server: %w", err)
}

func (s *Server) endStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
}

// Close closes the index, and removes the bundles that were opened.
func (s *Server) Close() error {
	s.endStreams()
	s.watch.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.index.Close()
	for _, b := range s.bundles {
		err = errors.Join(err, b.Close())
	}
	s.bundles = nil
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

//go:embed page
var pageFiles embed.FS

// page is the folder of the files of the page.
func page() fs.FS {
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the name is right
	}
	return files
}
