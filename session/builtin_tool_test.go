// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

func succeeded(id, name, params string) session.ToolInvoked {
	return session.ToolInvoked{CallID: event.CallID(id), Name: name, Source: session.NativeTool, Params: json.RawMessage(params), Status: event.ToolSuccess}
}

func record(ctx context.Context, t testing.TB, s *session.Session, calls ...session.ToolInvoked) {
	t.Helper()
	for _, c := range calls {
		if recorded, err := s.RecordTool(ctx, c, catalogue.Tools()); err != nil || !recorded {
			t.Fatalf("recording %s: %v, %v", c.CallID, recorded, err)
		}
	}
}

func invoked(s *session.Session) []string {
	var got []string
	for c := range session.Query[session.ToolInvoked](s).All() {
		got = append(got, fmt.Sprintf("%s %s %s", c.CallID, c.Name, c.Status))
	}
	return got
}

func TestRecordTool_RepeatedReportCountsOnce(t *testing.T) {
	again := succeeded("toolu_1", "Bash", `{}`)
	again.Status = event.ToolError
	t.Run("recorded", func(t *testing.T) {
		s := session.New(nil)
		record(t.Context(), t, s, succeeded("toolu_1", "Bash", `{}`))
		before := s.Last()
		if recorded, err := s.RecordTool(t.Context(), again, nil); recorded || err != nil {
			t.Errorf("the second report was recorded: %v, %v", recorded, err)
		}
		if s.Last() != before {
			t.Errorf("the second report is in the log")
		}
	})
	t.Run("dispatched", func(t *testing.T) { // the log has both, and the slice the first
		s := session.New(nil)
		dispatch(t, t.Context(), s, succeeded("toolu_1", "Bash", `{}`), again, succeeded("toolu_2", "Bash", `{}`))
		if diff := cmp.Diff([]string{"toolu_1 Bash success", "toolu_2 Bash success"}, invoked(s)); diff != "" {
			t.Error(diff)
		}
		if s.Last() != 3 {
			t.Errorf("the log has %d entries, want 3", s.Last())
		}
	})
	t.Run("without an id", func(t *testing.T) { // they cannot be compared without it
		s := session.New(nil)
		record(t.Context(), t, s, succeeded("", "Bash", `{}`), succeeded("", "Bash", `{}`))
		if n := session.Query[session.ToolInvoked](s).Len(); n != 2 {
			t.Errorf("%d calls are known, want 2", n)
		}
	})
	t.Run("by many at once", func(t *testing.T) {
		s := session.New(nil)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 50 {
					_, _ = s.RecordTool(context.Background(), succeeded(fmt.Sprint(i), "Bash", `{}`), nil)
				}
			})
		}
		wg.Wait()
		if n := session.Query[session.ToolInvoked](s).Len(); n != 50 || s.Last() != 50 {
			t.Errorf("%d calls are known and %d in the log, want 50", n, s.Last())
		}
	})
}

