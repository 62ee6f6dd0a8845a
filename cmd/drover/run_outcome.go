// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/tool"
)

type outcome struct {
	options *runOptions
	show    func(event.Event)

	held    *event.Event // an error before anything else, which may be all there is
	failure error
	done    event.Done
	refused bool
	notKept error // why the conversation cannot be continued
	denied  denials
	limits  reached
}

// reached are the limits that the gateway and the cell reported.
type reached struct {
	budget string // a field of guard.Budget
	breach bool
}

func (r *reached) event(p event.Payload) {
	switch p := p.(type) {
	case gateway.Limit:
		r.budget = p.Limit
	case isolation.Breach:
		r.breach = true
	}
}

// notStored is the prefix of the text about a lost conversation in a done event.
const notStored = "the conversation could not be stored"

// event notes an event and shows it. A run that fails before its first event is reported as an error, not shown as a run.
func (o *outcome) event(e event.Event) {
	o.limits.event(e.Payload)
	switch p := e.Payload.(type) {
	case event.Error:
		if p.Code == "CONVERSATION_NOT_KEPT" {
			o.notKept = p
		}
		if p.Recoverable {
			break
		}
		o.failure = p
		if e.Seq == 1 {
			o.held = &e
			return
		}
	case event.Decision:
		o.denied.decision(p)
	case event.ToolResult:
		o.denied.result(p)
	case event.Done:
		o.done = p
		if _, why, found := strings.Cut(p.Reason, notStored); found { // of a run that was stopped
			o.notKept = errors.New(notStored + why)
		}
		o.refused = o.held != nil || e.Seq == 1 && p.Status == event.DoneError
	}
	if o.refused {
		return
	}
	if o.held != nil {
		o.show(*o.held)
		o.held = nil
	}
	o.show(e)
}

// ending is the error of a run that did not succeed, and of one that was not allowed all it wanted.
func (o *outcome) ending(stopped error) error {
	var lost outputLost
	if errors.As(stopped, &lost) {
		return ending{exitError, lost.explain()}
	}
	switch o.done.Status {
	case event.DoneSuccess:
		if len(o.denied.all()) == 0 {
			return nil
		}
		return ending{exitDenied, o.denied.report(o.options)}
	case event.DoneMaxTurns:
		if turns, ok := errors.AsType[*gateway.TurnsError](o.done.Cause); ok && turns.Limit != "MaxTurns" {
			return o.limit("--side-calls", fmt.Sprintf("there were %d model calls beside the main conversation", turns.Max))
		}
		return o.limit(o.options.limitName("--max-turns")+" "+o.options.maxTurns.String(), "the limit of model calls was reached")
	case event.DoneMaxBudget:
		return o.limit(o.budgetFlag(), "the budget is spent")
	case event.DoneInterrupted:
		if errors.Is(stopped, errTimeIsUp) {
			return o.limit(o.options.limitName("--timeout")+" "+o.options.timeout.String(), "the time is over")
		}
		return ending{exitInterrupted, o.stopped()}
	}
	unfinished, _ := errors.AsType[*root.EvaluationError](o.done.Cause)
	switch {
	case unfinished != nil && unfinished.Kind == agent.FailureIncomplete:
		return o.incomplete(unfinished)
	case o.limits.breach:
		return ending{exitLimit, o.failed()}
	case o.isUsage():
		return ending{exitUsage, o.failed()}
	}
	return ending{exitError, o.failed()}
}

// isUsage reports whether the run was refused because of its flags.
func (o *outcome) isUsage() bool {
	_, refused := errors.AsType[*isolation.RefusedError](o.failure)
	unknown := errors.Is(o.failure, transcript.ErrNotFound) || errors.Is(o.failure, transcript.ErrBadKey)
	return refused || o.options.resume != "" && unknown || o.failure != nil && pathFlags.MatchString(fmt.Sprint(o.failure, causeText(o.failure)))
}

// pathFlags are errors about --writable and --readable, which have no type.
var pathFlags = regexp.MustCompile(`isolation: Sandbox\.(Writable|Readable)Paths: `)

func (o *outcome) budgetFlag() string {
	if o.limits.budget == "MaxTotalTokens" {
		return o.options.limitName("--max-tokens") + " " + o.options.maxTokens.String()
	}
	return o.options.limitName("--max-usd") + " " + o.options.maxUSD.String()
}

