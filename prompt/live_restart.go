// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/session"
)

// restartGrace is how long a call that asks for a restart waits for the run to be ended.
const restartGrace = 5 * time.Second

// An ExpansionRequired reports that the model asked for hidden sections, and that the run must start again
// from scratch with them; see [LiveOptions.Restart]. It is the cause of the end of a [Live.Context].
type ExpansionRequired struct {
	// Requested has the sections that must be shown in full, by path. It can be put into
	// [RenderOptions.Visibility]; Apply puts it into a session.
	Requested map[string]Visibility
	// Reason is the model's.
	Reason string
	// SectionKeys are the sections that the model asked for.
	SectionKeys []string
}

// Error names the sections.
func (e *ExpansionRequired) Error() string {
	return "prompt: the model asks for hidden sections: " + strings.Join(e.SectionKeys, ", ")
}

// Advice implements [advice.Adviser].
func (e *ExpansionRequired) Advice() string {
	return "apply the expansion, render the prompt again and run that"
}

// Apply records in the session that the requested sections are shown in full from now on.
func (e *ExpansionRequired) Apply(ctx context.Context, s *session.Session) error {
	return setVisible(ctx, s, slices.Sorted(maps.Keys(e.Requested)), e.Reason)
}

// Expansion returns the request of the model, or nil. It is always nil without [LiveOptions.Restart].
func (l *Live) Expansion() *ExpansionRequired {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.expansion
}

// Context returns a context for the run. With [LiveOptions.Restart] it ends when the model has asked
// for hidden sections, in all calls of its message, and the [*ExpansionRequired] is its [context.Cause]: the run
// stops there instead of being paid to its end. The function must be called after the run.
func (l *Live) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expansion != nil {
		cancel(l.expansion)
	}
	id := l.nextID
	l.nextID++
	l.cancels[id] = cancel
	return ctx, func() {
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.cancels, id)
	}
}

// gatherTime is how long the run goes on after the first request. A model may ask several times in one message,
// and its agent makes these calls at once.
const gatherTime = 100 * time.Millisecond

// expand adds to the request of the model. The first request ends the run, after gatherTime.
func (l *Live) expand(e *ExpansionRequired) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expansion == nil {
		l.expansion = e
		time.AfterFunc(gatherTime, l.endRuns)
	} else {
		l.expansion = l.expansion.with(e)
	}
	return l.expansion
}

func (l *Live) endRuns() {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, cancel := range l.cancels {
		cancel(l.expansion)
	}
}

// with joins two requests. Neither is changed.
func (e *ExpansionRequired) with(more *ExpansionRequired) *ExpansionRequired {
	both := &ExpansionRequired{Requested: maps.Clone(e.Requested), Reason: e.Reason, SectionKeys: slices.Clone(e.SectionKeys)}
	maps.Copy(both.Requested, more.Requested)
	for _, key := range more.SectionKeys {
		if !slices.Contains(both.SectionKeys, key) {
			both.SectionKeys = append(both.SectionKeys, key)
		}
	}
	if more.Reason != "" && !strings.Contains(both.Reason, more.Reason) {
		both.Reason = strings.TrimPrefix(both.Reason+"; "+more.Reason, "; ")
	}
	return both
}

// awaitEnd delays the result of a call that has ended the run, so that the agent does not send it to the
// model. It does not wait if no context of [Live.Context] is open.
func (l *Live) awaitEnd(ctx context.Context) {
	l.mu.RLock()
	ending := len(l.cancels) > 0
	l.mu.RUnlock()
	if !ending {
		return
	}
	timer := time.NewTimer(restartGrace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
