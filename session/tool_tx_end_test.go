// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

type explosive struct{ Text string }

func (explosive) MarshalJSON() ([]byte, error) { panic("no JSON today") }

func TestToolTx_ValueThatPanicsInJSONFailsTheCall(t *testing.T) {
	s, err := session.Open(session.NewMemoryStore(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := tool.Must("bomb", "Returns a value that cannot be written.", func(ctx context.Context, _ struct{}) (explosive, error) {
		dispatch(t, ctx, s, remark{"a"})
		return explosive{"x"}, nil
	})
	r := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, &session.ToolTxOptions{DispatchValues: true})}, bomb)
	result := r.Execute(t.Context(), tool.Call{ID: "id", Name: "bomb"})
	if result.OK() || !strings.Contains(result.Render(), "no JSON today") {
		t.Errorf("the call ended with %q: %s", result.Outcome, result.Render())
	}
	if diff := cmp.Diff([]string{"id bomb error"}, invoked(s)); diff != "" || len(notes(s)) != 0 {
		t.Errorf("%s and %q are left", diff, notes(s))
	}
}

// A failing test does this to the handler that it is called in.
func TestToolTx_CallThatEndsItsGoroutineIsRecorded(t *testing.T) {
	s := session.New(nil)
	quits := &tool.Tool{Name: "quits", Description: "Ends its goroutine.", Handler: func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
		dispatch(t, ctx, s, remark{"a"})
		runtime.Goexit()
		return tool.Result{}, nil
	}}
	r := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, quits)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Execute(context.Background(), tool.Call{ID: "id", Name: "quits"})
	}()
	<-done
	if diff := cmp.Diff([]string{"id quits error"}, invoked(s)); diff != "" || len(notes(s)) != 0 {
		t.Errorf("%s and %q are left", diff, notes(s))
	}
	if got := latest[session.ToolInvoked](t, s).Error; !strings.Contains(got, "the tool stopped before it returned a result. Check what it did") {
		t.Errorf("the error is %q", got)
	}
}
