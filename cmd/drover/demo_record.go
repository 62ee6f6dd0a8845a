// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/statefolder"
	"github.com/drover-agents/drover/session"
)

// A record is what is kept of the demo.
type record struct {
	session *session.Session
	dir     string
}

// The files of a record.
const (
	sessionFile    = "session.jsonl"
	transcriptFile = "transcript.jsonl"
)

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
	store, err := session.OpenFile(filepath.Join(dir, sessionFile), nil)
	if err != nil {
		return nil, err
	}
	s, err := session.Open(store, nil)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &record{session: s, dir: dir}, nil
}

func (r *record) close() error { return r.session.Close() }

// options keep the transcript too.
func (r *record) options() *root.TranscriptOptions {
	return &root.TranscriptOptions{File: filepath.Join(r.dir, transcriptFile)}
}

// tell says what there is to know after a run. There is no response if it failed.
func (r *record) tell(w io.Writer, resp *root.Response[review], m *demoModel) {
	fmt.Fprintln(w)
	if resp != nil {
		charged := ""
		if m.upstream != nil {
			charged = ", not charged"
		}
		fmt.Fprintf(w, "Cost     %s of %s for %s tokens in %s%s\n", wording.Dollars(resp.CostUSD()), wording.Dollars(demoUSD),
			wording.Thousands(resp.Usage.InputTokens()+resp.Usage.OutputTokens()), wording.Plural(resp.Turns, "model call"), charged)
	}
	r.tellEvents(w)
	fmt.Fprintf(w, "Record   %s\n", r.dir)
	fmt.Fprintf(w, "         %-16s  all these events, one per line\n", sessionFile)
	fmt.Fprintf(w, "         %-16s  what the agent wrote down\n", transcriptFile)
	fmt.Fprintf(w, "         look at it: jq -c '.event // empty' %s\n", shellWord(filepath.Join(r.dir, sessionFile)))
}

// tellEvents says how many events of each kind there were, the most frequent first.
func (r *record) tellEvents(w io.Writer) {
	counts, all := map[event.Kind]int{}, 0
	for e := range r.session.Events() {
		counts[e.Kind]++
		all++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b event.Kind) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "Events   %d in the session\n", all)
	for some := range slices.Chunk(kinds, 3) { // which 80 columns have room for
		line := "        "
		for _, kind := range some {
			line += fmt.Sprintf(" %3d %-19s", counts[kind], kind)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// shellWord is a path as a shell has to be told it.
func shellWord(path string) string {
	if strings.ContainsAny(path, " '\"$\\") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
