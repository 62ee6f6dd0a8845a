// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
)

func TestResultMessage_ErrChoosesTheText(t *testing.T) {
	for _, c := range []struct {
		name, line, want string
		is               error
		retry            bool
	}{
		{
			"errors come first", `{"type":"result","subtype":"error_max_turns","is_error":true,"errors":[" Reached maximum number of turns (2) ",""],"result":"r"}`,
			"Reached maximum number of turns (2)", ErrMaxTurns, false,
		},
		{"several errors", `{"type":"result","subtype":"error_during_execution","errors":["a","b"]}`, "a; b", nil, false},
		{
			"then the result", `{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"api_error_type":"overloaded_error","terminal_reason":"api_error","result":"API Error: 529 Overloaded"}`,
			"API Error: 529 Overloaded", ErrOverloaded, true,
		},
		{"then the subtype", `{"type":"result","subtype":"error_max_budget_usd","is_error":true}`, "error max budget usd", ErrMaxBudget, false},
		{"never the subtype success", `{"type":"result","subtype":"success","is_error":true,"api_error_status":429}`, "HTTP 429 Too Many Requests", ErrRateLimited, true},
		{
			"never an internal diagnostic", `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","errors":["[ede_diagnostic] result_type=user"]}`,
			"interrupted", ErrInterrupted, false,
		},
		{"no subtype at all", `{"type":"result"}`, "the turn failed without a reason", nil, false},
		{"refused credentials", `{"type":"result","subtype":"success","is_error":true,"api_error_status":403,"result":"Failed to authenticate"}`, "Failed to authenticate", ErrAuthentication, false},
		{"no credentials", `{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}`, "Not logged in", ErrAuthentication, false},
		{"no connection", `{"type":"result","subtype":"success","is_error":true,"api_error":"connection_failed","result":"API Error: Connection error."}`, "Connection error", nil, true},
		{"too long", `{"type":"result","subtype":"success","is_error":true,"terminal_reason":"prompt_too_long","result":"Prompt is too long"}`, "Prompt is too long", ErrPromptTooLong, false},
		{
			"did not start", `{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["Sandbox required but unavailable"],"startup_failure_reason":"sandbox_required_unavailable"}`,
			"install bubblewrap", ErrStartup, false,
		},
		{"bad output", `{"type":"result","subtype":"error_max_structured_output_retries","is_error":true}`, "structured output", ErrStructuredOutput, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustDecode[*ResultMessage](t, c.line)
			err := m.Err()
			if err == nil || !m.Failed() {
				t.Fatalf("Err = %v, Failed = %v; want a failure", err, m.Failed())
			}
			if !strings.Contains(advice.Text(err), c.want) || strings.Contains(advice.Text(err), "ede_diagnostic") {
				t.Errorf("error %q, want it to contain %q and no diagnostics", err, c.want)
			}
			var result *ResultError
			if !errors.As(err, &result) || result.Message != m || result.Retryable() != c.retry {
				t.Fatalf("got %#v, want a ResultError with Retryable %v", result, c.retry)
			}
			for _, reason := range []error{ErrInterrupted, ErrMaxTurns, ErrMaxBudget, ErrStructuredOutput, ErrPromptTooLong, ErrAuthentication, ErrRateLimited, ErrOverloaded, ErrStartup} {
				if got := errors.Is(err, reason); got != (reason == c.is) {
					t.Errorf("errors.Is(err, %v) = %v", reason, got)
				}
			}
		})
	}
}

func TestResultMessage_Success(t *testing.T) {
	m := mustDecode[*ResultMessage](t, `{"type":"result","subtype":"success","is_error":false,"result":"done"}`)
	if m.Failed() || m.Err() != nil {
		t.Errorf("Failed = %v, Err = %v; want success", m.Failed(), m.Err())
	}
}

