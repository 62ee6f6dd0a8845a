// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-agents/drover/gateway"
)

// ask is a body with tools and messages.
func askBody(messages ...string) string {
	return `{"model":"claude-opus-4-5","stream":true,"tools":[{"name":"Bash","input_schema":{}}],"messages":[` + strings.Join(messages, ",") + `]}`
}

func userText(text string) string { return `{"role":"user","content":"` + text + `"}` }

// step is an answer that calls a tool, the result, and what the CLI adds after it.
func step(id string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"input":{"tool_use_id":"x"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":%q}]},{"role":"system","content":"reminder"}`, id, id)
}

func TestTurns_MainAndSideCalls(t *testing.T) {
	first, second, third, fourth := askBody(userText("go")), askBody(userText("go"), step("1")), askBody(userText("go"), step("1"), step("2")), askBody(userText("go"), step("1"), step("2"), step("3"))
	message := askBody(userText("go"), step("1"), `{"role":"assistant","content":"done"},`+userText("the agent in the background has ended"))
	many := func(n int, call [2]string) (all [][2]string) {
		for range n {
			all = append(all, call)
		}
		return all
	}
	join := func(lists ...[][2]string) (all [][2]string) {
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	main := func(bodies ...string) (all [][2]string) {
		for _, body := range bodies {
			all = append(all, [2]string{"", body})
		}
		return all
	}
	cases := []struct {
		name  string
		calls [][2]string // the subagent and the body
		want  int         // how many pass
		limit string
	}{
		{"as many as allowed", main(first, second, third), 3, ""},
		{"one more turn", main(first, second, third, fourth), 3, "MaxTurns"},
		{"turns tried again", join(main(first, first, second, second, second), main(third, third)), 7, ""},
		{"subagents", join(main(first), many(30, [2]string{"a", first}), main(second, third)), 33, ""},
		{"too many subagents", join(main(first), many(31, [2]string{"a", first})), 31, "SideCallsPerTurn"},
		{"forged calls of the main conversation", join(main(first, second), many(42, [2]string{"", askBody(step("1"))})), 32, "SideCallsPerTurn"},
		{"forged calls without tools", many(42, [2]string{"", question}), 30, "SideCallsPerTurn"},
		{"a message in between", join(main(first, second, message, askBody(step("4")), askBody(step("5")), askBody(step("6")))), 6, ""},
		{"many turns after a message in between", join(main(first, message), many(42, [2]string{"", message})), 31, "SideCallsPerTurn"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var events recorder
			run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic), MaxTurns: 3, Emit: events.emit})
			passed := 0
			for _, call := range tc.calls {
				req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(call[1]))
				req.Header.Set("X-Api-Key", run.Token())
				if call[0] != "" {
					req.Header.Set("X-Claude-Code-Agent-Id", call[0])
				}
				w := httptest.NewRecorder()
				run.ServeHTTP(w, req)
				if w.Code == http.StatusOK {
					passed++
				} else if w.Code != http.StatusPaymentRequired {
					t.Fatalf("got status %d: %s", w.Code, w.Body)
				}
			}
			if passed != tc.want {
				t.Errorf("%d calls passed, want %d", passed, tc.want)
			}
			var turns *gateway.TurnsError
			if err := run.Stopped(); errors.As(err, &turns) != (tc.limit != "") || turns != nil && (turns.Limit != tc.limit || !errors.Is(err, gateway.ErrMaxTurns)) {
				t.Errorf("the run was ended by %v, want %q", err, tc.limit)
			}
		})
	}
}

func TestTurns_EachPromptCountsFromZero(t *testing.T) {
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic), MaxTurns: 1, SideCallsPerTurn: 2})
	for n := range 5 {
		run.BeginPrompt()
		for range 3 { // one of the main conversation, two tried again
			if w := post(run, askBody(step(fmt.Sprint(n)))); w.Code != http.StatusOK {
				t.Fatalf("prompt %d: got status %d: %s", n, w.Code, w.Body)
			}
		}
	}
	if w := post(run, askBody(step("4"))); w.Code != http.StatusPaymentRequired {
		t.Errorf("one more: got status %d", w.Code)
	}
}
