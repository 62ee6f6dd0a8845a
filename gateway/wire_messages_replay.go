// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/internal/ident"
)

var messagesVariations = Variations{
	RequestHeaders: []string{
		"Anthropic-Beta", "Anthropic-Version", "X-App", "X-Claude-Code-Agent-Id", sessionHeader, "X-Stainless-Retry-Count",
	},
	ResponseHeaders: []string{"Request-Id", "X-Should-Retry"},
	Tidy:            tidyMessages,
	IDs:             idPatterns,
	Texts:           volatile,
	Renamed:         map[string]string{ident.FormerToolPrefix: ident.ToolPrefix},
}

const sessionHeader = "X-Claude-Code-Session-Id"

// idPatterns find ids that the CLI made up, in its texts for the model.
var idPatterns = []Pattern{
	{Hint: "agentId: ", Regexp: lazyRegexp(`\bagentId: ([A-Za-z0-9_-]{6,})`)},
	{Hint: "with ID: ", Regexp: lazyRegexp(`\bwith ID: ([A-Za-z0-9_-]{6,})`)},
	{Hint: "<task-id>", Regexp: lazyRegexp(`<task-id>([A-Za-z0-9_-]{6,})</task-id>`)},
	{Hint: "/tasks/", Regexp: lazyRegexp(`/tasks/([A-Za-z0-9_-]{6,})\.output`)},
	{Hint: "/drover-home-", Regexp: lazyRegexp(`/(drover-home-[A-Z2-7]{16})\b`)},   // the home of a cell
	{Hint: "/claude-agent-", Regexp: lazyRegexp(`/(claude-agent-[A-Z2-7]{16})\b`)}, // and in earlier versions
	{Hint: "/tool-results/", Regexp: lazyRegexp(`/tool-results/([A-Za-z0-9_-]{6,})\.(?:txt|json)`)},
}

// volatile is text of the CLI about the time and the machine.
var volatile = []Pattern{
	{Hint: "x-anthropic-billing-header", Regexp: lazyRegexp(`\Ax-anthropic-billing-header:[^\n]*`), Replace: "$${billing}"},
	{Hint: "oday's date", Regexp: lazyRegexp(`(?i)(today's date(?: is now| is|:) )\d{4}[-/]\d\d[-/]\d\d`), Replace: "${1}$${date}"},
	{Hint: "duration_ms", Regexp: lazyRegexp(`(duration_ms(?:>|: ))\d+`), Replace: "${1}$${duration}"},
	// The beginning of a long output, cut by length: how much of it is there depends on the length of folders.
	{Hint: "</persisted-output>", Regexp: lazyRegexp(`(?s)(Preview \(first [^)\n]*\):\n.{1000}).*?(\n\.\.\.\n</persisted-output>)`), Replace: "${1}$${cut}${2}"},
	{Hint: "OS Version: ", Regexp: lazyRegexp(`(?m)^( *(?:- )?OS Version: ).*$`), Replace: "${1}$${system}"},
}

// tidyMessages puts results and names of tools into an order, and removes the one field that has only the session.
func tidyMessages(body any, headers map[string]string) (session string) {
	orderResults(body)
	orderTools(body)
	session = headers[sessionHeader]
	if object, ok := body.(map[string]any); ok {
		if metadata, ok := object["metadata"].(map[string]any); ok {
			session = cmp.Or(sessionOf(metadata["user_id"]), session)
			delete(metadata, "user_id")
		}
	}
	return session
}

// orderResults puts results of tools that ran at the same time into the order of their ids: they come
// as the tools end. The mark for the cache is on whichever came last, so it goes.
func orderResults(doc any) {
	request, _ := doc.(map[string]any)
	messages, _ := request["messages"].([]any)
	for _, m := range messages {
		message, _ := m.(map[string]any)
		blocks, _ := message["content"].([]any)
		for len(blocks) > 0 {
			n := 0
			for n < len(blocks) && resultID(blocks[n]) != "" {
				n++
			}
			if n > 1 {
				orderBlocks(blocks[:n])
			}
			blocks = blocks[max(n, 1):]
		}
	}
}

func orderBlocks(results []any) {
	for _, r := range results {
		delete(r.(map[string]any), "cache_control")
	}
	slices.SortStableFunc(results, func(a, b any) int { return strings.Compare(resultID(a), resultID(b)) })
}

// orderTools sorts tools of MCP servers by their present names: in the request's list and in texts with a line for each.
func orderTools(doc any) {
	request, _ := doc.(map[string]any)
	tools, _ := request["tools"].([]any)
	name := func(tool any) string {
		t, _ := tool.(map[string]any)
		name, _ := t["name"].(string)
		return name
	}
	sortRuns(tools, name)
	mapStrings(doc, func(s string) string {
		if !strings.Contains(s, "\n"+mcpPrefix) {
			return s
		}
		lines := strings.Split(s, "\n")
		sortRuns(lines, func(line string) string { return line })
		return strings.Join(lines, "\n")
	})
}

const mcpPrefix = "mcp__"

// sortRuns sorts each run of neighbours that are named after tools of MCP servers.
func sortRuns[T any](all []T, name func(T) string) {
	isMCP := func(t T) bool { return strings.HasPrefix(name(t), mcpPrefix) }
	for len(all) > 0 {
		n := 0
		for n < len(all) && isMCP(all[n]) {
			n++
		}
		slices.SortStableFunc(all[:n], func(a, b T) int { return strings.Compare(name(a), name(b)) })
		all = all[max(n, 1):]
	}
}

// resultID is the id of the tool call whose result a block is; empty for any other block.
func resultID(block any) string {
	b, _ := block.(map[string]any)
	id, _ := b["tool_use_id"].(string)
	if b["type"] != "tool_result" {
		return ""
	}
	return id
}

func sessionOf(userID any) string {
	text, _ := userID.(string)
	var user struct {
		SessionID string `json:"session_id"`
	}
	_ = json.Unmarshal([]byte(text), &user) // on failure the id is empty
	return user.SessionID
}

// lazyRegexp returns a function that compiles an expression at its first call: most programs use few of them.
func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
