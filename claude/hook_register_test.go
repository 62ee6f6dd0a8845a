// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

func anyHook(context.Context, HookInput) (HookOutput, error) { return nil, nil }

// Rows 43 and 45: what the CLI would take without a word and then ignore is refused by name.
func TestValidateHooks_RefusesIgnoredHooks(t *testing.T) {
	tests := []struct {
		name string
		hook Hook
		want string // option and a part of the reason, "" for valid
	}{
		{"plain", Hook{Event: HookPreToolUse, Func: anyHook}, ""},
		{"exact name", Hook{Event: HookPreToolUse, Matcher: "Bash", Func: anyHook}, ""},
		{"list", Hook{Event: HookPreToolUse, Matcher: "Read|Write", Func: anyHook}, ""},
		{"comma list", Hook{Event: HookPreToolUse, Matcher: "Read, Write", Func: anyHook}, ""},
		{"star", Hook{Event: HookPreToolUse, Matcher: "*", Func: anyHook}, ""},
		{"JavaScript look-ahead", Hook{Event: HookPreToolUse, Matcher: "(?!Read).*", Func: anyHook}, ""},
		{"JavaScript back reference", Hook{Event: HookPreToolUse, Matcher: `(a)\1`, Func: anyHook}, ""},
		{"fraction of a second", Hook{Event: HookPreToolUse, Timeout: 300 * time.Millisecond, Func: anyHook}, ""},
		{"on failure", Hook{Event: HookPreToolUse, OnFailure: FailBlock, Func: anyHook}, ""},
		{"star without matcher support", Hook{Event: HookStop, Matcher: "*", Func: anyHook}, ""},
		{"SessionStart after clear", Hook{Event: HookSessionStart, Matcher: "clear", Func: anyHook}, ""},
		{"SessionStart list", Hook{Event: HookSessionStart, Matcher: "startup, compact", Func: anyHook}, ""},
		{"SessionStart expression", Hook{Event: HookSessionStart, Matcher: "cl.*", Func: anyHook}, ""},
		{"SessionEnd after clear", Hook{Event: HookSessionEnd, Matcher: "clear", Func: anyHook}, ""},

		{"unknown event", Hook{Event: "PreTool", Func: anyHook}, `Hooks[0].Event: "PreTool" is not`},
		{"no event", Hook{Func: anyHook}, `Hooks[0].Event: "" is not`},
		{"no function", Hook{Event: HookStop}, "Hooks[0].Func: the Stop hook has no function"},
		{"matcher ignored", Hook{Event: HookUserPromptSubmit, Matcher: "x", Func: anyHook}, "Hooks[0].Matcher: UserPromptSubmit takes no matcher"},
		{"broken expression", Hook{Event: HookPreToolUse, Matcher: "Bash(", Func: anyHook}, `Hooks[0].Matcher: "Bash(" would never match`},
		{"broken class", Hook{Event: HookPreToolUse, Matcher: "[", Func: anyHook}, "would never match"},
		{"negative timeout", Hook{Event: HookStop, Timeout: -time.Second, Func: anyHook}, "Hooks[0].Timeout: -1s is negative"},
		{"tiny timeout", Hook{Event: HookStop, Timeout: 5, Func: anyHook}, "Hooks[0].Timeout: 5ns is below a millisecond"},
		{"bad on failure", Hook{Event: HookStop, OnFailure: "retry", Func: anyHook}, `Hooks[0].OnFailure: "retry" is neither`},
		{"Setup", Hook{Event: HookSetup, Func: anyHook}, "the CLI never calls a callback for Setup"},
		{"SessionStart", Hook{Event: HookSessionStart, Func: anyHook}, "calls SessionStart callbacks only for clear|compact"},
		{"SessionStart at startup", Hook{Event: HookSessionStart, Matcher: "startup", Func: anyHook}, `"startup" does not match`},
		{"SessionEnd", Hook{Event: HookSessionEnd, Func: anyHook}, "calls SessionEnd callbacks only for clear"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := validateHooks([]Hook{tt.hook})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(advice.Text(err), tt.want)):
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
			if _, ok := errors.AsType[*OptionError](err); err != nil && !ok {
				t.Errorf("%T is not an OptionError", err)
			}
		})
	}
}

func TestValidateHooks_NamesEveryFault(t *testing.T) {
	err := validateHooks([]Hook{{Event: HookStop, Matcher: "x", Timeout: -1}, {Event: HookSetup, Func: anyHook}, {Event: HookPreToolUse, Func: anyHook}})
	for _, want := range []string{"Hooks[0].Func", "Hooks[0].Matcher", "Hooks[0].Timeout", "Hooks[1].Event"} {
		if err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

func TestValidateHooks_ChecksTheVersion(t *testing.T) {
	hooks := []Hook{{Event: HookPreToolUse, Func: anyHook}, {Event: HookPreModelSwitch, Func: anyHook}}
	tests := []struct {
		version string
		ok      bool
	}{
		{"2.1.325", true}, {"2.2.0", true}, {"3.0", true}, {"2.1.250", true}, {"2.1.197", false}, {"2.1.9", false}, {"", false},
	}
	for _, tt := range tests {
		err := validateHooksFor(tt.version, hooks)
		if (err == nil) != tt.ok {
			t.Errorf("version %q: got %v, want ok %v", tt.version, err, tt.ok)
		}
		if err != nil && !strings.Contains(advice.Text(err), "Hooks[1].Event: CLI "+tt.version+" never calls") {
			t.Errorf("version %q: error %v does not name the hook", tt.version, err)
		}
	}
}

func TestInitializeHooks_FieldAndTable(t *testing.T) {
	hooks := []Hook{
		{Event: HookPreToolUse, Matcher: "Bash", Timeout: 1500 * time.Millisecond, OnFailure: FailBlock, Func: anyHook},
		{Event: HookStop, Func: anyHook},
		{Event: HookPreToolUse, Func: anyHook},
	}
	field, table := initializeHooks(hooks, 0)
	got, err := json.Marshal(field)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0_0"],"timeout":1.5,"onFailure":"block"},{"hookCallbackIds":["hook_0_2"]}],"Stop":[{"hookCallbackIds":["hook_0_1"]}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for id, event := range map[string]HookEvent{"hook_0_0": HookPreToolUse, "hook_0_1": HookStop, "hook_0_2": HookPreToolUse} {
		if table[id] == nil || table[id].Event != event {
			t.Errorf("table[%s] = %v, want a %s hook", id, table[id], event)
		}
	}
	if table["hook_0_0"].Matcher != "Bash" || table["hook_0_2"].Matcher != "" {
		t.Error("hooks of one event are mixed up")
	}
	if !needsOnFailure(hooks) || needsOnFailure(hooks[1:]) {
		t.Error("needsOnFailure does not report which hooks need it")
	}
}

func TestInitializeHooks_WithoutHooksIsEmpty(t *testing.T) {
	if field, table := initializeHooks(nil, 0); field != nil || len(table) != 0 {
		t.Errorf("got %v, %v, want nothing", field, table)
	}
}
