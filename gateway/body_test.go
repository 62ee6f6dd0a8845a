// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
)

func withField(field string) string { return `{"model":"claude-opus-4-5",` + field + `}` }

// Fields that change the price in a way that the table does not know are refused where a budget is in dollars.
func TestBody_UnpricedFieldsAreRefusedUnderADollarBudget(t *testing.T) {
	cases := map[string]bool{ // whether it passes
		`"speed":"fast"`: false, `"speed":"standard"`: true, `"speed":null`: true, `"Speed":"fast"`: false, `"sp\u0065ed":"fast"`: false, `"speed":"standard","speed":"fast"`: false,
		`"speed":{"x":1}`: false, `"service_tier":"priority"`: false, `"service_tier":"flex"`: false, `"service_tier":"standard_only"`: true, `"service_tier":"auto"`: true,
		`"inference_geo":"us"`: false, `"inference_geo":"global"`: true, `"tools":[{"type":"code_execution_20250825","name":"x"}]`: false,
		`"tools":[{"type":"advisor_20260301","name":"x"}]`: false, `"tools":[{"type":"web_search_20250305","name":"x"}]`: true, `"container":"c"`: false,
		`"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]`: true,
		`"messages":[{"role":"user","content":"\"speed\":\"fast\""}]`:                                                         true,
	}
	for field, passes := range cases {
		t.Run(field, func(t *testing.T) {
			for _, budget := range []guard.Budget{{MaxCostUSD: 1}, {MaxTotalTokens: 1000}} {
				var events recorder
				run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic), Trackers: []*guard.Tracker{guard.NewTracker(budget)}, Emit: events.emit})
				w := post(run, withField(field))
				if want := passes || budget.MaxCostUSD == 0; (w.Code == http.StatusOK) != want {
					t.Errorf("under %+v: got status %d: %s", budget, w.Code, w.Body)
				} else if refused := eventsOf[gateway.Refused](&events); !want && (w.Code != http.StatusForbidden || len(refused) != 1 || !strings.Contains(refused[0].Reason, "price is not known")) {
					t.Errorf("got status %d, %+v", w.Code, refused)
				}
			}
		})
	}
}

func TestBedrock_HeadersThatChangeThePriceAreRefused(t *testing.T) {
	for header, want := range map[string]int{
		"X-Amzn-Bedrock-Performanceconfig-Latency: optimized": 403, "X-Amzn-Bedrock-Performanceconfig-Latency: standard": 200, "X-Amzn-Bedrock-Service-Tier: priority": 403,
		"X_Amzn_Bedrock_Service_Tier: flex": 403, "X-Amzn-Bedrock-Guardrailidentifier: g": 403, "X-Amzn-Bedrock-Trace: ENABLED": 200,
	} {
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireBedrock), Trackers: []*guard.Tracker{guard.NewTracker(guard.Budget{MaxCostUSD: 1})}})
		req := httptest.NewRequest(http.MethodPost, "/"+run.Token()+"/model/claude-opus-4-5/invoke", strings.NewReader(`{}`))
		name, value, _ := strings.Cut(header, ": ")
		req.Header[name] = []string{value}
		w := httptest.NewRecorder()
		if run.ServeHTTP(w, req); w.Code != want {
			t.Errorf("%s: got status %d, want %d", header, w.Code, want)
		}
	}
}

// The API has a network. A run that has none does not get it by way of the API.
func TestRemote_NetworkUseByTheAPIIsRefused(t *testing.T) {
	block := func(b string) string { return fmt.Sprintf(`"messages":[{"role":"user","content":[%s]}]`, b) }
	image := `{"type":"image","source":{"type":"url","url":"https://%s/a.png?secret"}}`
	cases := []struct {
		name, field string
		none, given bool // whether it passes without anything, and with a host and searches
	}{
		{"an image of a host", block(fmt.Sprintf(image, "example.org")), false, true},
		{"an image of another host", block(fmt.Sprintf(image, "evil.example")), false, false},
		{"a host in other letters", block(fmt.Sprintf(image, "user@evil.example#example.org")), false, false},
		{"a document", block(`{"type":"document","source":{"url":"https://evil.example","type":"url"}}`), false, false},
		{"an image in a result", block(`{"type":"tool_result","tool_use_id":"1","content":[` + fmt.Sprintf(image, "evil.example") + `]}`), false, false},
		{"an image in a document", block(`{"type":"document","source":{"type":"content","content":[` + fmt.Sprintf(image, "evil.example") + `]}}`), false, false},
		{"content that is one block", `"messages":[{"content":` + fmt.Sprintf(image, "evil.example") + `,"role":"user"}]`, false, false},
		{"an image in the system prompt", `"system":[` + fmt.Sprintf(image, "evil.example") + `]`, false, false},
		{"keys with escapes", block(`{"type":"image","s\u006furce":{"\u0075rl":"https://evil.example"}}`), false, false},
		{"two sources", block(`{"type":"image","source":{"url":"https://evil.example"},"source":{"type":"base64"}}`), false, false},
		{"a file by its id", block(`{"type":"image","source":{"type":"file","file_id":"f"}}`), false, false},
		{"a file for a container", block(`{"type":"container_upload","file_id":"f"}`), false, false},
		{"servers of the API", `"mcp_servers":[{"type":"url","url":"https://evil.example"}]`, false, false},
		{"no servers", `"mcp_servers":[]`, true, true},
		{"a container", `"container":{"id":"c"}`, false, false},
		{"searches", `"tools":[{"type":"web_search_20250305","name":"web_search"}]`, false, true},
		{"newer searches", `"tools":[{"name":"Bash"},{"type":"web_search_20300101","name":"web_search"}]`, false, true},
		{"fetching", `"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]`, false, false},
		{"code", `"tools":[{"type":"code_execution_20250825","name":"x"}]`, false, false},
		{"tools of servers", `"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]`, false, false},
		{"an unknown type", `"tools":[{"type":"teleport_20300101","name":"x"}]`, false, false},
		{"tools of the agent", `"tools":[{"name":"a"},{"type":"custom","name":"b"},{"type":"bash_20250124"},{"type":"text_editor_20250728"},{"type":"tool_search_tool_regex_20251119"}]`, true, true},
		{"an image that is sent", block(`{"type":"image","source":{"type":"base64","data":"eA=="}}`), true, true},
		{"what a tool was called with", block(`{"type":"tool_use","id":"1","input":{"source":{"type":"url","url":"https://evil.example"},"file_id":"f"}}`), true, true},
		{"text", block(`{"type":"text","text":"{\"source\":{\"url\":\"https://evil.example\"}}"}`), true, true},
	}
	host := func(name string) bool { return name == "example.org" }
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			for remote, want := range map[*gateway.Remote]bool{nil: true, {}: tc.none, {Tools: []string{"web_search"}, Host: host}: tc.given} {
				run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic), Remote: remote})
				if w := post(run, withField(tc.field)); (w.Code == http.StatusOK) != want || !want && w.Code != http.StatusForbidden {
					t.Errorf("with %+v: got status %d, want it to pass: %t\n%s", remote, w.Code, want, w.Body)
				}
			}
		})
	}
}
