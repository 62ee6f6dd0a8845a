// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/statefolder"
	"github.com/drover-agents/drover/session"
)

// A record is what is kept of the demo.
type record struct {
	session    *session.Session
	log        string // the file of the session
	transcript string
}

// newRecord makes a folder for what happens.
func newRecord() (*record, error) {
	r, err := openRecord()
	if err != nil {
		return nil, fmt.Errorf("the folder in which the record of the demo is kept: %w\n  next: set XDG_STATE_HOME to a folder that can be written to", err)
	}
	return r, nil
}

func openRecord() (*record, error) {
	state, err := statefolder.Path()
	if err != nil {
		return nil, err
	}
	all := filepath.Join(state, "demo")
	if err := os.MkdirAll(all, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(all, time.Now().Format("2006-01-02-150405-"))
	if err != nil {
		return nil, err
	}
	r := &record{log: filepath.Join(dir, "session.jsonl"), transcript: filepath.Join(dir, "transcript.jsonl")}
	store, err := session.OpenFile(r.log, nil)
	if err != nil {
		return nil, err
	}
	r.session, err = session.Open(store, nil)
	return r, err
}

func (r *record) close() error { return r.session.Close() }

// tell says what there is to know after a run. There is no response if it failed.
func (r *record) tell(w io.Writer, resp *root.Response[review], m *demoModel) {
	fmt.Fprintln(w)
	if resp != nil {
		charged := ""
		if m.upstream != nil {
			charged = ", if it had been a real model"
		}
		fmt.Fprintf(w, "Cost      %s of %s for %s tokens in %s%s\n", dollars(resp.CostUSD()), dollars(demoUSD),
			thousands(resp.Usage.InputTokens()+resp.Usage.OutputTokens()), plural(resp.Turns, "model call"), charged)
	}
	fmt.Fprintf(w, "Events    %s\n", strings.Join(r.kinds(), "\n          "))
	fmt.Fprintf(w, "Record    %s  every event, one per line\n", r.log)
	fmt.Fprintf(w, "          %s  what the agent wrote down\n", r.transcript)
	fmt.Fprintf(w, "          look at it: jq . %s\n", r.log)
}

// kinds are how many events of each kind there were, the most frequent first.
func (r *record) kinds() []string {
	counts := map[event.Kind]int{}
	for e := range r.session.Events() {
		counts[e.Kind]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b event.Kind) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	texts := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		texts = append(texts, fmt.Sprintf("%3d  %s", counts[kind], kind))
	}
	return texts
}