// incomplete is the error of an agent that has answered, and has not done its task. Calls that were denied may be why.
func (o *outcome) incomplete(e *root.EvaluationError) error {
	err := ending{exitLimit, failure{
		err: e, text: o.options.file.path + ": " + e.Message,
		next: "look at what the agent has done, give it more completion.rounds, or correct the completion rules",
	}}
	if len(o.denied.all()) == 0 {
		return err
	}
	return errors.Join(err, o.denied.report(o.options))
}

// stopped states what is left of an interrupted run, and how to continue.
func (o *outcome) stopped() error {
	err := errors.New("stopped; the CLI and all it started are gone")
	if !o.options.isolation.contains() {
		err = errors.New("stopped; the CLI is gone, but commands that have detached themselves may go on")
	}
	if o.done.ResumeToken != "" {
		return advice.Wrap(err, "go on with drover run --resume %s", o.done.ResumeToken)
	}
	return err
}

func (o *outcome) limit(flag, what string) error {
	next := "raise it"
	if o.done.ResumeToken != "" {
		next += ", or go on with drover run --resume " + o.done.ResumeToken
	}
	return ending{exitLimit, advice.Wrap(fmt.Errorf("%s (%s)", what, strings.TrimSpace(flag)), "%s", next)}
}

func (o *outcome) failed() error {
	err := cmp.Or(o.failure, error(event.Error{Message: cmp.Or(o.done.Result, "the agent failed and gave no reason")}))
	shown := failure{err: err, text: err.Error()}
	if p, ok := errors.AsType[event.Error](err); ok && p.Next != "" { // it has advice of its own
		return o.ofResume(shown, p.Next)
	}
	cause := err
	if evaluation, ok := errors.AsType[*root.EvaluationError](err); ok { // its advice is for programs
		cause, shown.text = evaluation.Err, fmt.Sprint(evaluation.Err)
	}
	kind := claudecode.New(nil).Classify(err)
	step := nextSteps[kind.Kind]
	if o.refused && o.options.resume != "" {
		step = "give --resume the resumeToken of a run in this folder, or leave it out"
	}
	return o.ofResume(shown, cmp.Or(kind.Next, advice.Of(cause), step, "drover doctor looks for what is wrong with the set-up"))
}

// ofResume adds the advice to a failure, and names the flag where the conversation of --resume cannot be had.
func (o *outcome) ofResume(f failure, next string) error {
	f.next = next
	if o.options.resume == "" {
		return f
	}
	switch detail := notFound.FindStringSubmatch(f.text); {
	case errors.Is(f.err, transcript.ErrInUse):
		f.text, f.next = "--resume: the conversation is in use", "wait until the other run has ended"
	case errors.Is(f.err, transcript.ErrBadKey):
		f.text = "--resume: not a token of a conversation"
	case errors.Is(f.err, transcript.ErrNotFound) && detail != nil:
		f.text = "--resume: " + detail[1]
	case errors.Is(f.err, transcript.ErrNotFound):
		f.text = "--resume: there is no such conversation in this folder"
	}
	return f
}

// notFound finds which of two folders a conversation may be of.
var notFound = regexp.MustCompile(transcript.ErrNotFound.Error() + `: (conversation .*)`)

// A failure is an error in words for a user of the command.
type failure struct {
	err        error
	text, next string
}

func (f failure) Error() string  { return f.text }
func (f failure) Advice() string { return f.next }
func (f failure) Unwrap() error  { return f.err }

// causeText is the text of the cause of an error of the agent, or "".
func causeText(err error) string {
	cause := errors.Unwrap(err)
	if evaluation, ok := errors.AsType[*root.EvaluationError](cause); ok {
		cause = evaluation.Err
	}
	if cause == nil {
		return ""
	}
	return cause.Error()
}

// nextSteps is the advice for kinds of failures whose errors have none.
var nextSteps = map[agent.FailureKind]string{
	agent.FailureAuthentication: "check the key or the token that the environment has; drover doctor tries it",
	agent.FailureQuota:          "check the account that pays for the model",
	agent.FailureRequest:        "change what is asked for: the prompt, --model, or the other flags",
	agent.FailureTooLarge:       "ask for less at once, or begin a new conversation",
	agent.FailureTimeout:        "check the connection to the model; drover doctor tries it",
	agent.FailureRateLimit:      "try again later",
	agent.FailureOverloaded:     "try again later",
	agent.FailureServer:         "try again later",
	agent.FailureRefusal:        "change what the prompt asks for: the model refuses to do it",
}

