// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/internal/safetext"
)

// A Model answers the Messages API from a [Script]. It is an [net/http.Handler]; [Start] serves
// one on loopback. All methods are safe for concurrent use.
type Model struct {
	script Script

	mu       sync.Mutex
	used     []int // by index of script.Turns
	messages int   // requests for a message so far
	calls    int   // HTTP requests so far, for request ids
	traffic  []*Request
	failures []Failure
	grown    chan struct{} // closed when messages grows; nil if no caller waits
}

// A Failure is a request that the script could not answer.
type Failure struct {
	// Request is the request that was refused.
	Request *Request
	// Reason is the cause and its remedy.
	Reason string
	// Status is the HTTP status with which the request was refused.
	Status int
}

func (f Failure) Error() string { return "script: " + f.Reason }

// NewModel prepares a model. The error joins all faults of s, see [*Problem].
func NewModel(s Script) (*Model, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	s.Turns = slices.Clone(s.Turns)
	for i := range s.Turns {
		if s.Turns[i].Name == "" {
			s.Turns[i].Name = fmt.Sprintf("turn %d", i+1)
		}
	}
	return &Model{script: s, used: make([]int, len(s.Turns))}, nil
}

// Requests lists the requests for a message, in the order of their arrival.
func (m *Model) Requests() []*Request {
	return slices.DeleteFunc(m.Traffic(), func(r *Request) bool { return r.Number == 0 })
}

// LastRequest is the newest request for a message, or nil before the first.
func (m *Model) LastRequest() *Request {
	requests := m.Requests()
	if len(requests) == 0 {
		return nil
	}
	return requests[len(requests)-1]
}

// Traffic lists all HTTP requests, in the order of their arrival.
func (m *Model) Traffic() []*Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.traffic)
}

// ToolResult returns a tool's result, by call id or tool name, as the model saw it in the newest request that has it.
func (m *Model) ToolResult(idOrName string) (text string, isError, ok bool) {
	for _, r := range slices.Backward(m.Requests()) {
		if text, isError, ok = r.ToolResult(idOrName); ok {
			return text, isError, ok
		}
	}
	return "", false, false
}

// SawText reports whether any request contained s where the model sees it.
func (m *Model) SawText(s string) bool {
	return slices.ContainsFunc(m.Requests(), func(r *Request) bool { return r.SawText(s) })
}

// Failures lists the requests that the script could not answer.
func (m *Model) Failures() []Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.failures)
}

// Unused names the turns that have uses left. A turn that repeats forever counts only if it was never used.
func (m *Model) Unused() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for i, t := range m.script.Turns {
		if m.used[i] == 0 || (t.Repeat != Forever && m.usesLeftLocked(i)) {
			names = append(names, describeTurn(t))
		}
	}
	return names
}

// WaitRequests waits until n requests for a message have arrived, or ctx ends. The error then has the number that arrived.
func (m *Model) WaitRequests(ctx context.Context, n int) error {
	for {
		m.mu.Lock()
		seen := m.messages
		if seen < n && m.grown == nil {
			m.grown = make(chan struct{})
		}
		grown := m.grown
		m.mu.Unlock()
		if seen >= n {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return fmt.Errorf("script: waiting for %d requests, %d came: %w", n, seen, context.Cause(ctx))
		}
	}
}

func (m *Model) nextID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return fmt.Sprintf("req_%s%04d", m.script.IDPrefix, m.calls)
}

// record keeps a request that is not for a message.
func (m *Model) record(r *Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepLocked(r)
}

// take numbers and records a request for a message and chooses its turn. If no turn
// matches, take records the refusal and returns it.
func (m *Model) take(r *Request) (Turn, *Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages++
	r.Number = m.messages
	if m.grown != nil {
		close(m.grown)
		m.grown = nil
	}
	turn, err := m.chooseLocked(r)
	r.Turn = turn.Name
	m.keepLocked(r)
	if err != nil {
		return Turn{}, m.failLocked(r, refusalStatus(err), err.Error())
	}
	return turn, nil
}

