// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/record/index"
)

// find opens the run that a request names, and its row.
func (s *Server) find(r *http.Request) (*record.Run, error) {
	waiting, err := s.queued(r.Context(), r.PathValue("run"))
	if waiting != nil {
		err = errWaits
		if waiting.State != Queued {
			err = problem(http.StatusConflict, "the run has ended before it began: "+waiting.Error, "start another one")
		}
	}
	if err != nil {
		return nil, err
	}
	return s.findRun(s.keptID(r.Context(), r.PathValue("run")))
}

func (s *Server) findRun(id string) (*record.Run, error) {
	if strings.HasPrefix(id, bundlePrefix) {
		return s.bundle(id)
	}
	run, err := s.o.Store.Find(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem(http.StatusNotFound, "there is no run "+id, "GET /v1/runs lists them")
	}
	if err != nil {
		return nil, problem(http.StatusBadRequest, err.Error(), advice.Of(err))
	}
	return run, nil
}

func (s *Server) serveRun(w http.ResponseWriter, r *http.Request) error {
	if waiting, err := s.queued(r.Context(), r.PathValue("run")); waiting != nil || err != nil {
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, waiting.whole())
	}
	run, err := s.find(r)
	if err != nil {
		return err
	}
	return s.writeRun(w, r, http.StatusOK, run)
}

func (s *Server) writeRun(w http.ResponseWriter, r *http.Request, status int, run *record.Run) error {
	whole, err := s.describe(r.Context(), run)
	if err != nil {
		return err
	}
	if status == http.StatusCreated {
		w.Header().Set("Location", "/v1/runs/"+whole.ID)
	}
	return writeJSON(w, status, whole)
}

// describe is all that is known of a run.
func (s *Server) describe(ctx context.Context, run *record.Run) (Run, error) {
	row := index.Row{
		Path: run.Path, ID: run.ID, Agent: run.Agent, Name: run.Name, Prompt: run.Prompt, Folder: run.Folder, Model: run.Model, State: run.State,
		Began: run.Began, Resumes: run.Resumes, DroverVersion: run.Versions["drover"],
	}
	bundle := s.o.Store.Folder(run) == ""
	if !bundle {
		if err := s.sync(ctx); err != nil {
			return Run{}, err
		}
		known, err := s.rowOf(ctx, run)
		if err == nil && run.State != record.Running && (known == nil || known.State == record.Running) { // it has just ended
			if err = s.index.Sync(ctx); err == nil {
				known, err = s.rowOf(ctx, run)
			}
		}
		if err != nil {
			return Run{}, err
		}
		if known != nil {
			row = *known
		}
		if run.State == record.Running && (row.State == record.Ended || row.State == record.Lost) { // since it was opened
			if run, err = s.o.Store.Run(s.o.Store.Folder(run)); err != nil {
				return Run{}, err
			}
		}
	}
	whole := Run{Summary: s.summary(row), Info: RunInfo{run.Settings, run.Command, run.Versions}, Deadline: run.Deadline, Damage: run.Damage()}
	askState(ctx, &whole.Summary, row.Path)
	if bundle {
		whole.ID, whole.Resumable = s.bundleID(run), false
		details, err := run.Details()
		if err != nil {
			whole.Damage = append(whole.Damage, err.Error())
		}
		if details != nil {
			whole.Title, whole.AgentVersion, whole.Isolation = cmp.Or(safetext.FirstWords(details.Prompt, 200), whole.Title), details.AgentVersion, details.Isolation
		}
	}
	if e := run.End; e != nil {
		whole.End = &RunEnd{e.Text, e.Output, e.Error, e.Advice, e.Usage, e.Stats}
		whole.Status, whole.Kind, whole.Error, whole.Ended = e.Status, e.Kind, e.Error, e.Ended
		whole.DurationMS, whole.Turns, whole.Problem = e.Duration.Milliseconds(), e.Turns, e.Problem
	}
	var settings struct {
		MaxTurns int `json:"maxTurns"`
		Budget   struct {
			USD    float64 `json:"maxCostUsd"`
			Tokens int64   `json:"maxTotalTokens"`
		} `json:"budget"`
	}
	if json.Unmarshal(run.Settings, &settings) == nil {
		whole.Limits = Limits{USD: settings.Budget.USD, Tokens: settings.Budget.Tokens, Turns: settings.MaxTurns}
		whole.BudgetUSD = settings.Budget.USD
	}
	if s.o.Starter != nil && !bundle {
		whole.Again = s.o.Starter.Again(run)
	}
	return whole, nil
}

// rowOf is the row of a run in the index, or nil.
func (s *Server) rowOf(ctx context.Context, run *record.Run) (*index.Row, error) {
	rows, err := s.index.Prefix(ctx, run.ID)
	for i := range rows {
		if rows[i].Path == run.Path {
			return &rows[i], err
		}
	}
	return nil, err
}
