// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

// validateHooks returns the faults of the hooks, as joined OptionErrors. It needs no CLI: a callback
// is refused here only if no known version calls it.
func validateHooks(hooks []Hook) error {
	var errs []error
	for i, h := range hooks {
		for _, p := range h.problems() {
			p.Option = fmt.Sprintf("Hooks[%d].%s", i, p.Option)
			errs = append(errs, p)
		}
	}
	return errors.Join(errs...)
}

func (h *Hook) problems() []*OptionError {
	info, known := hookEvents[h.Event]
	if !known {
		return []*OptionError{{"Event", fmt.Sprintf("%q is not a hook event; use one of the Hook constants", h.Event)}}
	}
	var ps []*OptionError
	add := func(field, reason string) {
		if reason != "" {
			ps = append(ps, &OptionError{field, reason})
		}
	}
	if h.Func == nil {
		add("Func", fmt.Sprintf("the %s hook has no function", h.Event))
	}
	add("Matcher", h.matcherProblem(info))
	add("Timeout", h.timeoutProblem())
	if !slices.Contains([]HookFailure{"", FailContinue, FailBlock}, h.OnFailure) {
		add("OnFailure", fmt.Sprintf("%q is neither %q nor %q", h.OnFailure, FailContinue, FailBlock))
	}
	add("Event", h.neverCalled(info))
	return ps
}

func (h *Hook) timeoutProblem() string {
	switch {
	case h.Timeout < 0:
		return fmt.Sprintf("%s is negative; use 0 for no limit", h.Timeout)
	case h.Timeout > 0 && h.Timeout < time.Millisecond:
		return fmt.Sprintf("%s is below a millisecond; the CLI counts in seconds", h.Timeout)
	}
	return ""
}

// matcherProblem finds matchers that the CLI would accept and then silently ignore (events without a
// matcher) or never match (a broken expression).
func (h *Hook) matcherProblem(info *hookEventInfo) string {
	if h.Matcher == "" || h.Matcher == "*" {
		return ""
	}
	if info.noMatcher {
		return fmt.Sprintf("%s takes no matcher, the CLI would ignore %q; leave it empty and select in the function", h.Event, h.Matcher)
	}
	if err := brokenExpression(h.Matcher); err != nil {
		return fmt.Sprintf("%q would never match: %v", h.Matcher, err)
	}
	return ""
}

// brokenExpression reports errors of an expression that are errors in JavaScript too. Look-around,
// back references and large counts are not: only Go's package refuses those.
func brokenExpression(expr string) error {
	_, err := regexp.Compile(expr)
	se, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return nil
	}
	switch se.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		return nil
	}
	return err
}

// neverCalled returns why a callback of this event would never be called, or "".
func (h *Hook) neverCalled(info *hookEventInfo) string {
	switch {
	case info.calledFor == nil:
		return ""
	case len(info.calledFor) == 0:
		return fmt.Sprintf("the CLI never calls a callback for %s; %s", h.Event, info.instead)
	}
	want := strings.Join(info.calledFor, "|")
	if h.Matcher == "" || h.Matcher == "*" {
		return fmt.Sprintf("the CLI calls %s callbacks only for %s, and not when the process starts or ends; set Matcher to %q if that is meant, %s",
			h.Event, want, want, info.instead)
	}
	if !slices.ContainsFunc(info.calledFor, h.mayMatch) {
		return fmt.Sprintf("the CLI calls %s callbacks only for %s, which %q does not match; %s", h.Event, want, h.Matcher, info.instead)
	}
	return ""
}

// mayMatch reports whether the matcher, names or an expression, selects value. What only JavaScript can evaluate may match.
func (h *Hook) mayMatch(value string) bool {
	names := strings.FieldsFunc(h.Matcher, func(r rune) bool { return r == '|' || r == ',' || r == ' ' })
	re, err := regexp.Compile(h.Matcher)
	return slices.Contains(names, value) || err != nil || re.MatchString(value)
}

// validateHooksFor returns the hooks that a CLI of the given version is known never to call. An
// empty version means a CLI that does not report its version, which is an old one.
func validateHooksFor(version string, hooks []Hook) error {
	var errs []error
	for i, h := range hooks {
		info := hookEvents[h.Event]
		if info != nil && info.since != "" && olderVersion(version, info.since) {
			errs = append(errs, &OptionError{
				fmt.Sprintf("Hooks[%d].Event", i),
				fmt.Sprintf("CLI %s never calls a callback for %s; it needs %s or newer", version, h.Event, info.since),
			})
		}
	}
	return errors.Join(errs...)
}

// neverCalledBy is a version known not to have the events that carry a "since"; versions between
// it and the one named there are unknown and get the benefit of the doubt.
const neverCalledBy = "2.1.197"

// olderVersion reports whether version is known to be older; an unreadable version is not.
func olderVersion(version, since string) bool {
	if version == "" {
		return true
	}
	known, err := CompareVersions(version, neverCalledBy)
	if err != nil || known > 0 {
		return false
	}
	c, err := CompareVersions(version, since)
	return err == nil && c < 0
}

// hookMatcher is one entry of initialize's hooks field.
type hookMatcher struct {
	Matcher     string      `json:"matcher,omitzero"`
	CallbackIDs []string    `json:"hookCallbackIds"`
	Timeout     float64     `json:"timeout,omitzero"` // seconds, fractions honoured
	OnFailure   HookFailure `json:"onFailure,omitzero"`
}

// initializeHooks returns the hooks field of the initialize request, nil if there are no hooks,
// and the hooks by the callback id that the CLI will use. Ids of different generations differ.
func initializeHooks(hooks []Hook, generation int) (field any, table map[string]*Hook) {
	table = make(map[string]*Hook, len(hooks))
	if len(hooks) == 0 {
		return nil, table
	}
	byEvent := make(map[HookEvent][]hookMatcher)
	for i, h := range hooks {
		id := fmt.Sprintf("hook_%d_%d", generation, i)
		table[id] = &h
		byEvent[h.Event] = append(byEvent[h.Event], hookMatcher{h.Matcher, []string{id}, h.Timeout.Seconds(), h.OnFailure})
	}
	return byEvent, table
}

// needsOnFailure reports whether a hook relies on the CLI blocking after a failure. Such a hook
// needs a CLI whose initialize answer has HookOnFailureSupported.
func needsOnFailure(hooks []Hook) bool {
	return slices.ContainsFunc(hooks, func(h Hook) bool { return h.OnFailure == FailBlock })
}
