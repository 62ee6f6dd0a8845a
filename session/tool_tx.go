// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// ToolTxOptions configures [ToolTx]. Nil and the zero value are ready to use.
type ToolTxOptions struct {
	// Adapter and Prompt are put into each [ToolInvoked].
	Adapter, Prompt string
	// Catalogue is that of the agent that makes the calls; it defines how their inputs name files. Nil means none.
	Catalogue *tool.Catalogue
	// DispatchValues also dispatches the value of each call that succeeds, as what it is, if it is a
	// struct of a named type: results then have a slice of their own. It is part of the call's
	// transaction, and a value that cannot be kept fails the call.
	DispatchValues bool
	// MaxOutput is how many bytes of what the model reads ToolInvoked.Output keeps. Zero means 1000, a negative number all.
	MaxOutput int
}

const defaultMaxOutput = 1000

// ToolTx runs each call of a registry in a transaction of the session: give it to [tool.Options] as Around. Handlers find
// the session by [From]. Their events stay in the state if the call succeeds. If it fails, is denied, panics, runs out of
// time or is cancelled, its events are taken out of the state, and those of other calls stay. A handler that runs on after
// that cannot change the state any more: Dispatch fails with [ErrTxOver], or because its context has ended.
//
// Each call is in the log with one [ToolInvoked] afterwards, however it ended, also if there is no such tool. Its
// CallID is the id of the call, or a new one if a call was recorded under that before. A dry run leaves no trace.
//
// A call that another makes through the registry in its own context is part of it: its events are taken out of the
// state if the outer call fails.
func ToolTx(s *Session, opts *ToolTxOptions) tool.Around {
	var o ToolTxOptions
	if opts != nil {
		o = *opts
	}
	o.MaxOutput = cmp.Or(o.MaxOutput, defaultMaxOutput)
	return func(ctx context.Context, call *tool.Call, next func(context.Context) tool.Result) tool.Result {
		started := s.Now()
		own, tx := s.Begin(ctx, string(call.ID))
		result := tool.Fail(callUnfinished)
		defer func() { // also where a handler ends the goroutine, as a failing test does
			_ = tx.abandon("the call did not finish") // does nothing after the end
			if !call.DryRun {
				report := o.report(call, result)
				report.Duration = s.Now().Sub(started)
				s.recordCall(ctx, report, o.Catalogue)
			}
		}()
		result = o.end(own, tx, call, next(With(own, s)))
		return result
	}
}

// end ends the transaction of a call. The result is another one if what the call did cannot be kept.
func (o *ToolTxOptions) end(own context.Context, tx *Tx, call *tool.Call, result tool.Result) tool.Result {
	if call.DryRun || !result.OK() {
		if err := tx.abandon(string(statusOf(&result))); err != nil {
			tx.s.opts.Logger.ErrorContext(own, "a tool call is not rolled back yet; the next dispatch tries again", "call", call.ID, "error", err)
		}
		return result
	}
	err := o.dispatchValue(own, tx.s, result.Value)
	if err == nil {
		err = tx.Commit()
	}
	if err == nil {
		return result
	}
	lost := tool.Fail(changesLost(err))
	lost.Tool, lost.Err.Err = result.Tool, err
	if err := tx.abandon(err.Error()); err != nil {
		tx.s.opts.Logger.ErrorContext(own, "a tool call is not rolled back yet; the next dispatch tries again", "call", call.ID, "error", err)
	}
	return lost
}

// dispatchValue gives a value to its slice. The call has succeeded, so that it does not matter whether
// its context has ended. The methods of the value are others' code.
func (o *ToolTxOptions) dispatchValue(own context.Context, s *Session, value any) (err error) {
	if !o.DispatchValues || !isNamedStruct(value) {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("dispatching a %T panicked: %v", value, p)
		}
	}()
	_, err = s.Dispatch(context.WithoutCancel(own), value)
	return err
}

func isNamedStruct(value any) bool {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v.Kind() == reflect.Struct && v.Type().Name() != "" && !manages(v.Type())
}

// recordCall records a call, each once. A second call under the id of another is another call.
func (s *Session) recordCall(ctx context.Context, report ToolInvoked, of *tool.Catalogue) {
	recorded, err := s.RecordTool(ctx, report, of)
	if err == nil && !recorded {
		report.CallID = event.CallID(s.NewID())
		_, err = s.RecordTool(ctx, report, of)
	}
	if err != nil {
		s.opts.Logger.ErrorContext(ctx, "a tool call could not be recorded", "call", report.CallID, "tool", report.Name, "error", err)
	}
}

func (o *ToolTxOptions) report(call *tool.Call, result tool.Result) ToolInvoked {
	t := ToolInvoked{
		CallID: call.ID, Name: cmp.Or(call.As, result.Tool, call.Name), Source: BridgedTool,
		Adapter: o.Adapter, Prompt: o.Prompt, AgentID: call.AgentID, Params: call.Input,
		Status: statusOf(&result), Output: o.cut(result.Render()),
	}
	if t.Success() {
		t.Value = valueJSON(&result)
	} else {
		t.Error = result.Render()
	}
	return t
}

// statusOf is never empty.
func statusOf(result *tool.Result) tool.Outcome {
	if result.OK() {
		return tool.Success
	}
	return cmp.Or(result.Outcome, tool.Failed)
}

// valueJSON is the JSON of a result's value, or nil where it has none. The methods of the value are others' code.
func valueJSON(result *tool.Result) (raw json.RawMessage) {
	if result.Structured != nil || result.Value == nil {
		return result.Structured
	}
	defer func() {
		if recover() != nil {
			raw = nil
		}
	}()
	raw, err := plainjson.Marshal(result.Value)
	if err != nil {
		return nil
	}
	return raw
}

func (o *ToolTxOptions) cut(text string) string {
	if o.MaxOutput < 0 || len(text) <= o.MaxOutput {
		return text
	}
	return strings.ToValidUTF8(text[:o.MaxOutput], "")
}
