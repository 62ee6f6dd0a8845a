// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// bufferedLog returns a logger and what it has written.
func bufferedLog() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

func denyingAnswer(answer json.RawMessage) bool {
	var a struct {
		Specific struct {
			PermissionDecision string `json:"permissionDecision"`
			Decision           struct {
				Behavior string `json:"behavior"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	return json.Unmarshal(answer, &a) == nil && (a.Specific.PermissionDecision == "deny" || a.Specific.Decision.Behavior == "deny")
}

func TestOn_PassesTypedInput(t *testing.T) {
	var got *PreToolUseInput
	h := On("Bash", func(_ context.Context, in *PreToolUseInput) (*PreToolUseOutput, error) {
		got = in
		return DenyTool("no shell"), nil
	})
	if h.Event != HookPreToolUse || h.Matcher != "Bash" {
		t.Errorf("On made event %q, matcher %q", h.Event, h.Matcher)
	}
	answer := h.serve(t.Context(), slog.New(slog.DiscardHandler), hookInputFile(t, HookPreToolUse))
	const want = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no shell"}}`
	if string(answer) != want {
		t.Errorf("got  %s\nwant %s", answer, want)
	}
	if got == nil || got.ToolName != "Bash" || got.ToolUseID != "toolu_0001" || got.Effort.Level != "medium" {
		t.Errorf("callback got %+v", got)
	}
}

func TestOn_NilOutputIsAnEmptyAnswer(t *testing.T) {
	h := On("", func(context.Context, *PreToolUseInput) (*PreToolUseOutput, error) { return nil, nil })
	if got := h.serve(t.Context(), slog.New(slog.DiscardHandler), hookInputFile(t, HookPreToolUse)); string(got) != "{}" {
		t.Errorf("got %s, want {}", got)
	}
}

// Rows 39 and 43: every failure of a callback becomes the safe answer. Gates deny, other events get no
// decision, and only the log has the details, which the model must not read.
func TestHook_FailedCallbackGivesTheSafeAnswer(t *testing.T) {
	gates := []HookEvent{HookPreToolUse, HookPermissionRequest, HookPreModelSwitch}
	failures := map[string]HookFunc{
		"error":     func(context.Context, HookInput) (HookOutput, error) { return nil, errors.New("secret detail") },
		"panic":     func(context.Context, HookInput) (HookOutput, error) { panic("secret detail") },
		"nil panic": func(context.Context, HookInput) (HookOutput, error) { panic(nil) },
		"other event's output": func(context.Context, HookInput) (HookOutput, error) {
			return &otherOutput{}, nil
		},
		"output that cannot be sent": func(_ context.Context, in HookInput) (HookOutput, error) {
			return &badOutput{event: in.hookEvent(), Bad: func() {}}, nil
		},
		"invalid raw JSON": func(_ context.Context, in HookInput) (HookOutput, error) {
			return &badOutput{event: in.hookEvent(), Bad: json.RawMessage(`{"a":`)}, nil
		},
		"nil function": nil,
	}
	for _, event := range slices.Sorted(maps.Keys(hookEvents)) {
		for name, fn := range failures {
			t.Run(string(event)+"/"+name, func(t *testing.T) {
				log, written := bufferedLog()
				h := Hook{Event: event, Matcher: "Bash", Func: fn}
				answer := h.serve(t.Context(), log, hookInputFile(t, event))
				switch gate := slices.Contains(gates, event); {
				case gate && !denyingAnswer(answer):
					t.Errorf("answer %s does not deny", answer)
				case gate && !strings.Contains(string(answer), string(event)+" hook (matcher"):
					t.Errorf("answer %s does not name the hook", answer)
				case !gate && string(answer) != "{}":
					t.Errorf("answer %s, want {}", answer)
				}
				if strings.Contains(string(answer), "secret") {
					t.Errorf("answer %s reports the failure to the model", answer)
				}
				if !strings.Contains(written.String(), "level=ERROR") || !strings.Contains(written.String(), "event="+string(event)) {
					t.Errorf("log %q does not report the failure", written)
				}
			})
		}
	}
}

type otherOutput struct{ StopOutput }

func (*otherOutput) hookEvent() HookEvent { return "Other" }

type badOutput struct {
	HookControl `json:"-"`
	event       HookEvent
	Bad         any `json:"bad"`
}

func (b *badOutput) hookEvent() HookEvent { return b.event }

// A gate is not asked about a call that it could misunderstand.
func TestHook_UnreadableInputIsDenied(t *testing.T) {
	inputs := map[string]string{
		"not JSON":             `{"tool_name":"Bash"`,
		"array":                `[]`,
		"no tool name":         `{"hook_event_name":"PreToolUse","tool_input":{}}`,
		"no tool input":        `{"hook_event_name":"PreToolUse","tool_name":"Bash"}`,
		"tool name is number":  `{"hook_event_name":"PreToolUse","tool_name":1,"tool_input":{}}`,
		"input is garbage":     `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{x}}`,
		"another event":        `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{}}`,
		"control char in name": "{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"a\nb\",\"tool_input\":{}}",
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			h := On("", func(context.Context, *PreToolUseInput) (*PreToolUseOutput, error) { return AllowTool(), nil })
			if answer := h.serve(t.Context(), slog.New(slog.DiscardHandler), []byte(input)); !denyingAnswer(answer) {
				t.Errorf("answer %s does not deny", answer)
			}
		})
	}
}

func TestHook_OtherEventsTolerateOddFields(t *testing.T) {
	called := false
	h := On("", func(_ context.Context, in *StopInput) (*StopOutput, error) {
		called = in.LastAssistantMessage == "bye"
		return nil, nil
	})
	log, written := bufferedLog()
	h.serve(t.Context(), log, []byte(`{"hook_event_name":"Stop","effort":3,"last_assistant_message":"bye"}`))
	if !called || !strings.Contains(written.String(), "effort") {
		t.Errorf("called with the readable fields: %v; log %q", called, written)
	}
}

// Row 44: callbacks run side by side. Each waits for the other, so that serial calls would hang.
func TestHook_CallbacksRunConcurrently(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	h := On("", func(context.Context, *StopInput) (*StopOutput, error) {
		both.Done()
		both.Wait()
		return nil, nil
	})
	var served sync.WaitGroup
	for range 2 {
		served.Go(func() { h.serve(t.Context(), slog.New(slog.DiscardHandler), hookInputFile(t, HookStop)) })
	}
	served.Wait()
}

// The compiler refuses a hook whose output belongs to another event.
func TestOn_MismatchedOutputDoesNotCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the package: run without -short")
	}
	tests := map[string]struct {
		in, out string
		ok      bool
	}{
		"matching":   {"PreToolUseInput", "PreToolUseOutput", true},
		"mismatched": {"PreToolUseInput", "StopOutput", false},
		"unknown":    {"UnknownHookInput", "StopOutput", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := compileWith(t, `package claude
import "context"
var _ = On("", func(context.Context, *`+tt.in+`) (*`+tt.out+`, error) { return nil, nil })`)
			if (err == nil) != tt.ok {
				t.Errorf("compiles: %v, want %v\n%s", err == nil, tt.ok, out)
			}
			if err != nil && !strings.Contains(out, "takes") {
				t.Errorf("refused for another reason: %s", out)
			}
		})
	}
}

