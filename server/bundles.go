// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/record"
)

// Bundles that were opened have ids of their own.
const (
	bundlePrefix = "bundle-"
	maxBundles   = 20
	bundleTime   = 10 * time.Minute
)

// maxBundle is how large a bundle may be. A test has smaller ones.
var maxBundle int64 = 1 << 30

func (s *Server) serveOpen(w http.ResponseWriter, r *http.Request) error {
	leave, ok := s.uploads.take()
	if !ok {
		return tooMany("another bundle is being opened", "try again when it is open", retryAfter)
	}
	defer leave()
	var run *record.Run
	err := readWithin(w, bundleTime, func() (err error) {
		run, err = s.open(http.MaxBytesReader(w, r.Body, maxBundle))
		return err
	})
	if err != nil {
		return err
	}
	return s.writeRun(w, r, http.StatusCreated, run)
}

// bundlePath is the path of the next bundle.
func (s *Server) bundlePath() (_ string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return "", errEnding
	case len(s.bundles) >= maxBundles:
		return "", problem(http.StatusUnprocessableEntity, fmt.Sprintf("%d bundles are open", maxBundles), "start the server again to close them")
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "drover-bundles-"); err != nil {
			return "", err
		}
	}
	return filepath.Join(s.dir, strconv.Itoa(len(s.bundles)+1)+".zip"), nil
}

var errEnding = problem(http.StatusServiceUnavailable, "the server is about to end", "open the bundle at the next one")

// open keeps a bundle until the server is closed. There is one call at a time.
func (s *Server) open(from io.Reader) (*record.Run, error) {
	path, err := s.bundlePath()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	run, err := record.OpenBundle(path)
	if err != nil {
		return nil, errors.Join(problem(http.StatusUnprocessableEntity, "the file cannot be opened: "+err.Error(), "send a file of drover runs export"), os.Remove(path))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(errEnding, run.Close())
	}
	s.bundles = append(s.bundles, run)
	return run, nil
}

func (s *Server) bundle(id string) (*record.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := strconv.Atoi(strings.TrimPrefix(id, bundlePrefix))
	if err != nil || n < 1 || n > len(s.bundles) {
		return nil, problem(http.StatusNotFound, "there is no open bundle "+id, "open the file again")
	}
	return s.bundles[n-1], nil
}

func (s *Server) bundleID(run *record.Run) string {
	return bundlePrefix + strings.TrimSuffix(filepath.Base(run.Path), ".zip")
}
