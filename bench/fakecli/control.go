// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/drover-agents/drover/bench/internal/corpus"
)

// initializeReply is what hosts read of the answer to their handshake.
const initializeReply = `{"commands":[],"agents":[],"output_style":"default","available_output_styles":["default"],"models":[],"account":{},"pid":1,"hooks_applied":true,"hook_on_failure_supported":true,"claude_code_version":"` + corpus.Version + `"}`

// startDelay replaces the start of the CLI, which takes far longer. One of the clients
// loses an answer that comes at once; no measurement begins before it.
const startDelay = 10 * time.Millisecond

func (s *session) control(id string, body json.RawMessage) {
	var request struct {
		Subtype       string
		Hooks         map[string][]struct{ HookCallbackIDs []string }
		SDKMCPServers []string
	}
	if err := json.Unmarshal(body, &request); err != nil {
		fmt.Fprintf(os.Stderr, "fakecli: a request cannot be read: %v\n", err)
		os.Exit(1)
	}
	reply := "{}"
	switch request.Subtype {
	case "initialize":
		s.dieAt("initialize")
		for _, matcher := range request.Hooks["PreToolUse"] {
			s.callback = matcher.HookCallbackIDs[0]
		}
		if len(request.SDKMCPServers) > 0 {
			s.servers = request.SDKMCPServers
		}
		reply = initializeReply
		time.Sleep(startDelay)
	case "interrupt":
		reply = `{"still_queued":[]}`
	case "mcp_status":
		reply = `{"mcpServers":[]}`
	}
	quoted, _ := json.Marshal(id) // a string always encodes
	s.write(fmt.Appendf(nil, `{"type":"control_response","response":{"subtype":"success","request_id":%s,"response":%s}}`+"\n", quoted, reply))
	if request.Subtype == "end_session" {
		os.Exit(0)
	}
}
