// SPDX-License-Identifier: Apache-2.0

package script

import (
	"errors"
	"fmt"
	"slices"
)

// errInvalidRequest is wrapped by the reasons that a strict script gives.
var errInvalidRequest = errors.New("invalid request")

func (s Script) check(r *Request) error {
	if s.Strict {
		if err := checkRequest(r); err != nil {
			return fmt.Errorf("%w: %w", errInvalidRequest, err)
		}
	}
	if s.StrictRoles {
		if err := checkAlternation(r.Messages); err != nil {
			return fmt.Errorf("%w: %w", errInvalidRequest, err)
		}
	}
	return nil
}

func checkRequest(r *Request) error {
	switch {
	case r.Model == "":
		return errors.New("model: field required")
	case r.MaxTokens < 1:
		return errors.New("max_tokens: field required, at least 1")
	case len(r.Messages) == 0:
		return errors.New("messages: at least one message is required")
	case r.Messages[0].Role != "user":
		return errors.New("messages.0: the first message must use the user role")
	case r.Header.Get("Anthropic-Version") == "":
		return errors.New("anthropic-version: header is required")
	}
	if err := checkTools(r.Tools); err != nil {
		return err
	}
	for i, m := range r.Messages {
		if err := checkMessage(m); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	return checkToolPairs(r.Messages)
}

func checkTools(tools []Tool) error {
	seen := map[string]bool{}
	for i, t := range tools {
		if t.Name == "" {
			return fmt.Errorf("tools.%d.name: field required", i)
		}
		if seen[t.Name] {
			return fmt.Errorf("tools: tool names must be unique, %s is there twice", t.Name)
		}
		seen[t.Name] = true
		if own := t.Type == "" || t.Type == "custom"; own && len(t.InputSchema) == 0 {
			return fmt.Errorf("tools.%d.input_schema: field required for %s", i, t.Name)
		}
	}
	return nil
}

// partTypes lists the blocks that each role may send.
var partTypes = map[string][]string{
	"user": {"text", "image", "document", "tool_result", "search_result", "container_upload"},
	"assistant": {
		"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "fallback",
		"web_search_tool_result", "web_fetch_tool_result", "tool_search_tool_result", "mcp_tool_use",
		"mcp_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
		"text_editor_code_execution_tool_result", "compaction",
	},
	"system": {"text"},
}

func checkMessage(m Message) error {
	types, ok := partTypes[m.Role]
	if !ok {
		return fmt.Errorf("role: %q is not user, assistant or system", m.Role)
	}
	if len(m.Content) == 0 {
		return errors.New("content: must not be empty")
	}
	for i, p := range m.Content {
		if !slices.Contains(types, p.Type) {
			return fmt.Errorf("content.%d: a message of role %s cannot have a block of type %q", i, m.Role, p.Type)
		}
		if p.Type == "text" && p.Text == "" {
			return fmt.Errorf("content.%d: text blocks must not be empty", i)
		}
	}
	return nil
}

// checkToolPairs wants every tool_use answered by a tool_result in the next user message, and no other tool_result. Messages
// in a row of one role count as one, and system messages between count as none, as in the API.
func checkToolPairs(messages []Message) error {
	var open []string // ids of the last assistant message that have no result yet
	last := ""
	for i, m := range messages {
		switch m.Role {
		case "assistant":
			if last == "user" && len(open) > 0 {
				return unanswered(i, open)
			}
			open = append(open, toolUseIDs(m)...)
		case "user":
			var err error
			if open, err = closeToolUses(i, m, open); err != nil {
				return err
			}
		default:
			continue
		}
		last = m.Role
	}
	if len(open) > 0 {
		return unanswered(len(messages), open)
	}
	return nil
}

func unanswered(i int, ids []string) error {
	return fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks immediately after: %v", i-1, ids)
}

func toolUseIDs(m Message) []string {
	var ids []string
	for _, p := range m.Content {
		if p.Type == "tool_use" {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

func closeToolUses(i int, m Message, open []string) ([]string, error) {
	for j, p := range m.Content {
		if p.Type != "tool_result" {
			continue
		}
		at := slices.Index(open, p.ToolUseID)
		if at < 0 {
			return nil, fmt.Errorf("messages.%d.content.%d: unexpected tool_use_id %q: each tool_result must have a tool_use in the previous message", i, j, p.ToolUseID)
		}
		open = slices.Delete(slices.Clone(open), at, at+1)
	}
	return open, nil
}

func checkAlternation(messages []Message) error {
	last := ""
	for i, m := range messages {
		if m.Role == "system" {
			continue
		}
		if m.Role == last {
			return fmt.Errorf("messages.%d: roles must alternate, but this is the second %s message in a row", i, m.Role)
		}
		last = m.Role
	}
	return nil
}
