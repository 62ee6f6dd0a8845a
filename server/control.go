// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/drover-agents/drover/record"
)

// serveControl passes an answer, an interruption or a stop on to the program of the run.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) error {
	if strings.HasSuffix(r.URL.Path, "/stop") {
		if done, err := s.serveQueuedStop(w, r); done {
			return err
		}
	}
	run, err := s.find(r)
	if err != nil {
		return err
	}
	to := "/" + path.Base(r.URL.Path)
	var body any
	if id := r.PathValue("question"); id != "" {
		var a Answer
		if err := readJSON(w, r, &a); err != nil {
			return err
		}
		to, body = "/questions/"+url.PathEscape(id), a
	}
	if err := s.pass(r.Context(), run, to, body, nil); err != nil {
		return err
	}
	if body != nil {
		w.WriteHeader(http.StatusNoContent)
	} else {
		w.WriteHeader(http.StatusAccepted)
	}
	return nil
}

var errOver = problem(http.StatusConflict, "the run is over", "send a message to continue it")

// controlTime is how long the program of a run may take to answer. A test has less patience.
var controlTime = 10 * time.Second

// pass makes a request to the program of a run.
func (s *Server) pass(ctx context.Context, run *record.Run, path string, body, answer any) error {
	if run.State != record.Running {
		return errOver
	}
	if answer == nil { // a message waits for its turn
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, controlTime)
		defer done()
	}
	c, err := openControl(run.Path)
	if err != nil {
		err = problem(http.StatusConflict, "the program of this run cannot be controlled from elsewhere: "+err.Error(), "answer and stop it where it was started")
		return s.overOr(run, err)
	}
	resp, err := c.request(ctx, http.MethodPost, path, body)
	if p, is := errors.AsType[*Problem](err); is && p.Status == http.StatusBadGateway {
		return s.overOr(run, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if answer == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(answer)
}

// overOr is errOver for a run that has ended since it was opened, and its socket with it. Of another it is err.
func (s *Server) overOr(run *record.Run, err error) error {
	if now, gone := s.o.Store.Run(s.o.Store.Folder(run)); gone == nil && now.State != record.Running {
		return errOver
	}
	return err
}

// A Message is sent in the conversation of a run.
type Message struct {
	// Text is empty to have a run that is over continue where it stopped.
	Text string `json:"text,omitzero"`
}

func (s *Server) serveMessage(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	var m Message
	if err := readJSON(w, r, &m); err != nil {
		return err
	}
	var next struct{ Run string }
	switch {
	case run.State == record.Running && strings.TrimSpace(m.Text) == "":
		return problem(http.StatusUnprocessableEntity, "the message is empty", "send a text")
	case run.State == record.Running:
		err = s.pass(r.Context(), run, "/messages", m, &next)
	case s.o.Starter == nil:
		err = errNoStarts
	default:
		if run.State == record.Ended {
			awaitDone(r.Context(), run.Path)
		}
		next.Run, err = s.o.Starter.Continue(r.Context(), run, m.Text)
		err = busy(err)
	}
	if err != nil {
		return err
	}
	return s.started(w, r, next.Run)
}
