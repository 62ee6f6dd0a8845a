// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func initializeFile(t *testing.T, version string) *InitializeResult {
	t.Helper()
	data, err := os.ReadFile("testdata/initialize_" + version + ".json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := decodeInitializeResult(data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestInitializeResult_OfTheCurrentCLI(t *testing.T) {
	r := initializeFile(t, "2.1.325")
	if r.Version != "2.1.325" || r.PID == 0 || r.CurrentPermissionMode != ModeDefault || r.SessionState != "idle" || r.FastModeState != "off" {
		t.Errorf("got %+v", r)
	}
	if r.HooksApplied == nil || !*r.HooksApplied || r.HookOnFailureSupported == nil || !*r.HookOnFailureSupported {
		t.Error("hooks_applied or hook_on_failure_supported is lost")
	}
	if !slices.Contains(r.Capabilities, "mcp_call_check_permissions_v1") {
		t.Errorf("capabilities %v", r.Capabilities)
	}
	if len(r.Commands) != 2 || r.Commands[0].Name != "foo" || len(r.Agents) != 2 || r.Agents[1].Name != "Explore" || len(r.Models) != 2 {
		t.Errorf("commands %v, agents %v, models %v", r.Commands, r.Agents, r.Models)
	}
	if m := r.Models[0]; m.Value != "default" || m.ResolvedModel != "claude-opus-5-5" || !m.SupportsEffort || len(m.SupportedEffortLevels) != 5 {
		t.Errorf("model %+v", m)
	}
	if r.Account.APIKeySource != "ANTHROPIC_API_KEY" || len(r.AvailableOutputStyles) == 0 || !strings.Contains(string(r.Raw), "feedback_mode") {
		t.Errorf("account %+v, styles %v, or Raw is not whole", r.Account, r.AvailableOutputStyles)
	}
}

func TestInitializeResult_OfAnOldCLI(t *testing.T) {
	r := initializeFile(t, "2.1.197")
	if r.Version != "" || r.HooksApplied != nil || r.HookOnFailureSupported != nil || r.Capabilities != nil {
		t.Errorf("an old CLI reports none of these: %+v", r)
	}
	if len(r.Models) == 0 || len(r.Commands) == 0 || r.OutputStyle != "default" {
		t.Errorf("got %+v", r)
	}
}

func TestInitializeResult_PendingRequests(t *testing.T) {
	r, err := decodeInitializeResult([]byte(`{"subtype":"success","request_id":"r1","response":{"sdk_mcp_manifests_parked":{"a":"parked"},"models":"odd"},"pending_permission_requests":[{"request_id":"p1"}],"pending_user_dialog_requests":[{"request_id":"d1"}],"pending_elicitation_requests":[{"request_id":"e1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(r.Pending)
	if want := `[{"request_id":"p1"},{"request_id":"d1"},{"request_id":"e1"}]`; string(got) != want {
		t.Errorf("pending %s, want %s", got, want)
	}
	if r.MCPManifestsParked["a"] != "parked" {
		t.Errorf("parked %v", r.MCPManifestsParked)
	}
	for _, empty := range []string{`{}`, `{"response":null}`} {
		if r, err := decodeInitializeResult([]byte(empty)); err != nil || r == nil {
			t.Errorf("%s: %v", empty, err)
		}
	}
	if _, err := decodeInitializeResult([]byte(`{"response":[]}`)); err == nil {
		t.Error("a list was taken for an introduction")
	}
}

// Row 43: a hook that must block is not left to a CLI that cannot.
func TestInitializeResult_UnsupportedHooksAreRefused(t *testing.T) {
	blocking := []Hook{{Event: HookPreToolUse, OnFailure: FailBlock, Func: anyHook}}
	plain := []Hook{{Event: HookPreToolUse, Func: anyHook}}
	newer := []Hook{{Event: HookPostModelSwitch, Func: anyHook}}
	current, old := initializeFile(t, "2.1.325"), initializeFile(t, "2.1.197")
	tests := []struct {
		name   string
		cli    *InitializeResult
		hooks  []Hook
		ok     bool
		tooOld bool
	}{
		{"current", current, blocking, true, false},
		{"old, plain hook", old, plain, true, false},
		{"old, blocking hook", old, blocking, false, true},
		{"old, newer event", old, newer, false, true},
		{"hooks not applied", &InitializeResult{Version: "2.1.325", HooksApplied: new(false)}, plain, false, false},
		{"no hooks", &InitializeResult{HooksApplied: new(false)}, nil, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cli.checkHooks(tt.hooks)
			if (err == nil) != tt.ok || errors.Is(err, ErrTooOld) != tt.tooOld {
				t.Errorf("got %v, want ok %v, too old %v", err, tt.ok, tt.tooOld)
			}
		})
	}
}
