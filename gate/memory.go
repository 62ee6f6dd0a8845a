// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/tool"
)

// remembered is how many verdicts, and how many answers, an engine keeps.
const remembered = 4096

// identity names the tool that a call means, in one way whether the call has its full name, its bare name or its id. A name
// that can mean several tools is an identity of its own: a verdict about one of them must not count for another.
func (g *Gate) identity(c Call) string {
	if c.runs != nil {
		return g.candidateIdentity(c)
	}
	name, full := c.name, isMCP(c.Name)
	var means [][]string
	for _, s := range g.servers {
		if full && s.key != c.Server {
			continue
		}
		if t, ok := s.lookup.Lookup(name); ok {
			known := []string{"registered", s.key, t.ID(), c.Argument}
			if !slices.ContainsFunc(means, func(m []string) bool { return slices.Equal(m, known) }) {
				means = append(means, known)
			}
		}
	}
	if _, native := g.agent.Native(name); len(means) == 1 && (full || !native) {
		return joinParts(means[0])
	}
	if full {
		return joinParts([]string{"server", c.Server, name, c.Argument})
	}
	return joinParts([]string{"name", name, c.Argument})
}

// candidateIdentity is identity for a tool that a registry is about to run: of its full name, unless the call names another.
func (g *Gate) candidateIdentity(c Call) string {
	if c.claimed == nil && c.Server != "" {
		return joinParts([]string{"registered", c.Server, c.runs.ID(), c.Argument})
	}
	claimed := ""
	if c.claimed != nil {
		claimed = g.identity(*c.claimed)
	}
	return joinParts([]string{"candidate", c.Server, c.runs.ID(), c.Tool, claimed})
}

// joinParts joins strings such that different lists give different strings.
func joinParts(parts []string) string {
	b, _ := json.Marshal(parts) // strings always have a JSON form
	return string(b)
}

func inputDigest(input json.RawMessage) string {
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	return plainjson.Digest(input)
}

// A callKey makes two questions be about the same call. A tool replaced by one with other risks or needs is another.
type callKey struct {
	id    event.CallID
	tool  string
	risk  tool.Risk
	needs tool.Capability
	input string
}

// A verdict is a decision, made or being made.
type verdict struct {
	done     chan struct{} // closed when decision is set
	begun    bool          // the call has begun; under the lock of verdicts
	decision event.Decision
}

type verdicts struct {
	mu      sync.Mutex
	open    map[callKey]*verdict
	settled recent.Map[callKey, *verdict]
}

// claim returns the verdict about a call. If it is new, it is the caller's to settle. A call that
// begins for the second time is another one with the same id, and has a verdict of its own.
func (vs *verdicts) claim(key callKey, begins bool) (v *verdict, mine bool) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v, ok := vs.open[key]; ok {
		v.begun = v.begun || begins
		return v, false
	}
	if v, ok := vs.settled.Get(key); ok && (!begins || !v.begun) {
		v.begun = v.begun || begins
		return v, false
	}
	v = &verdict{done: make(chan struct{}), begun: begins}
	if vs.open == nil {
		vs.open = map[callKey]*verdict{}
	}
	vs.open[key] = v
	return v, true
}

// settle keeps the decision, for the call and for the input that the decision gives it.
func (vs *verdicts) settle(key callKey, v *verdict) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	delete(vs.open, key)
	vs.settled.Put(key, v)
	if v.decision.Verdict == event.Allow && v.decision.Input != nil {
		changed := key
		changed.input = inputDigest(v.decision.Input)
		_, open := vs.open[changed]
		if _, decided := vs.settled.Get(changed); !open && !decided {
			vs.settled.Put(changed, v)
		}
	}
	close(v.done)
}

// An answerKey is how far an answer holds. A tool whose risks or needs have changed since is not the one that was approved.
type answerKey struct {
	tool  string
	risk  tool.Risk
	needs tool.Capability
	input string // digest; empty for all inputs
}

type answer struct {
	verdict event.Verdict
	reason  string
	until   time.Time // zero for ever
}

// answers keeps the answers that cover more than one call.
type answers struct {
	mu    sync.Mutex
	kept  recent.Map[answerKey, answer]
	added chan struct{} // closed when there is a further one; nil if no caller waits for it
}

// find returns the answer that holds for a call. A rejection beats an approval.
func (as *answers) find(key answerKey, now time.Time) (found answer, ok bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	wide := key
	wide.input = ""
	for _, k := range []answerKey{key, wide} {
		a, kept := as.kept.Get(k)
		if !kept || !a.until.IsZero() && !now.Before(a.until) {
			continue
		}
		if !ok || a.verdict < found.verdict {
			found, ok = a, true
		}
	}
	return found, ok
}

func (as *answers) keep(key answerKey, a answer) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.kept.Put(key, a)
	if as.added != nil {
		close(as.added)
		as.added = nil
	}
}

// more returns a channel that is closed when there is a further answer.
func (as *answers) more() <-chan struct{} {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.added == nil {
		as.added = make(chan struct{})
	}
	return as.added
}