func TestRecordTool_DispatchesFilesAndPlan(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	path := func(name string) string { raw, _ := json.Marshal(name); return string(raw) }
	failed := succeeded("failed", "Write", `{"file_path":`+path(at("never"))+`}`)
	failed.Status = event.ToolError
	elsewhere := succeeded("elsewhere", "Edit", `{"file_path":"sub/../b.txt"}`)
	elsewhere.Dir = at("dir")
	created := succeeded("created", "TaskCreate", `{"subject":"Read","description":"all of it","activeForm":"Reading"}`)
	created.Value = json.RawMessage(`{"task":{"id":"1","subject":"Read"}}`)

	s := session.New(nil)
	dispatch(t, t.Context(), s, session.Workspace{Root: root})
	record(t.Context(), t, s,
		succeeded("read", "Read", `{"file_path":`+path(at("a.txt"))+`,"limit":1}`),
		succeeded("write", "Write", `{"file_path":"a.txt","content":"x"}`), failed, elsewhere,
		succeeded("notebook", "NotebookEdit", `{"notebook_path":`+path(at("n.ipynb"))+`}`),
		succeeded("multi", "MultiEdit", `{"file_path":`+path(at("a.txt"))+`}`),
		succeeded("foreign", "mcp__files__write_file", `{"path":`+path(at("foreign"))+`}`),
		succeeded("broken", "Write", `{"file_path":`), succeeded("list", "Glob", `{"path":`+path(root)+`}`),
		created, succeeded("begun", "TaskUpdate", `{"taskId":"1","status":"in_progress"}`),
	)
	wantFiles := []session.FileModified{{Path: at("a.txt"), Tool: "MultiEdit"}, {Path: at("dir/b.txt"), Tool: "Edit"}, {Path: at("n.ipynb"), Tool: "NotebookEdit"}}
	files := latest[session.ModifiedFiles](t, s)
	if diff := cmp.Diff(wantFiles, slices.Collect(files.All())); diff != "" {
		t.Errorf("modified files: %s", diff)
	}
	if f, ok := files.Get(at("dir/b.txt")); !ok || f.Tool != "Edit" {
		t.Errorf("b.txt was changed by %+v", f)
	}
	policy := latest[session.PolicyState](t, s)
	wantRead := []string{at("a.txt"), at("dir/b.txt"), at("n.ipynb")}
	if diff := cmp.Diff(wantRead, slices.Sorted(maps.Keys(policy.ReadPaths()))); diff != "" {
		t.Errorf("known files: %s", diff)
	}
	wantInvoked := []string{"Edit", "Glob", "MultiEdit", "NotebookEdit", "Read", "TaskCreate", "TaskUpdate", "Write", "mcp__files__write_file"}
	if diff := cmp.Diff(wantInvoked, slices.Sorted(maps.Keys(policy.Invoked()))); diff != "" {
		t.Errorf("invoked: %s", diff)
	}
	wantPlan := session.Plan{Steps: []session.PlanStep{{ID: "1", Description: "Read", Status: "in_progress", ActiveForm: "Reading"}}}
	if diff := cmp.Diff(wantPlan, latest[session.Plan](t, s)); diff != "" {
		t.Errorf("plan: %s", diff)
	}
	for entry, err := range closed(t, s).After(t.Context(), 1) {
		if err != nil || entry.Cause == "" || entry.Tx != 0 {
			t.Errorf("entry %d (%s) has the cause %q: %v", entry.Pos, entry.Event.Kind, entry.Cause, err)
		}
	}
}