func TestResultMessage_IsAnswer(t *testing.T) {
	for origin, want := range map[string]bool{
		`null`: true, `{"kind":"human"}`: true, `{"kind":"task-notification"}`: false, `{"kind":"peer"}`: false, `{}`: false,
	} {
		m := mustDecode[*ResultMessage](t, `{"type":"result","subtype":"success","origin":`+origin+`}`)
		if got := m.IsAnswer(); got != want {
			t.Errorf("origin %s: IsAnswer = %v, want %v", origin, got, want)
		}
	}
}

func TestCostTracker_Turns(t *testing.T) {
	result := func(cost string, tokens string) string {
		return `{"type":"result","subtype":"success","total_cost_usd":` + cost + `,"modelUsage":{"m":{"inputTokens":` + tokens + `,"costUSD":` + cost + `,"contextWindow":9}}}`
	}
	reset := `{"type":"conversation_reset"}`
	for _, c := range []struct {
		name  string
		lines []string
		turns []float64
		sum   float64
		input int
	}{
		{"running total", []string{result("1", "10"), result("1.5", "15"), result("1.5", "15")}, []float64{1, 0.5, 0}, 1.5, 15},
		{"reset that costs more at once", []string{result("1", "10"), reset, result("3", "20")}, []float64{1, 3}, 4, 30},
		{"reset, zero, turn", []string{result("1", "10"), reset, result("0", "0"), result("2", "7")}, []float64{1, 0, 2}, 3, 17},
		{"reset that was not reported", []string{result("2", "10"), result("0.5", "4")}, []float64{2, 0.5}, 2.5, 14},
		{"failed start", []string{result("2", "10"), `{"type":"result","subtype":"error_during_execution","is_error":true,"total_cost_usd":0}`, result("3", "11")}, []float64{2, 0, 1}, 3, 11},
		{"other messages", []string{result("1", "1"), `{"type":"keep_alive"}`, result("2", "2")}, []float64{1, 1}, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tracker CostTracker
			var turns []float64
			for _, line := range c.lines {
				if turn, ok := tracker.Observe(mustDecode[Message](t, line)); ok {
					turns = append(turns, turn.CostUSD)
				}
			}
			if len(turns) != len(c.turns) {
				t.Fatalf("turns %v, want %v", turns, c.turns)
			}
			for i := range turns {
				if math.Abs(turns[i]-c.turns[i]) > 1e-9 {
					t.Errorf("turns %v, want %v", turns, c.turns)
				}
			}
			sum := tracker.Sum()
			if math.Abs(sum.CostUSD-c.sum) > 1e-9 || sum.Models["m"].InputTokens != c.input {
				t.Errorf("sum %v, want %v dollars and %d tokens", sum, c.sum, c.input)
			}
		})
	}
}

func TestCostTracker_ResumedSession(t *testing.T) {
	for name, c := range map[string]struct {
		tracker CostTracker
		line    string
		want    float64
	}{
		"reported by the caller": {CostTracker{Before: Totals{CostUSD: 5}}, `{"type":"result","subtype":"success","total_cost_usd":6}`, 1},
		"reported by the CLI": {CostTracker{}, `{"type":"result","subtype":"success","total_cost_usd":6,"modelUsage":{"m":{"inputTokens":36,"costUSD":6}},
			"model_usage_since_last_result":{"m":{"inputTokens":12,"costUSD":1}}}`, 1},
		"interrupted at once":    {CostTracker{}, `{"type":"result","subtype":"error_during_execution","total_cost_usd":6,"model_usage_since_last_result":{}}`, 0},
		"old CLI begins at zero": {CostTracker{}, `{"type":"result","subtype":"success","total_cost_usd":1}`, 1},
	} {
		turn, _ := c.tracker.Observe(mustDecode[Message](t, c.line))
		if turn.CostUSD != c.want || c.tracker.Sum().CostUSD != c.want {
			t.Errorf("%s: first turn %v, sum %v; want %v", name, turn.CostUSD, c.tracker.Sum().CostUSD, c.want)
		}
	}
}
