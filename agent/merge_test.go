// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// requested is the request that reaches the adapter.
func requested(t *testing.T, defaults, req agent.Request) agent.Request {
	t.Helper()
	a := agenttest.New(agenttest.Done(""))
	collect(t, newRunner(t, a, &agent.RunnerOptions{Defaults: defaults}).Run(t.Context(), req))
	return a.Requests()[0]
}

// equalRequests compares requests, and what they point to by its address. The Runner gives each a host and, if
// it has none, an id.
var equalRequests = cmp.Options{
	cmpopts.IgnoreFields(agent.Request{}, "Host"), same[tool.Registry](), same[workspace.Workspace](), same[agent.Hooks](), same[guard.Tracker](),
	cmp.Comparer(func(a, b func(agent.TranscriptLine)) bool {
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}),
}

func same[T any]() cmp.Option { return cmp.Comparer(func(a, b *T) bool { return a == b }) }

func filled(t *testing.T, word string, n int) agent.Request {
	t.Helper()
	tools, err := tool.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	return agent.Request{
		Settings: agent.Settings{
			Dir: word, Workspace: new(workspace.Workspace), Model: word, Effort: word, SystemPrompt: word, AppendSystemPrompt: word,
			MaxTurns: n, SideCallsPerTurn: n, Budget: &guard.Budget{MaxCostUSD: float64(n)}, Tools: []string{word}, DisallowedTools: []string{word}, UnknownTools: []string{word},
			ToolServer: word, Servers: map[string]agent.Server{word: {URL: word}}, PartialText: true,
			Permissions: &gate.Permissions{FileWrite: gate.LevelAllow, WritablePaths: []string{word}},
		},
		Prompt:       word,
		Registry:     tools,
		OutputSchema: json.RawMessage(`{"title":"` + word + `"}`),
		Skills:       []agent.Skill{skill(word)},
		Hooks:        &agent.Hooks{}, MaxRefusals: n, Trackers: []*guard.Tracker{guard.NewTracker(guard.Budget{MaxTotalTokens: int64(n)})},
		RunID: word, TraceParent: word, TraceState: word, Transcript: func(agent.TranscriptLine) {},
	}
}

// A skill is one that has nothing but a name.
type skill string

func (s skill) Name() string         { return string(s) }
func (skill) WriteIn(*os.Root) error { return nil }

