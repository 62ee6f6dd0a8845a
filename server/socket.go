// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/plainjson"
)

// system is the operating system. A test has another one.
var system = runtime.GOOS

var errNoSockets = errors.New("this system has no sockets that only their owner can reach")

// A socket serves the run of a folder.
type socket struct {
	dir    string
	server *http.Server
	done   chan error // of Serve
	ending sync.WaitGroup
	ended  error
}

func openSocket(dir string, h http.Handler) (_ *socket, err error) {
	if dir == "" {
		return nil, errors.New("the run is not in a folder")
	}
	if system == "windows" {
		return nil, errNoSockets
	}
	key := rand.Text()
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte(key), 0o600); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			removeStale(dir)
		}
	}()
	path, done, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if unix, ok := l.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // close does, by the whole path
	}
	done()
	if err == nil {
		err = os.Chmod(filepath.Join(dir, socketFile), 0o600)
	}
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	s := &socket{dir: dir, done: make(chan error, 1), server: &http.Server{ReadHeaderTimeout: 10 * time.Second, ConnContext: withPeer}}
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err, _ := r.Context().Value(peerKey{}).(error); err != nil {
			writeProblem(w, problem(http.StatusForbidden, err.Error(), "control the run as the user that it belongs to"))
			return
		}
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(key)) != 1 {
			writeProblem(w, problem(http.StatusUnauthorized, "the key of the run is missing or wrong", "read it from "+keyFile+" beside the socket"))
			return
		}
		h.ServeHTTP(w, r)
	})
	go func() { s.done <- s.server.Serve(l) }()
	return s, nil
}

// peerKey is the key of a context for why the peer of its connection is refused.
type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, checkPeer(c))
}

// checkPeer refuses a program of another user at the other end of a connection, where the system tells whose it is. The mode of the
// socket keeps them out too, until someone changes it.
func checkPeer(c net.Conn) error {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("the connection is not one of a socket in a folder")
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	if failed := raw.Control(func(fd uintptr) { uid, err = peerOf(int(fd)) }); failed != nil || err != nil {
		return fmt.Errorf("whose the other end of the socket is cannot be known: %w", errors.Join(failed, err))
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("the program at the other end of the socket belongs to another user: uid %d", uid)
	}
	return nil
}

// close takes no more requests. Those under way come to their end: wait waits for that.
func (s *socket) close() {
	s.ending.Go(func() { s.ended = s.server.Shutdown(context.Background()) })
}

// remove removes the files of the socket. While they are there, the program has not done with the run.
func (s *socket) remove() (err error) {
	for _, name := range []string{socketFile, keyFile} {
		if gone := os.Remove(filepath.Join(s.dir, name)); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// doneTime is how long a program may take to close what a run has used after its end.
const doneTime = 10 * time.Second

// awaitDone waits until the program of a run that has ended is done with it: it may hold the conversation until then.
func awaitDone(ctx context.Context, dir string) {
	ctx, stop := context.WithTimeout(ctx, doneTime)
	defer stop()
	key := plainfile.NewWatch(dir, keyFile)
	defer key.Close()
	for {
		if _, err := os.Lstat(filepath.Join(dir, keyFile)); err != nil || ctx.Err() != nil {
			return
		}
		select {
		case <-key.Changed():
		case <-ctx.Done():
		}
	}
}

// lastRequests is how long requests may take that are under way when everything else has ended.
const lastRequests = 2 * time.Second

func (s *socket) wait() error {
	timer := time.AfterFunc(lastRequests, func() { _ = s.server.Close() }) // Shutdown returns then
	defer timer.Stop()
	s.ending.Wait()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		return errors.Join(s.ended, served)
	}
	return s.ended
}

// shortPath is a path of the socket in a folder that the system accepts. done ends its use.
func shortPath(dir string) (path string, done func(), err error) {
	path = filepath.Join(dir, socketFile)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if system != "linux" {
		return "", nil, advice.Wrap(fmt.Errorf("the path of the socket %s has more than %d bytes", path, maxSocketPath), "set XDG_STATE_HOME to a shorter path")
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), socketFile), func() { _ = f.Close() }, nil
}

// A control reaches the socket of a run.
type control struct {
	dir, key string
	client   *http.Client
}

// openControl fails with [fs.ErrNotExist] if the program of the run has no socket.
func openControl(dir string) (*control, error) {
	if system == "windows" {
		return nil, errNoSockets
	}
	for _, name := range []string{socketFile, keyFile} {
		if err := checkOwner(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	key, err := plainfile.Read(filepath.Join(dir, keyFile), 1<<10)
	if err != nil {
		return nil, err
	}
	c := &control{dir: dir, key: string(key)}
	c.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			path, done, err := shortPath(c.dir)
			if err != nil {
				return nil, err
			}
			defer done()
			var d net.Dialer
			conn, err := d.DialContext(ctx, "unix", path)
			if err != nil {
				return nil, err
			}
			if err := checkPeer(conn); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return conn, nil
		},
	}}
	return c, nil
}

// request makes a request. A problem document becomes the error.
func (c *control) request(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		text, err := plainjson.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://run"+path, in)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(r)
	if err != nil {
		return nil, problem(http.StatusBadGateway, "the program of the run cannot be reached: "+err.Error(), "look at the run again: it may have ended")
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	var p Problem
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&p); err != nil {
		return nil, problem(http.StatusBadGateway, fmt.Sprintf("the program of the run answered with status %d", resp.StatusCode), "look at the run again: it may have ended")
	}
	return nil, &p
}

// maxFrame is the longest line that a program may send: the questions that wait, with their inputs.
const maxFrame = 64 << 20

// A frame is a server-sent event of a run's program.
type frame struct {
	name string
	data []byte
}

// watch calls f with each event of the program, until it ends or f returns false.
func (c *control) watch(ctx context.Context, path string, f func(frame) bool) error {
	resp, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxFrame)
	var next frame
	for lines.Scan() {
		line := lines.Bytes()
		if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			next.name = string(name)
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			next.data = bytes.Clone(data)
		}
		if len(line) == 0 && next.name != "" {
			if !f(next) {
				return nil
			}
			next = frame{}
		}
	}
	return cmp.Or(lines.Err(), io.EOF)
}

// liveStateOf asks the program of a run for its state.
func liveStateOf(ctx context.Context, dir string) (s liveState, err error) {
	c, err := openControl(dir)
	if err != nil {
		return s, err
	}
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	err = c.watch(ctx, "/state?once", func(f frame) bool {
		err = json.Unmarshal(f.data, &s)
		return false
	})
	return s, err
}
