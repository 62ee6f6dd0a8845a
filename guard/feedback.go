// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// How much weight a feedback has.
const (
	SeverityInfo    = "info"
	SeverityCaution = "caution"
	SeverityWarning = "warning"
)

// A FeedbackProvider gives an agent feedback about its work while it works.
type FeedbackProvider interface {
	// Name is what the feedback is signed with. Each provider of a run has a name of its own.
	Name() string
	// Provide returns the feedback for now; an empty Summary is no feedback. The name is filled in. It
	// may be called by several goroutines, may dispatch, and returns when ctx ends: the agent waits.
	Provide(ctx context.Context, s *session.Session) (session.Feedback, error)
}

// A FeedbackTrigger is when a provider is asked. Each condition that is set suffices.
type FeedbackTrigger struct {
	// EveryCalls asks after each nth tool call.
	EveryCalls int
	// Every asks if so much time has passed since the provider was asked last; the first call asks.
	Every time.Duration
	// OnFileCreated asks once, after the first call at whose end the file is there. [FeedbackOptions.Files] must be given.
	OnFileCreated string
}

// A FeedbackRule is a provider and when it is asked.
type FeedbackRule struct {
	Provider FeedbackProvider
	Trigger  FeedbackTrigger
}

// FeedbackOptions configures [NewFeedback]. Nil and the zero value are ready to use.
type FeedbackOptions struct {
	// Files is where triggers look for files. Nil knows no file.
	Files Files
	// Clock gives the time for triggers. Nil means that of the session.
	Clock Clock
}

// A Feedbacker asks providers after tool calls. It counts calls as they come, so that a call costs the
// same however many there were. It is safe for concurrent use.
type Feedbacker struct {
	s    *session.Session
	opts FeedbackOptions

	rules []*ruleState
}

type ruleState struct {
	FeedbackRule
	created atomic.Bool // the file was seen

	mu    sync.Mutex
	calls int       // since the provider was asked for their number
	asked time.Time // for the time that has passed
}

// NewFeedback makes a Feedbacker for one run. It fails if a rule never triggers or two providers have one name.
func NewFeedback(s *session.Session, opts *FeedbackOptions, rules ...FeedbackRule) (*Feedbacker, error) {
	f := &Feedbacker{s: s}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.Clock == nil {
		f.opts.Clock = s.Now
	}
	var errs []error
	for _, rule := range rules {
		errs = append(errs, f.add(rule))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Feedbacker) add(rule FeedbackRule) error {
	if rule.Provider == nil {
		return advice.Wrap(errors.New("guard: a feedback rule has no provider"), "set FeedbackRule.Provider")
	}
	name, t := rule.Provider.Name(), rule.Trigger
	switch {
	case slices.ContainsFunc(f.rules, func(r *ruleState) bool { return r.Provider.Name() == name }):
		return advice.Wrap(fmt.Errorf("guard: two feedback providers are called %q", name), "give each a name of its own")
	case t.EveryCalls < 0 || t.Every < 0:
		return advice.Wrap(fmt.Errorf("guard: the trigger of feedback %q is negative", name), "set EveryCalls or Every above zero")
	case t == FeedbackTrigger{}:
		return advice.Wrap(fmt.Errorf("guard: feedback %q has no trigger and would never be given", name),
			"set EveryCalls, Every or OnFileCreated")
	case t.OnFileCreated != "" && f.opts.Files == nil:
		return advice.Wrap(fmt.Errorf("guard: feedback %q waits for the file %s, but no function to look for it is set", name, t.OnFileCreated),
			"set FeedbackOptions.Files")
	}
	f.rules = append(f.rules, &ruleState{FeedbackRule: rule})
	return nil
}

// AfterCall is to be called when a tool call has ended. It returns the feedback for the agent, or "". Every feedback is in
// the session too. The error names the providers that failed; the text still has the feedback of the others.
func (f *Feedbacker) AfterCall(ctx context.Context, callID event.CallID) (string, error) {
	due, err := f.due(ctx)
	errs := []error{err}
	var texts []string
	for _, rule := range due {
		feedback, err := ask(ctx, rule.Provider, f.s)
		if err != nil {
			errs = append(errs, fmt.Errorf("guard: feedback %q: %w", rule.Provider.Name(), err))
			continue
		}
		if feedback.Summary == "" {
			continue
		}
		feedback.Provider, feedback.CallID = rule.Provider.Name(), callID
		if _, err := f.s.Dispatch(ctx, feedback); err != nil {
			errs = append(errs, err)
		}
		texts = append(texts, RenderFeedback(feedback))
	}
	return strings.Join(texts, "\n\n"), errors.Join(errs...)
}

// due counts a call and returns the rules whose time has come. It looks at every condition, so that one
// that holds does not hold again later because another held at the same time.
func (f *Feedbacker) due(ctx context.Context) ([]*ruleState, error) {
	now := f.opts.Clock()
	var due []*ruleState
	var errs []error
	for _, r := range f.rules {
		counted := r.count(now)
		created, err := r.fileCreated(ctx, f.opts.Files)
		errs = append(errs, err)
		if counted || created {
			due = append(due, r)
		}
	}
	return due, errors.Join(errs...)
}

func (r *ruleState) count(now time.Time) (due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if n := r.Trigger.EveryCalls; n > 0 && r.calls >= n {
		r.calls, due = 0, true
	}
	if d := r.Trigger.Every; d > 0 && (r.asked.IsZero() || now.Sub(r.asked) >= d) {
		r.asked, due = now, true
	}
	return due
}

// fileCreated reports true once. It holds no lock while it looks, which may take long.
func (r *ruleState) fileCreated(ctx context.Context, files Files) (bool, error) {
	path := r.Trigger.OnFileCreated
	if path == "" || r.created.Load() {
		return false, nil
	}
	there, err := files.Exists(ctx, path)
	if err != nil {
		return false, fmt.Errorf("guard: feedback %q: looking for %s: %w", r.Provider.Name(), path, err)
	}
	return there && r.created.CompareAndSwap(false, true), nil
}

func ask(ctx context.Context, p FeedbackProvider, s *session.Session) (feedback session.Feedback, err error) {
	defer func() {
		if v := recover(); v != nil {
			feedback, err = session.Feedback{}, fmt.Errorf("panic: %v", v)
		}
	}()
	return p.Provide(ctx, s)
}
