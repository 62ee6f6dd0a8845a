// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/session"
)

func latest[S any](t testing.TB, s *session.Session) S {
	t.Helper()
	v, ok := session.Query[S](s).Latest()
	if !ok {
		t.Fatalf("there is no %T", v)
	}
	return v
}

func TestPromptRendered_ToolsAreFoundByItsEventID(t *testing.T) {
	s := session.New(nil)
	dispatch(t, t.Context(), s,
		session.PromptRendered{EventID: "render-1", Namespace: "demo", Key: "review", Name: "Review", Adapter: "claude-code", Text: "Review it.", Tools: []string{"search"}},
		session.RenderedTools{RenderEventID: "render-1", Tools: []session.ToolSchema{{Name: "search", Description: "Searches.", Parameters: json.RawMessage(`{"type":"object"}`)}}},
		session.RenderedTools{RenderEventID: "render-2"},
	)
	rendered := latest[session.PromptRendered](t, s)
	got := slices.Collect(session.Query[session.RenderedTools](s).Where(func(r session.RenderedTools) bool { return r.RenderEventID == rendered.EventID }))
	if len(got) != 1 || got[0].Tools[0].Name != "search" {
		t.Errorf("the tools of %s are %+v, want search alone", rendered.EventID, got)
	}
}

func TestPromptExecuted_EncodesEveryFigure(t *testing.T) {
	tokens := event.Tokens{Coverage: event.CoverageComplete, Totals: event.TokenCount{Input: event.InputTokens{Total: 120}, Output: event.OutputTokens{Total: 30}}}
	executed := session.PromptExecuted{
		Namespace: "demo", Key: "review", Name: "Review", Adapter: "claude-code", Text: "Fine.", Output: json.RawMessage(`{"ok":true}`),
		Status: event.DoneSuccess, StopReason: "end_turn", Duration: 1500 * time.Millisecond, APIDuration: 1250500 * time.Microsecond,
		Usage: event.Usage{ToolUses: 3, Tokens: &tokens, Cost: &event.Cost{USD: 0.25}}, SessionID: "conversation", RunID: "run", Turns: 4,
	}
	got, err := json.Marshal(executed)
	want := `{"namespace":"demo","key":"review","name":"Review","adapter":"claude-code","text":"Fine.","output":{"ok":true},"status":"success","stopReason":"end_turn",` +
		`"usage":{"toolUses":3,"tokens":{"coverage":"complete","totals":{"input":{"total":120},"output":{"total":30}}},"cost":{"usd":0.25}},"sessionId":"conversation","runId":"run","turns":4,"durationMs":1500,"apiDurationMs":1250.5}`
	if err != nil || string(got) != want {
		t.Errorf("it is written as\n %s (%v), want\n %s", got, err, want)
	}
	var back session.PromptExecuted
	if err := json.Unmarshal(got, &back); err != nil || cmp.Diff(executed, back) != "" {
		t.Errorf("read again (-want +got):\n%s%v", cmp.Diff(executed, back), err)
	}
	if back.Usage.InputTokens() != 120 || back.Usage.OutputTokens() != 30 || back.Usage.TotalCostUSD() != 0.25 {
		t.Errorf("the usage came back as %+v", back.Usage)
	}
	if err := json.Unmarshal([]byte(`{"durationMs":1e300}`), &back); err == nil {
		t.Error("a duration that no Duration holds was read")
	}
}

func TestSlices_PlanWorkspaceAndPermissionsReplaceTheLast(t *testing.T) {
	s := session.New(nil)
	dispatch(t, t.Context(), s,
		session.Workspace{Root: "/one"}, session.Workspace{Root: "/two"},
		session.PlanUpdated{Steps: []session.PlanStep{{Description: "a", Status: "pending"}}},
		session.Plan{Steps: []session.PlanStep{{Description: "b", Status: "in_progress"}}},
		session.ToolPermissions{Blocked: []string{"Bash"}}, session.ToolPermissions{Blocked: []string{"Write"}},
	)
	if got := latest[session.Workspace](t, s); got.Root != "/two" || session.Query[session.Workspace](s).Len() != 1 {
		t.Errorf("the workspace is %+v", got)
	}
	if step, ok := latest[session.Plan](t, s).Current(); !ok || step.Description != "b" || session.Query[session.Plan](s).Len() != 1 {
		t.Errorf("the current step is %+v, want b", step)
	}
	if got := latest[session.ToolPermissions](t, s); !cmp.Equal(got.Blocked, []string{"Write"}) {
		t.Errorf("the permissions are %+v", got)
	}
}