// compileWith builds this package with one more file.
func compileWith(t *testing.T, source string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	extra := filepath.Join(dir, "extra.go")
	if err := os.WriteFile(extra, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("extra_for_compile_check.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{here: extra}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay="+file, ".").CombinedOutput()
	return string(out), err
}

func FuzzHookServe(f *testing.F) {
	for event := range hookEvents {
		f.Add(string(event), hookInputFile(f, event))
	}
	f.Add("PreToolUse", []byte(`{"tool_name":"Bash","tool_input":{}}`))
	f.Add("PreToolUse", []byte(`{"tool_name":"\ud800","tool_input":{"a":[}}`))
	f.Add("MoonRise", []byte(`{`))
	f.Fuzz(func(t *testing.T, event string, input []byte) {
		log := slog.New(slog.DiscardHandler)
		failing := Hook{Event: HookEvent(event), Func: func(context.Context, HookInput) (HookOutput, error) { return nil, errors.New("x") }}
		answer := failing.serve(t.Context(), log, bytes.Clone(input))
		if !json.Valid(answer) {
			t.Fatalf("answer %q is not JSON", answer)
		}
		if event == "PreToolUse" && !denyingAnswer(answer) {
			t.Fatalf("failed PreToolUse hook answers %s", answer)
		}
		// A hook that hands the model's input back must not be able to break the line.
		echoing := On("", func(_ context.Context, in *PreToolUseInput) (*PreToolUseOutput, error) {
			return &PreToolUseOutput{UpdatedInput: in.ToolInput, PermissionDecisionReason: in.ToolName}, nil
		})
		answer = echoing.serve(t.Context(), log, bytes.Clone(input))
		if !json.Valid(answer) || bytes.ContainsAny(answer, "\r\n") {
			t.Fatalf("answer %q is not one line of JSON", answer)
		}
	})
}

func BenchmarkHookServe(b *testing.B) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, hookInputFile(b, HookPreToolUse)); err != nil {
		b.Fatal(err)
	}
	cases := map[string]Hook{
		"NoOpinion": On("", func(context.Context, *PreToolUseInput) (*PreToolUseOutput, error) { return nil, nil }),
		"Deny":      On("", func(context.Context, *PreToolUseInput) (*PreToolUseOutput, error) { return DenyTool("no"), nil }),
	}
	log := slog.New(slog.DiscardHandler)
	for name, h := range cases {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(compact.Len()))
			for b.Loop() {
				h.serve(b.Context(), log, compact.Bytes())
			}
		})
	}
}
