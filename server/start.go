// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/http"
	"time"
)

var errNoStarts = problem(http.StatusForbidden, "this server starts no runs", "start it as drover serve, or the run as drover run")

func (s *Server) serveOffer(w http.ResponseWriter, r *http.Request) error {
	if s.o.Starter == nil {
		return errNoStarts
	}
	offer, err := s.o.Starter.Offer(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, offer)
}

func (s *Server) serveStart(w http.ResponseWriter, r *http.Request) error {
	if s.o.Starter == nil {
		return errNoStarts
	}
	var start Start
	if err := readJSON(w, r, &start); err != nil {
		return err
	}
	id, err := s.o.Starter.Start(r.Context(), start)
	if err != nil {
		return busy(err)
	}
	return s.started(w, r, id)
}

// ErrBusy is wrapped by a [Starter] that has as many runs as it may have.
var ErrBusy = errors.New("as many runs are under way as this server may have")

// retryAfter is when a client that was refused may ask again.
const retryAfter = 5 * time.Second

func busy(err error) error {
	if !errors.Is(err, ErrBusy) {
		return err
	}
	return tooMany(err.Error(), "try again later, or start drover serve with a larger -n", retryAfter)
}

func (s *Server) started(w http.ResponseWriter, r *http.Request, id string) error {
	waiting, err := s.queued(r.Context(), id)
	if err != nil {
		return err
	}
	if waiting != nil {
		s.watch.change()
		w.Header().Set("Location", "/v1/runs/"+waiting.ID)
		return writeJSON(w, http.StatusCreated, waiting.whole())
	}
	run, err := s.findRun(s.keptID(r.Context(), id))
	if err != nil {
		return err
	}
	return s.writeRun(w, r, http.StatusCreated, run)
}
