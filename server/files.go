// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"os"

	"github.com/drover-agents/drover/internal/plainjson"
)

func (s *Server) serveDiff(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	text, err := run.Diff()
	if err != nil && len(text) == 0 {
		return err
	}
	w.Header().Set("Content-Type", "text/x-diff; charset=utf-8")
	_, _ = w.Write(text) // no client is left
	return nil
}

func (s *Server) serveBundle(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	leave, ok := s.exports.take()
	if !ok {
		return tooMany(fmt.Sprintf("%d bundles are being made", maxExports), "try again later", retryAfter)
	}
	defer leave()
	f, err := os.CreateTemp("", "drover-bundle-")
	if err != nil {
		return err
	}
	defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
	if err := run.Export(f); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+run.ID[:min(8, len(run.ID))]+`.drover.zip"`)
	w.Header().Set("Content-Type", "application/zip")
	serveWhole(w, r, "", f)
	return nil
}

func (s *Server) serveTranscript(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	for entry, err := range run.Transcript() {
		if err != nil {
			return err
		}
		text, err := plainjson.Marshal(entry)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(text, '\n')); err != nil {
			return nil // no client is left
		}
	}
	return nil
}