func TestVisibilityOverrides_AreSetAndClearedPerSection(t *testing.T) {
	s := session.New(nil)
	dispatch(t, t.Context(), s,
		session.SetVisibility{Section: "a", Visibility: "full"}, session.SetVisibility{Section: "b.c", Visibility: "summary"})
	before := s.Snapshot()
	dispatch(t, t.Context(), s, session.ClearVisibility{Section: "a"}, session.ClearVisibility{Section: "never"})
	if got, want := latest[session.VisibilityOverrides](t, s).Sections, map[string]string{"b.c": "summary"}; !cmp.Equal(got, want) {
		t.Errorf("after clearing a: %v, want %v", got, want)
	}
	dispatch(t, t.Context(), s, session.ClearAllVisibility{})
	if got := latest[session.VisibilityOverrides](t, s).Sections; len(got) != 0 {
		t.Errorf("after clearing all: %v", got)
	}
	if err := s.Restore(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if got, want := latest[session.VisibilityOverrides](t, s).Sections, map[string]string{"a": "full", "b.c": "summary"}; !cmp.Equal(got, want) {
		t.Errorf("after going back: %v, want %v", got, want)
	}
}

func TestContextLines_NameTheTaskAndTheDirectory(t *testing.T) {
	s := session.New(nil)
	if got := session.ContextLines(s); len(got) != 0 {
		t.Errorf("an empty session has the lines %q", got)
	}
	dispatch(t, t.Context(), s, session.Workspace{Root: "/work"}, session.PlanUpdated{Steps: []session.PlanStep{
		{Description: "read", Status: "completed"}, {Description: "write", Status: "in_progress"}, {Description: "test", Status: "in_progress"},
	}})
	want := []string{"[Context] Current task: write", "[Context] Working directory: /work"}
	if diff := cmp.Diff(want, session.ContextLines(s)); diff != "" {
		t.Error(diff)
	}
}

func TestRollback_KeepsFeedbackAndFacts(t *testing.T) {
	s := session.New(nil)
	ctx, tx := s.Begin(t.Context(), "call")
	dispatch(t, ctx, s, session.Feedback{Provider: "deadline", Summary: "hurry"}, session.PromptExecuted{Name: "p"},
		session.PromptRendered{Name: "p"}, session.RenderedTools{}, session.ToolInvoked{CallID: "call"}, session.Workspace{Root: "/gone"})
	if err := tx.Rollback("failed"); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{
		"Feedback": session.Query[session.Feedback](s).Len(), "PromptExecuted": session.Query[session.PromptExecuted](s).Len(),
		"PromptRendered": session.Query[session.PromptRendered](s).Len(), "RenderedTools": session.Query[session.RenderedTools](s).Len(),
		"ToolInvoked": session.Query[session.ToolInvoked](s).Len(),
	} {
		if n != 1 {
			t.Errorf("%s has %d values after the rollback, want 1", name, n)
		}
	}
	if n := session.Query[session.Workspace](s).Len(); n != 0 {
		t.Errorf("there are %d workspaces, want none", n)
	}
}

// drawn gives one value of each built-in type.
func drawn(t *rapid.T) []event.Payload {
	text := rapid.String()
	texts := rapid.Map(rapid.SliceOfN(text, 0, 3), func(s []string) []string {
		if len(s) == 0 {
			return nil
		}
		return s
	})
	raw := rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"a":[1,"<&>"]}`), json.RawMessage(`null`), json.RawMessage(`"x"`)})
	d := func(name string) string { return text.Draw(t, name) }
	duration := func(name string) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(40*24*time.Hour)).Draw(t, name))
	}
	step := session.PlanStep{ID: d("id"), Description: d("content"), Status: d("status"), ActiveForm: d("form")}
	var modified session.ModifiedFiles
	files := []session.FileModified{{Path: d("path"), Tool: "Write"}, {Path: "/b", Tool: "Edit"}}
	must(t, json.Unmarshal(must2(json.Marshal(map[string]any{"files": files})), &modified))
	var policy session.PolicyState
	must(t, json.Unmarshal(must2(json.Marshal(map[string]any{"invoked": []string{d("tool")}, "readPaths": []string{"/a", "/b"}})), &policy))
	return []event.Payload{
		session.PromptRendered{EventID: d("event"), Namespace: d("ns"), Key: d("key"), Name: d("name"), Adapter: d("adapter"), Text: d("text"), Tools: texts.Draw(t, "tools"), Descriptor: raw.Draw(t, "descriptor")},
		session.RenderedTools{RenderEventID: d("event"), Tools: []session.ToolSchema{{Name: d("name"), Description: d("description"), Parameters: json.RawMessage(`{}`)}}},
		session.PromptExecuted{EventID: d("event"), Text: d("text"), Output: raw.Draw(t, "output"), Status: event.DoneError, Error: d("error"), Duration: duration("whole"), APIDuration: duration("api"), SessionID: d("session"), Turns: rapid.Int().Draw(t, "turns")},
		session.ToolInvoked{EventID: d("event"), CallID: event.CallID(d("call")), Name: d("name"), Source: session.NativeTool, AgentID: d("agent"), Params: raw.Draw(t, "params"), Status: event.ToolSuccess, Value: raw.Draw(t, "value"), Output: d("output"), Error: d("error"), Duration: duration("took"), Path: d("path"), Dir: d("dir")},
		session.Feedback{Provider: d("provider"), Summary: d("summary"), Observations: texts.Draw(t, "observations"), Suggestions: texts.Draw(t, "suggestions"), Severity: "info", CallID: event.CallID(d("call"))},
		session.Workspace{Root: d("root")},
		session.ToolPermissions{Blocked: texts.Draw(t, "blocked"), Allowed: texts.Draw(t, "allowed")},
		session.Plan{Steps: []session.PlanStep{step}},
		session.PlanUpdated{Steps: []session.PlanStep{step, step}},
		session.PlanStepUpdated(step),
		modified,
		files[0],
		session.VisibilityOverrides{Sections: map[string]string{d("section"): d("visibility")}},
		session.SetVisibility{Section: d("section"), Visibility: d("visibility"), Reason: d("reason")},
		session.ClearVisibility{Section: d("section")},
		session.ClearAllVisibility{},
		policy,
	}
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func must2[B ~[]byte](data B, err error) B {
	if err != nil {
		panic(err)
	}
	return data
}

func TestBuiltIn_ValuesRoundTripThroughJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, v := range drawn(t) {
			data := must2(plainjson.Marshal(v)) // as stores have it
			back := reflect.New(reflect.TypeOf(v))
			must(t, json.Unmarshal(data, back.Interface()))
			again := must2(plainjson.Marshal(back.Interface()))
			if string(again) != string(data) {
				t.Fatalf("%T was %s and came back as %s", v, data, again)
			}
			plain := !slices.Contains([]event.Kind{"file:modified_all", "guard:policy_state"}, v.EventKind())
			if got := back.Elem().Interface(); plain && !reflect.DeepEqual(got, v) {
				t.Fatalf("%T came back different:\n%s", v, cmp.Diff(fmt.Sprintf("%#v", v), fmt.Sprintf("%#v", got)))
			}
		}
	})
}

// The names in the log are for ever.
func TestBuiltIn_KindsDoNotChange(t *testing.T) {
	var got []event.Kind
	rapid.Check(t, func(t *rapid.T) {
		got = nil
		for _, v := range drawn(t) {
			got = append(got, v.EventKind())
		}
	})
	want := []event.Kind{
		"prompt:rendered", "prompt:tools", "prompt:executed", "tool:invoked", "guard:feedback", "workspace:set", "tool:permissions",
		"plan:set", "plan:updated", "plan:step_updated", "file:modified_all", "file:modified",
		"prompt:visibility", "prompt:visibility_set", "prompt:visibility_cleared", "prompt:visibility_cleared_all", "guard:policy_state",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestToolInvoked_String(t *testing.T) {
	for want, call := range map[string]session.ToolInvoked{
		"Read success in 3ms":        {Name: "Read", Status: event.ToolSuccess, Params: json.RawMessage(`{"path":"a"}`), Duration: 3 * time.Millisecond},
		"Bash error in 1s: exit 1":   {Name: "Bash", Status: event.ToolError, Error: "exit 1", Duration: time.Second},
		"Bash denied in 0s: not now": {Name: "Bash", Status: event.ToolDenied, Error: "not now"},
	} {
		if got := fmt.Sprint(call); got != want {
			t.Errorf("it is printed as %q, want %q", got, want)
		}
	}
}
