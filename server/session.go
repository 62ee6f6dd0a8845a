// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/record"
)

// A SessionState is the state of a session after an entry of its log.
type SessionState struct {
	At     int64          `json:"at"`
	Slices []SessionSlice `json:"slices"`
}

// A SessionSlice is one part of the state.
type SessionSlice struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	at := int64(0)
	if text := r.URL.Query().Get("at"); text != "" {
		if at, err = strconv.ParseInt(text, 10, 64); err != nil || at < 1 {
			return problem(http.StatusBadRequest, fmt.Sprintf("at is %q", text), "give the position of an entry")
		}
	}
	state, err := sessionAt(run, at)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, state)
}

func sessionAt(run *record.Run, at int64) (state SessionState, err error) {
	s, last, err := run.SessionAt(at)
	if err != nil {
		return state, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	state = SessionState{last, []SessionSlice{}}
	for name, latest := range record.Slices(s) {
		text, err := plainjson.Marshal(latest)
		if err != nil {
			return state, err
		}
		state.Slices = append(state.Slices, SessionSlice{name, text})
	}
	return state, nil
}
