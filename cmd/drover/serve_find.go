// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/server"
)

// A runningServer is a drover serve of this user, found by the file that it has written.
type runningServer struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	file  string
	http  *http.Client
}

// errNoServer means that no drover serve of this user answers.
var errNoServer = errors.New("no drover serve is running")

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// findServer finds the only server that answers. Files of servers that were killed are passed over.
func findServer(ctx context.Context, client *http.Client) (*runningServer, error) {
	state, err := leftover.StateFolder()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(state, "serve", "*.json"))
	if err != nil {
		return nil, err
	}
	var found []*runningServer
	for _, file := range files {
		s, err := readServer(file, client)
		if errors.Is(err, fs.ErrNotExist) { // it has just ended
			continue
		}
		if err != nil {
			return nil, err
		}
		ctx, done := context.WithTimeout(ctx, 5*time.Second)
		err = s.call(ctx, http.MethodGet, "/v1/server", nil, new(server.About))
		done()
		if refused, is := errors.AsType[*server.Problem](err); is && refused.Status != http.StatusUnauthorized {
			return nil, err
		}
		if err == nil {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return nil, errNoServer
	case 1:
		return found[0], nil
	}
	return nil, advice.Wrap(usageError("several drover serve are running: %s and %s", found[0].URL, found[1].URL),
		"stop all but one, or use their API, which docs/server.md describes")
}

// readServer reads the file of a server. One that others can read or write is refused.
func readServer(file string, client *http.Client) (*runningServer, error) {
	if err := checkPrivate(file); err != nil {
		return nil, err
	}
	text, err := plainfile.Read(file, 1<<16)
	if err != nil {
		return nil, err
	}
	s := &runningServer{file: file, http: client}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, advice.Wrap(fmt.Errorf("%s is not the file of a server: %w", file, err), "remove it")
	}
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") || s.Token == "" {
		return nil, advice.Wrap(fmt.Errorf("%s is not the file of a server", file), "remove it")
	}
	return s, nil
}

// call makes a request of the API. A refusal is a [*server.Problem].
func (s *runningServer) call(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		text, err := plainjson.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, content)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(r)
	if err != nil {
		return fmt.Errorf("asking the server of %s: %w", s.file, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", s.URL, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		p := &server.Problem{Status: resp.StatusCode, Detail: resp.Status}
		_ = json.Unmarshal(text, p) // else the status is all that is known
		return p
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("the answer of %s: %w", s.URL, err)
	}
	return nil
}

// checkPrivate refuses a file that is not a plain file for its user alone.
func checkPrivate(file string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return advice.Wrap(fmt.Errorf("%s has the token of a server, and others can reach it", file), "remove it, and start drover serve again")
	}
	return nil
}