func TestMerge_RequestOverridesTheDefaults(t *testing.T) {
	defaults, own := filled(t, "Default", 1), filled(t, "Own", 2)
	if diff := cmp.Diff(own, requested(t, defaults, own), equalRequests); diff != "" {
		t.Errorf("every field is set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(defaults, requested(t, defaults, agent.Request{}), equalRequests); diff != "" {
		t.Errorf("no field is set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(own, requested(t, agent.Request{}, own), equalRequests); diff != "" {
		t.Errorf("there are no defaults (-want +got):\n%s", diff)
	}
}

// A new field of Request must be thought of where requests are merged. filled has all but those that no
// defaults can have.
func TestMerge_CoversEveryField(t *testing.T) {
	v := reflect.ValueOf(filled(t, "x", 1))
	for _, field := range reflect.VisibleFields(v.Type()) {
		switch field.Name {
		case "Resume", "Fork", "Fresh", "Host", "Ledger", "LastSeq":
		default:
			if v.FieldByIndex(field.Index).IsZero() {
				t.Errorf("the tests of merging leave %s out", field.Name)
			}
		}
	}
}

func TestMerge_ListsReplaceTheDefaults(t *testing.T) {
	defaults := agent.Request{
		Settings: agent.Settings{
			Tools: []string{"Read", "Edit"}, DisallowedTools: []string{"Bash"},
			Permissions: &gate.Permissions{WritablePaths: []string{"src"}},
		},
	}
	cases := []struct {
		name        string
		list        []string
		wantAllowed []string
		wantDenied  []string
		wantPaths   []string
	}{
		{"unset", nil, []string{"Read", "Edit"}, []string{"Bash"}, []string{"src"}},
		{"empty", []string{}, []string{}, []string{}, []string{}},
		{"one", []string{"Grep"}, []string{"Grep"}, []string{"Grep"}, []string{"Grep"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			own := agent.Request{Settings: agent.Settings{Tools: c.list, DisallowedTools: c.list, Permissions: &gate.Permissions{WritablePaths: c.list}}}
			got := requested(t, defaults, own)
			want := [][]string{c.wantAllowed, c.wantDenied, c.wantPaths}
			if diff := cmp.Diff(want, [][]string{got.Tools, got.DisallowedTools, got.Permissions.WritablePaths}); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge_PermissionsFieldByField(t *testing.T) {
	type p = gate.Permissions
	const ask, allow, deny = gate.LevelAsk, gate.LevelAllow, gate.LevelDeny
	cases := []struct {
		name                string
		defaults, own, want *p
	}{
		{"neither", nil, nil, nil},
		{"only defaults", &p{FileWrite: allow}, nil, &p{FileWrite: allow}},
		{"only the run's", nil, &p{ShellExecute: deny}, &p{ShellExecute: deny}},
		{"different fields", &p{FileWrite: allow}, &p{ShellExecute: deny}, &p{FileWrite: allow, ShellExecute: deny}},
		{"the same field", &p{FileWrite: allow, NetworkAccess: deny}, &p{FileWrite: deny, NetworkAccess: allow}, &p{FileWrite: deny, NetworkAccess: allow}},
		{"ask overrides, unset does not", &p{FileWrite: allow, ShellExecute: deny}, &p{FileWrite: ask}, &p{FileWrite: ask, ShellExecute: deny}},
		{"the mode of the defaults", &p{Mode: gate.ModeBypass}, &p{}, &p{Mode: gate.ModeBypass}},
		{"the mode of the run", &p{Mode: gate.ModeBypass}, &p{Mode: gate.ModeAuto}, &p{Mode: gate.ModeAuto}},
		{"a mode over levels of the defaults", &p{FileWrite: deny}, &p{Mode: gate.ModeAuto}, &p{FileWrite: deny, Mode: gate.ModeAuto}},
		{"a default beside a level of the run", &p{Mode: gate.ModeAllow}, &p{ShellExecute: deny}, &p{ShellExecute: deny, Mode: gate.ModeAllow}},
		{"a default of the run", &p{Mode: gate.ModeAllow, FileWrite: deny}, &p{Mode: gate.ModeAsk}, &p{Mode: gate.ModeAsk, FileWrite: deny}},
		{"a level of the run is not set aside", &p{Mode: gate.ModeBypass}, &p{ShellExecute: deny}, &p{ShellExecute: deny}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := requested(t, agent.Request{Settings: agent.Settings{Permissions: c.defaults}}, agent.Request{Settings: agent.Settings{Permissions: c.own}})
			if diff := cmp.Diff(c.want, got.Permissions); diff != "" {
				t.Errorf("permissions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge_BudgetsLimitByLimit(t *testing.T) {
	soon := guard.FromNow(time.Hour)
	defaults := &guard.Budget{MaxTotalTokens: 1, MaxInputTokens: 2, MaxOutputTokens: 3, MaxCostUSD: 4, MaxRequests: 5, Deadline: soon}
	for name, test := range map[string]struct{ own, want *guard.Budget }{
		"no budget":    {nil, defaults},
		"zero":         {&guard.Budget{}, defaults},
		"one limit":    {&guard.Budget{MaxCostUSD: 9}, &guard.Budget{MaxTotalTokens: 1, MaxInputTokens: 2, MaxOutputTokens: 3, MaxCostUSD: 9, MaxRequests: 5, Deadline: soon}},
		"other limits": {&guard.Budget{MaxTotalTokens: 6, MaxInputTokens: 7, MaxOutputTokens: 8, MaxRequests: 9}, &guard.Budget{MaxTotalTokens: 6, MaxInputTokens: 7, MaxOutputTokens: 8, MaxCostUSD: 4, MaxRequests: 9, Deadline: soon}},
	} {
		t.Run(name, func(t *testing.T) {
			got := requested(t, agent.Request{Settings: agent.Settings{Budget: defaults}}, agent.Request{Settings: agent.Settings{Budget: test.own}})
			if diff := cmp.Diff(test.want, got.Budget); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An adapter, or the caller that made the runner, may do with a request what it likes.
func TestMerge_DefaultsAreNotShared(t *testing.T) {
	defaults := filled(t, "Default", 1)
	tracker := defaults.Trackers[0]
	vandal := func(r *agenttest.Run) {
		r.Request.Tools[0], r.Request.DisallowedTools[0] = "Bash", "Bash"
		r.Request.Permissions.FileWrite, r.Request.Permissions.WritablePaths[0] = gate.LevelDeny, "/"
		r.Request.OutputSchema[0] = '!'
		r.Request.Skills[0], r.Request.Trackers[0] = skill("bad"), nil
	}
	a := agenttest.New(vandal, agenttest.Done(""))
	r := newRunner(t, a, &agent.RunnerOptions{Defaults: defaults})
	defaults.Tools[0], defaults.Permissions.WritablePaths[0] = "Bash", "/"
	collect(t, r.Run(t.Context(), agent.Request{}))

	a.Steps = []agenttest.Step{agenttest.Done("")}
	collect(t, r.Run(t.Context(), agent.Request{}))
	want := filled(t, "Default", 1)
	want.Registry, want.Workspace, want.Hooks = defaults.Registry, defaults.Workspace, defaults.Hooks
	want.Trackers = []*guard.Tracker{tracker}
	if diff := cmp.Diff(want, a.Requests()[1], equalRequests); diff != "" {
		t.Errorf("the second run (-want +got):\n%s", diff)
	}
}
