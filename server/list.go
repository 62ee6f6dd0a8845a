// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/record/index"
)

// A RunList is a list of runs.
type RunList struct {
	Runs []Summary `json:"runs"`
	// Hours are the last 24 hours in which runs began, with their cost.
	Hours []HourCost `json:"hours"`
	Now   time.Time  `json:"now"`
}

// An HourCost is what the runs cost that began in an hour.
type HourCost struct {
	Hour time.Time `json:"hour"`
	USD  float64   `json:"usd"`
}

const (
	defaultList = 200
	maxList     = 2000
)

func (s *Server) serveRuns(w http.ResponseWriter, r *http.Request) error {
	f, err := filterOf(r)
	if err != nil {
		return err
	}
	if err := s.sync(r.Context()); err != nil {
		return err
	}
	rows, err := s.index.Runs(r.Context(), f)
	if err != nil {
		return err
	}
	now := time.Now()
	list := RunList{Runs: []Summary{}, Hours: []HourCost{}, Now: now}
	waiting, err := s.waiting(r.Context(), f)
	if err != nil {
		return err
	}
	list.Runs = append(list.Runs, waiting...)
	for _, row := range rows[:min(len(rows), f.Limit-len(waiting))] {
		sum := s.summary(row)
		if state, known := s.watch.state(row.Path); known && row.State == record.Running { // no request to each program
			sum.Controllable, sum.Questions = state.Control, state.Questions
		} else {
			askState(r.Context(), &sum, row.Path)
		}
		list.Runs = append(list.Runs, sum)
	}
	first := now.UTC().Truncate(time.Hour).Add(-23 * time.Hour)
	recent, err := s.index.Runs(r.Context(), index.Filter{Since: first})
	if err != nil {
		return err
	}
	usd := map[time.Time]float64{}
	for _, row := range recent {
		if row.CostUSD != nil {
			usd[row.Began.UTC().Truncate(time.Hour)] += *row.CostUSD
		}
	}
	for h := first; !h.After(now); h = h.Add(time.Hour) {
		if usd[h] > 0 {
			list.Hours = append(list.Hours, HourCost{h, usd[h]})
		}
	}
	return writeJSON(w, http.StatusOK, list)
}

func filterOf(r *http.Request) (f index.Filter, err error) {
	q := r.URL.Query()
	f = index.Filter{Agent: q.Get("agent"), Folder: q.Get("folder"), State: record.State(q.Get("state")), Words: strings.Fields(q.Get("q")), Limit: defaultList}
	for name := range q {
		switch name {
		case "agent", "folder", "q":
		case "state":
			switch f.State {
			case record.Running, record.Ended, record.Lost, index.Unreadable, Queued, "":
			default:
				err = fmt.Errorf("state is %q", f.State)
			}
		case "failed":
			f.Failed, err = strconv.ParseBool(q.Get(name))
		case "since":
			f.Since, err = time.Parse(time.RFC3339, q.Get(name))
		case "limit":
			if f.Limit, err = strconv.Atoi(q.Get(name)); err == nil && (f.Limit < 1 || f.Limit > maxList) {
				err = fmt.Errorf("limit is %d", f.Limit)
			}
		default:
			err = fmt.Errorf("there is no parameter %q", name)
		}
		if err != nil {
			return f, problem(http.StatusBadRequest, "the query cannot be understood: "+err.Error(), "GET /v1/openapi.json describes the parameters")
		}
	}
	return f, nil
}

// summary is a row of the index.
func (s *Server) summary(row index.Row) Summary {
	sum := Summary{
		ID: row.ID, Title: cmp.Or(row.Words, row.Name, row.Prompt, row.ID), Name: row.Name, Agent: row.Agent, PromptName: row.Prompt,
		Folder: row.Folder, Model: row.Model, State: row.State, Status: row.Status, Kind: row.Kind, Error: row.Error, Problem: row.Problem,
		Began: row.Began, Ended: row.Ended, DurationMS: row.Duration.Milliseconds(), Turns: row.Turns, Denied: row.Denied, CostUSD: row.CostUSD,
		InputTokens: row.InputTokens, OutputTokens: row.OutputTokens, Isolation: row.Isolation, AgentVersion: row.AgentVersion,
		DroverVersion: row.DroverVersion, Resumes: row.Resumes, Questions: []Question{},
	}
	sum.Resumable = s.o.Starter != nil && row.State != record.Running && row.State != index.Unreadable
	return sum
}

// askState adds what the program of a run under way says of it.
func askState(ctx context.Context, sum *Summary, dir string) {
	if sum.State != record.Running {
		return
	}
	state, err := liveStateOf(ctx, dir)
	if err != nil { // it has no socket, or has just ended
		return
	}
	sum.Controllable, sum.Questions = state.Control, state.Questions
}
