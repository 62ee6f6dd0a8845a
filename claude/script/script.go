// SPDX-License-Identifier: Apache-2.0

package script

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Script is the answers of a [Model]. The zero value refuses every request.
type Script struct {
	// Turns are the answers; the package comment has the rule of choice.
	Turns []Turn
	// Default answers requests for which Turns has no turn left. Nil: they are refused and recorded as a [Failure].
	Default *Turn
	// Strict refuses requests that break the Messages API's rules, with status 400 and a [Failure]; they use no turn.
	Strict bool
	// StrictRoles also refuses two messages of one role in a row, which the API joins, for clients that must alternate.
	StrictRoles bool
	// CountTokens is the answer to token counting. Zero means a quarter of the body's bytes.
	CountTokens int
	// IDPrefix is put into all identifiers that are counted, so that two models can take part in one conversation.
	IDPrefix string
	// KeepRequests bounds how many requests are kept; older ones are forgotten. Zero means all.
	KeepRequests int
}

// New is a script of turns in order.
func New(turns ...Turn) Script { return Script{Turns: turns} }

// A Problem is one fault of a [Script].
type Problem struct {
	// Path is the position, as in the YAML form: "turns[2].fault.kind".
	Path string
	Err  error
}

func (p *Problem) Error() string { return "script: " + p.Path + ": " + p.Err.Error() }

// Unwrap returns the fault.
func (p *Problem) Unwrap() error { return p.Err }

// validate returns all faults of s, as joined values of type [*Problem].
func (s Script) validate() error {
	var errs []error
	for _, p := range s.problems() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

func (s Script) problems() []*Problem {
	var ps problems
	for i, t := range s.Turns {
		ps.checkTurn(fmt.Sprintf("turns[%d]", i), t)
	}
	if s.Default != nil {
		ps.checkTurn("default", *s.Default)
		ps.add("default.when", !s.Default.Match.isZero(), "the default turn answers all remaining requests and cannot have a condition")
		ps.add("default.repeat", s.Default.Repeat > 0, "the default turn always repeats")
	}
	ps.add("count_tokens", s.CountTokens < 0, "cannot be negative")
	ps.add("keep_requests", s.KeepRequests < 0, "cannot be negative")
	ps.add("id_prefix", s.IDPrefix != "" && !isIdentifier(s.IDPrefix), "%q: only letters, digits, _ and - are allowed", s.IDPrefix)
	return ps
}

type problems []*Problem

func (ps *problems) add(path string, wrong bool, format string, args ...any) {
	if wrong {
		*ps = append(*ps, &Problem{path, fmt.Errorf(format, args...)})
	}
}

func (ps *problems) addErr(path string, err error) { ps.add(path, err != nil, "%w", err) }

func (ps *problems) checkTurn(path string, t Turn) {
	ps.add(path+".repeat", t.Repeat < Forever, "%d is not a number of uses", t.Repeat)
	ps.add(path+".chunk", t.ChunkSize < 0, "cannot be negative")
	ps.checkDelay(path+".delay", t.Delay)
	ps.checkDelay(path+".delta_delay", t.DeltaDelay)
	u := t.Usage
	ps.add(path+".usage", min(u.Input, u.Output, u.CacheRead, u.CacheCreation) < 0, "token counts cannot be negative")
	ps.checkHeaders(path+".headers", t.Headers)
	ps.checkContent(path, t)
	if t.Error != nil {
		ps.addErr(path+".error.status", t.Error.check())
		ps.add(path+".error", t.Fault != nil, "a turn that is an HTTP error cannot have a fault as well")
	}
	if t.Fault != nil {
		ps.addErr(path+".fault", t.Fault.check())
		if e := t.Fault.Error; e != nil && e.Status != 0 {
			ps.addErr(path+".fault.error.status", e.check())
		}
	}
}

func (ps *problems) checkContent(path string, t Turn) {
	hasContent := len(t.Content) > 0 || t.StopReason != ""
	ps.add(path+".error", hasContent && t.Error != nil, "a turn is either a message or an HTTP error, not both")
	ps.add(path, t.Func != nil && (hasContent || t.Error != nil || t.Fault != nil), "a turn with a Func cannot have an answer of its own")
	ids := map[string]bool{}
	for i, b := range t.Content {
		block := fmt.Sprintf("%s.content[%d]", path, i)
		if !isBlockValue(b) {
			ps.add(block, true, "%T is not a block; use a value, not a pointer", b)
			continue
		}
		ps.addErr(block, b.check())
		if call, ok := b.(ToolCall); ok && call.ID != "" {
			ps.add(block, ids[call.ID], "tool call id %q is used twice in one message", call.ID)
			ids[call.ID] = true
		}
	}
}

// isBlockValue refuses nil and pointers, which satisfy the interface as well.
func isBlockValue(b Block) bool {
	switch b.(type) {
	case TextBlock, ThinkingBlock, RedactedThinkingBlock, ToolCall:
		return true
	}
	return false
}

func (ps *problems) checkDelay(path string, d time.Duration) {
	ps.add(path, d < 0, "%v is negative", d)
}

func (ps *problems) checkHeaders(path string, headers map[string]string) {
	for name, value := range headers {
		ps.add(path, !isHeaderName(name), "%q is not a header name", name)
		ps.add(path, strings.ContainsAny(value, "\r\n\x00"), "the value of %s has a line break", name)
	}
}

// isHeaderName is a little stricter than HTTP: no real header uses the other characters.
func isHeaderName(s string) bool { return isIdentifier(s) }
