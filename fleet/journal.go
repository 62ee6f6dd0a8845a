// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/prompt"
)

// evaluate evaluates the prompt of a run. If an earlier attempt has left a conversation of the agent, that goes on. A run that
// itself resumes a conversation begins again.
func evaluate[T any](ctx context.Context, a agent.Adapter, p *prompt.Prompt[T], o *drover.Options, past *replay, j *journal) (*drover.Response[T], error) {
	if keeper, ok := a.(agent.Keeper); ok && o.Resume == "" {
		found, err := keeper.Recover(ctx, j, past.result)
		if err != nil {
			return nil, err
		}
		a = keeper.KeptIn(j)
		if found.Token != "" {
			past.settle(found.Calls)
			o.Resume = found.Token
			return resume(ctx, a, p, o, j)
		}
	}
	if len(past.past) > 0 {
		o.AppendSystemPrompt = strings.TrimSpace(o.AppendSystemPrompt + "\n\n" + interrupted)
	}
	return drover.Evaluate(ctx, a, p, o)
}

// resume has the agent go on. A conversation that cannot go on is given up: the next attempt begins again.
func resume[T any](ctx context.Context, a agent.Adapter, p *prompt.Prompt[T], o *drover.Options, j *journal) (*drover.Response[T], error) {
	before := j.appends()
	c := drover.Converse(a, p, o)
	resp, err := c.Send(ctx, resumed)
	if closed := c.Close(); closed != nil {
		j.l.f.log.Warn("closing the conversation of a run", "run", j.l.id, "error", closed)
	}
	if failure, ok := errors.AsType[*drover.EvaluationError](err); ok && ctx.Err() == nil && (!failure.Retry.Worthwhile || j.appends() == before) {
		err = errors.Join(err, j.giveUp())
	}
	return resp, err
}

// A journal keeps the conversations of an agent in the log of its run: the same holder, in one order with the calls. It is
// an [agent.Journal].
type journal struct {
	l *Log

	mu       sync.Mutex
	appended int
	read     uint64 // the last message that was read
	lines    map[string][]json.RawMessage
	names    []string
	files    map[string]keptFile
}

// A page is the body of a message of a journal. One without a name gives up what came before.
type page struct {
	Name  string            `json:"name,omitzero"`
	Lines []json.RawMessage `json:"lines,omitempty"`
}

// Append implements [agent.Journal].
func (j *journal) Append(ctx context.Context, name string, lines []json.RawMessage) error {
	if err := ctx.Err(); err != nil || len(lines) == 0 {
		return err
	}
	if err := j.l.note(kindJournal, page{name, lines}); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.appended++
	return nil
}

// appends is how often something was appended here.
func (j *journal) appends() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.appended
}

func (j *journal) giveUp() error { return j.l.note(kindJournal, page{}) }

// Load implements [agent.Journal].
func (j *journal) Load(ctx context.Context, name string) ([]json.RawMessage, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.readLocked(ctx)
	var lines []json.RawMessage
	for _, line := range j.lines[name] {
		lines = append(lines, bytes.Clone(line)) // the caller may change it
	}
	return lines, err
}

// Names implements [agent.Journal].
func (j *journal) Names(ctx context.Context) ([]string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.readLocked(ctx)
	return slices.Clone(j.names), err
}

// readLocked reads what the log has got since the last time.
func (j *journal) readLocked(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.l.mu.Lock()
	last := j.l.tail.seq
	j.l.mu.Unlock()
	for m, err := range j.l.f.messages(ctx, j.l.subject, j.read+1, last) {
		if err != nil {
			return fmt.Errorf("fleet: reading the journal of the run %s: %w", j.l.id, err)
		}
		j.read = m.seq
		if m.kind() == kindFiles {
			err = j.readFilesLocked(m)
		}
		if err != nil {
			return fmt.Errorf("fleet: reading the files of the run %s: message %d: %w", j.l.id, m.seq, err)
		}
		if m.kind() != kindJournal {
			continue
		}
		var p page
		if err := json.Unmarshal(m.body, &p); err != nil {
			return fmt.Errorf("fleet: reading the journal of the run %s: message %d: %w", j.l.id, m.seq, err)
		}
		if p.Name == "" || j.lines == nil {
			j.lines, j.names = map[string][]json.RawMessage{}, nil
		}
		if p.Name != "" {
			j.lines[p.Name] = append(j.lines[p.Name], p.Lines...)
			j.names = append(slices.DeleteFunc(j.names, func(n string) bool { return n == p.Name }), p.Name)
		}
	}
	return nil
}

func (j *journal) readFilesLocked(m *message) error {
	var all []keptFile
	if err := json.Unmarshal(m.body, &all); err != nil {
		return err
	}
	if j.files == nil {
		j.files = map[string]keptFile{}
	}
	for _, k := range all {
		j.files[string(k.Path)] = k
	}
	return nil
}

// keptFiles is what became of each path that calls have changed.
func (j *journal) keptFiles(ctx context.Context) (map[string]keptFile, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.readLocked(ctx)
	files := j.files
	j.files = nil
	return files, err
}
