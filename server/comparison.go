// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"net/http"

	"github.com/drover-agents/drover/record"
)

// A Comparison is where two runs part.
type Comparison struct {
	A Summary `json:"a"`
	B Summary `json:"b"`
	// Prompt, Settings, Answer and Changes are differences as unified diffs. What is the same in both is empty.
	Prompt   string   `json:"prompt,omitzero"`
	Settings string   `json:"settings,omitzero"`
	Answer   string   `json:"answer,omitzero"`
	Changes  string   `json:"changes,omitzero"`
	OnlyA    []string `json:"onlyA,omitempty"`
	OnlyB    []string `json:"onlyB,omitempty"`
	// Same is how many of the first calls are the same, and CallA and CallB those behind them.
	Same  int           `json:"same"`
	CallA *ComparedCall `json:"callA,omitempty"`
	CallB *ComparedCall `json:"callB,omitempty"`
}

// A ComparedCall is the first tool call in which a run differs.
type ComparedCall struct {
	Pos    int64           `json:"position"`
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Status string          `json:"status,omitzero"`
	Denied string          `json:"denied,omitzero"`
}

func (s *Server) serveCompare(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	a, err := s.findRun(q.Get("a"))
	if err != nil {
		return err
	}
	b, err := s.findRun(q.Get("b"))
	if err != nil {
		return err
	}
	c, err := record.Compare(a, b)
	if err != nil {
		return err
	}
	ofA, err := s.describe(r.Context(), a)
	if err != nil {
		return err
	}
	ofB, err := s.describe(r.Context(), b)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, Comparison{
		A: ofA.Summary, B: ofB.Summary, Prompt: c.Prompt, Settings: c.Settings, Answer: c.Answer, Changes: c.Changes, OnlyA: c.OnlyA, OnlyB: c.OnlyB,
		Same: c.Same, CallA: compared(c.A), CallB: compared(c.B),
	})
}

func compared(c *record.Call) *ComparedCall {
	if c == nil {
		return nil
	}
	of := &ComparedCall{Pos: c.Pos, Tool: c.Name, Input: c.Input, Status: string(c.Status())}
	if d := c.Denied(); d != nil {
		of.Denied = d.Reason
	}
	return of
}