func (m *Model) chooseLocked(r *Request) (turn Turn, err error) {
	defer func() {
		if p := recover(); p != nil {
			turn, err = Turn{}, fmt.Errorf("a condition of the script panicked on request %d: %v", r.Number, p)
		}
	}()
	if err := m.script.check(r); err != nil {
		return Turn{}, err
	}
	pick := m.pickLocked(r)
	if pick >= 0 {
		m.used[pick]++
		return m.script.Turns[pick], nil
	}
	if m.script.Default != nil {
		turn := *m.script.Default
		if turn.Name == "" {
			turn.Name = "default"
		}
		return turn, nil
	}
	return Turn{}, errors.New(m.describeUnmatchedLocked(r))
}

// pickLocked prefers conditional turns, so that a turn for one special request can be anywhere among the ordered ones.
func (m *Model) pickLocked(r *Request) int {
	inOrder := -1
	for i, t := range m.script.Turns {
		if !m.usesLeftLocked(i) {
			continue
		}
		if t.Match.isZero() {
			if inOrder < 0 {
				inOrder = i
			}
		} else if t.Match.holds(r) {
			return i
		}
	}
	return inOrder
}

func (m *Model) usesLeftLocked(i int) bool {
	repeat := m.script.Turns[i].Repeat
	return repeat == Forever || m.used[i] < max(repeat, 1)
}

func (m *Model) keepLocked(r *Request) {
	m.traffic = append(m.traffic, r)
	if keep := m.script.KeepRequests; keep > 0 && len(m.traffic) > keep {
		m.traffic = slices.Delete(m.traffic, 0, len(m.traffic)-keep)
	}
}

func (m *Model) fail(r *Request, status int, reason string) *Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failLocked(r, status, reason)
}

func (m *Model) failLocked(r *Request, status int, reason string) *Failure {
	f := Failure{Request: r, Reason: reason, Status: status}
	m.failures = append(m.failures, f)
	return &f
}

// refusalStatus is 402 for a missing turn: the CLI retries neither 402 nor 403, and takes only 403 for a failed login.
func refusalStatus(err error) int {
	if errors.Is(err, errInvalidRequest) {
		return http.StatusBadRequest
	}
	return http.StatusPaymentRequired
}

func (m *Model) describeUnmatchedLocked(r *Request) string {
	var waiting []string
	for i, t := range m.script.Turns {
		if m.usesLeftLocked(i) {
			waiting = append(waiting, describeTurn(t))
		}
	}
	s := fmt.Sprintf("no turn for request %d: %s; ", r.Number, describeRequest(r))
	if waiting == nil {
		s += fmt.Sprintf("all %d turns of the script are used", len(m.script.Turns))
	} else {
		s += "turns left, whose conditions do not hold: " + safetext.Few(waiting)
	}
	return s + ". Next: add a turn for it, or give the script a default"
}

func describeTurn(t Turn) string {
	if t.Match.isZero() {
		return t.Name
	}
	return fmt.Sprintf("%s (when %s)", t.Name, t.Match)
}

func describeRequest(r *Request) string {
	s := fmt.Sprintf("model %s, %d messages", r.Model, len(r.Messages))
	if text := r.LastUserText(); text != "" {
		s += fmt.Sprintf(", last user text %q", ending(text))
	}
	var results []string
	for _, result := range toolResults(r.newMessages(), r.callNames(), "", "") {
		results = append(results, result.Name+" "+result.ID)
	}
	if results != nil {
		s += ", results of " + strings.Join(results, ", ")
	}
	if r.IsSubagent() {
		s += ", from a subagent"
	}
	return s
}

// ending keeps the end of a text: the CLI puts its own reminders before what the user typed.
func ending(text string) string {
	const limit = 120
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return "…" + string(runes[len(runes)-limit:])
}