// closed closes a session, so that reading it comes to an end.
func closed(t testing.TB, s *session.Session) *session.Session {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRecordTool_TodoListBecomesThePlan(t *testing.T) {
	s := session.New(nil)
	record(t.Context(), t, s, succeeded("toolu_1", "TodoWrite",
		`{"todos":[{"content":"Read","status":"completed","activeForm":"Reading"},{"content":"Write","status":"in_progress","activeForm":"Writing"}]}`))
	want := session.Plan{Steps: []session.PlanStep{
		{Description: "Read", Status: "completed", ActiveForm: "Reading"}, {Description: "Write", Status: "in_progress", ActiveForm: "Writing"},
	}}
	if diff := cmp.Diff(want, latest[session.Plan](t, s)); diff != "" {
		t.Error(diff)
	}
	for _, input := range []string{``, `[]`, `{}`, `{"todos":null}`, `{"todos":{}}`, `{"todos":[1]}`} {
		record(t.Context(), t, s, succeeded(input, "TodoWrite", input))
		if diff := cmp.Diff(want, latest[session.Plan](t, s)); diff != "" {
			t.Errorf("a plan was made of %s: %s", input, diff)
		}
	}
}

func TestPlan_StepsAreAddedChangedAndRemoved(t *testing.T) {
	s := session.New(nil)
	dispatch(t, t.Context(), s,
		session.PlanStepUpdated{ID: "1", Description: "Read", Status: "pending"},
		session.PlanStepUpdated{ID: "2", Description: "Write", Status: "pending"})
	before := latest[session.Plan](t, s)
	dispatch(t, t.Context(), s,
		session.PlanStepUpdated{ID: "2", Status: "in_progress", ActiveForm: "Writing"},
		session.PlanStepUpdated{ID: "1", Status: "deleted"}, session.PlanStepUpdated{ID: "9", Status: "deleted"})
	want := session.Plan{Steps: []session.PlanStep{{ID: "2", Description: "Write", Status: "in_progress", ActiveForm: "Writing"}}}
	if diff := cmp.Diff(want, latest[session.Plan](t, s)); diff != "" {
		t.Error(diff)
	}
	if len(before.Steps) != 2 || before.Steps[1].Status != "pending" {
		t.Errorf("the plan of before has changed to %+v", before)
	}
}

func TestRecordTool_IsRolledBackWithTheOuterCall(t *testing.T) {
	s := session.New(nil)
	file := filepath.Join(t.TempDir(), "a.txt")
	ctx, tx := s.Begin(t.Context(), "outer")
	params, _ := json.Marshal(map[string]string{"file_path": file})
	record(ctx, t, s, succeeded("inner", "Write", string(params)))
	if got := latest[session.PolicyState](t, s); !got.ReadPaths()[file] || !got.Invoked()["Write"] {
		t.Errorf("before the rollback %v and %v are known", got.ReadPaths(), got.Invoked())
	}
	if err := tx.Rollback("failed"); err != nil {
		t.Fatal(err)
	}
	policy, _ := session.Query[session.PolicyState](s).Latest()
	files, _ := session.Query[session.ModifiedFiles](s).Latest()
	if len(policy.ReadPaths()) != 0 || len(policy.Invoked()) != 0 || files.Len() != 0 {
		t.Errorf("after it %v, %v and %d files are left", policy.ReadPaths(), policy.Invoked(), files.Len())
	}
	record(ctx, t, s, session.ToolInvoked{CallID: "late", Name: "Bash", Status: event.ToolError}) // its transaction is over
	if diff := cmp.Diff([]string{"inner Write success", "late Bash error"}, invoked(s)); diff != "" {
		t.Error(diff)
	}
}

func TestRecordTool_KeepsInvalidJSONAndText(t *testing.T) {
	s := session.New(&session.Options{NewID: func() string { return "made" }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	record(ctx, t, s, session.ToolInvoked{CallID: "1", Name: "x", Params: json.RawMessage(`{"broken`), Value: json.RawMessage("\xff"), Output: "\xff"})
	got := latest[session.ToolInvoked](t, s)
	if string(got.Params) != `"{\"broken"` || got.EventID != "made" || got.Success() {
		t.Errorf("the report is %+v", got)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}
}

// Many files cost as much, each, as few.
func BenchmarkRecordTool(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("after %d", n), func(b *testing.B) {
			s := session.New(nil)
			call := func(i int) session.ToolInvoked {
				return succeeded(fmt.Sprint(i), "Write", fmt.Sprintf(`{"file_path":"/work/%d.txt"}`, i))
			}
			for i := range n {
				record(b.Context(), b, s, call(i))
			}
			b.ReportAllocs()
			for i := n; b.Loop(); i++ {
				_, _ = s.RecordTool(b.Context(), call(i), catalogue.Tools())
			}
		})
	}
}

// A patch is about several files: each is known, and each has changed.
func TestRecordTool_FilesOfAPatch(t *testing.T) {
	scan := func(input json.RawMessage) (paths []string, ok bool) {
		return paths, json.Unmarshal(input, &paths) == nil
	}
	patcher := &tool.Catalogue{Natives: []tool.Native{{Name: "amend", Files: tool.WritesFile, Fields: tool.Fields{Scan: scan}}}}
	s, root := session.New(nil), t.TempDir()
	want := []string{filepath.Join(root, "a"), filepath.Join(root, "b")}
	patch := succeeded("1", "amend", `["a","b"]`)
	patch.Dir = root
	if _, err := s.RecordTool(t.Context(), patch, patcher); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(latest[session.PolicyState](t, s).ReadPaths()))); diff != "" {
		t.Errorf("known files (-want +got):\n%s", diff)
	}
	changed := []session.FileModified{{Path: want[0], Tool: "amend"}, {Path: want[1], Tool: "amend"}}
	if diff := cmp.Diff(changed, slices.Collect(latest[session.ModifiedFiles](t, s).All())); diff != "" {
		t.Errorf("modified files (-want +got):\n%s", diff)
	}
}