// denials are the tool calls that were not allowed, in the order in which they were denied.
type denials struct {
	list []event.Decision              // a decision that was changed later allows
	at   recent.Map[event.CallID, int] // where calls without a result are in the list, negative for others
}

// knownDenials is how many calls are remembered by their id.
const knownDenials = 4096

// decision notes what was decided about a call. The last decision about a call counts.
func (d *denials) decision(made event.Decision) {
	i, known := d.at.Get(made.CallID)
	switch {
	case known && i >= 0:
		d.list[i] = made
	case made.Verdict == event.Deny:
		d.at.Size = knownDenials
		d.at.Put(made.CallID, len(d.list))
		d.list = append(d.list, made)
	}
}

// result notes calls that the agent itself denied. An answer that was sent back is not one of them: the agent
// reads what is missing, and continues. A later decision under the id is about another call.
func (d *denials) result(r event.ToolResult) {
	i, known := d.at.Get(r.ID)
	known = known && i >= 0
	if r.Name != catalogue.Tools().AnswerTool && r.Status == event.ToolDenied && (!known || d.list[i].Verdict != event.Deny) {
		d.decision(event.Decision{CallID: r.ID, Tool: r.Name, Verdict: event.Deny})
		known = true
	}
	if known {
		d.at.Put(r.ID, -1)
	}
}

func (d *denials) all() []event.Decision {
	return slices.DeleteFunc(slices.Clone(d.list), func(made event.Decision) bool { return made.Verdict != event.Deny })
}

func (d *denials) report(o *runOptions) error {
	denied := d.all()
	times := map[string]int{}
	var names []string
	for _, call := range denied {
		if times[call.Tool]++; times[call.Tool] == 1 {
			names = append(names, call.Tool)
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, times[name])
	}
	flags := o.allowing(o.lacking(denied))
	for _, call := range denied {
		if a := adviceFor(call); a != "" && !slices.Contains(flags, a) {
			flags = append(flags, a)
		}
	}
	were := "tool calls were"
	if len(denied) == 1 {
		were = "tool call was"
	}
	err := fmt.Errorf("the agent came to its end, but %d %s denied: %s", len(denied), were, strings.Join(names, ", "))
	if len(flags) > 0 {
		return advice.Wrap(err, "%s", strings.Join(flags, "; "))
	}
	return err
}

// allowing advises how the flags can give capabilities. One that another flag names cannot be in --allow too.
func (o *runOptions) allowing(lacking []tool.Capability) []string {
	var advice []string
	for _, by := range []struct {
		level  gate.Level
		format string
	}{
		{gate.LevelUnset, "add --allow %[1]s"},
		{gate.LevelAsk, "use --allow %[1]s instead of --ask %[1]s"},
		{gate.LevelDeny, "use --allow %[1]s instead of --deny %[1]s"},
	} {
		var names []string
		for _, c := range lacking {
			if o.permissions.level(c) == by.level {
				names = append(names, c.String())
			}
		}
		if len(names) > 0 {
			advice = append(advice, fmt.Sprintf(by.format, strings.Join(names, ",")))
		}
	}
	return advice
}

func (o *runOptions) lacking(denied []event.Decision) []tool.Capability {
	var found []tool.Capability
	for _, c := range capabilities {
		if o.effectivePermissions().Level(c) != gate.LevelAllow && o.fileLevel(c) != gate.LevelDeny && slices.ContainsFunc(denied, func(call event.Decision) bool {
			native, ok := catalogue.Tools().Native(call.Tool)
			return ok && native.Needs.Has(c) && adviceFor(call) == "" && !call.Asked // the user who denied it needs no advice
		}) {
			found = append(found, c)
		}
	}
	return found
}

// adviceFor returns the advice about a call that was denied for another reason than a capability.
func adviceFor(call event.Decision) string {
	switch call.Policy {
	case "risk":
		return "leave out --read-only to have " + call.Tool
	case "allow-list":
		return "name " + call.Tool + " in --tools to have it"
	}
	return ""
}
