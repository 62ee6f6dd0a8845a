// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A messagesRequest is a request while its body is read.
type messagesRequest struct{ Request }

var errBody = errors.New(textBody)

// readMessagesRequest takes exactly spelled fields. A second model, or another spelling, is an error: upstreams may use it.
func readMessagesRequest(header http.Header, body []byte) (Request, error) {
	var a messagesRequest
	var s plainjson.Scanner
	s.Reset(body)
	if s.Kind() != plainjson.Object {
		return a.Request, errBody
	}
	s.Object()
	models, streams := 0, 0
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		switch string(key) {
		case "model":
			text, _, _ := s.Decode(nil)
			a.Model = string(text)
			models++
		case "fallbacks":
			a.Fallbacks = append(a.Fallbacks, modelsIn(&s)...)
		case "stream":
			a.Stream, _ = s.Bool()
			streams++
		case "output_config":
			a.Effort = wordIn(&s, "effort")
		case "thinking":
			a.Thinking = wordIn(&s, "type")
		case "max_tokens":
			most, _ := s.Float()
			a.MaxTokens = max(a.MaxTokens, int64(min(most, maxTokens))) // of several, whichever counts
		case "tools":
			if !s.Array() {
				continue
			}
			for s.Elem() {
				a.tool(&s)
			}
		default:
			if a.field(&s, string(key)) {
				continue
			}
			if bytes.EqualFold(key, []byte("model")) { // some read that, too
				models++
			}
			s.Skip()
		}
	}
	if s.End() != nil || models > 1 || models == 1 && a.Model == "" {
		return a.Request, errBody
	}
	a.Stream = a.Stream && streams == 1 // of several, the one that costs more if its answer is left
	a.Surcharges = append(a.Surcharges, bedrockSurcharges(header)...)
	return a.Request, nil
}

// wordIn is the string under a key of the object that comes next, or "".
func wordIn(s *plainjson.Scanner, name string) (word string) {
	if s.Kind() != plainjson.Object {
		s.Skip()
		return ""
	}
	s.Object()
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		if string(key) != name {
			s.Skip()
			continue
		}
		text, _, _ := s.Decode(nil)
		word = clip(string(text))
	}
	return word
}

// modelsIn are the models of the list of objects that comes next. Anything else is one model that is not known.
func modelsIn(s *plainjson.Scanner) (models []string) {
	if s.Kind() != plainjson.Array {
		s.Skip()
		return []string{""}
	}
	s.Array()
	for s.Elem() {
		models = append(models, wordIn(s, "model"))
	}
	return models
}

// messagesInput has the price of the cache that a request asks for.
func messagesInput(body []byte, tokens int64) Tokens {
	switch {
	case bytes.Contains(body, []byte(`"1h"`)):
		return Tokens{CacheWrite1h: tokens}
	case bytes.Contains(body, []byte(`cache_control`)):
		return Tokens{CacheWrite5m: tokens}
	}
	return Tokens{Input: tokens}
}

// clientTools are the tools with a type of their own that the agent runs, or that stay within the API.
var clientTools = []string{"custom", "bash", "text_editor", "computer", "memory", "tool_search_tool_regex", "tool_search_tool_bm25"}

func undated(kind string) string {
	if at := strings.LastIndexByte(kind, '_'); at > 0 && len(kind)-at == 9 && strings.Trim(kind[at+1:], "0123456789") == "" {
		return kind[:at]
	}
	return kind
}

// pricedTools are the tools that the API runs and whose price is counted, or zero.
var pricedTools = []string{"web_search", "web_fetch"}

// surchargeFields change the price of a call unless they have one of plainValues.
var surchargeFields = []string{"speed", "service_tier", "inference_geo", "performance_config", "performanceconfig", "priority"}

var plainValues = []string{"", "standard", "standard_only", "auto", "default", "global"}

// field takes a field of the body that may cost more or reach out. It reports whether it knows, and so consumed, the field.
func (a *messagesRequest) field(s *plainjson.Scanner, key string) bool {
	switch key = strings.ToLower(key); {
	case slices.Contains(surchargeFields, key):
		raw := strings.TrimSpace(string(s.Raw()))
		if raw != "null" && (!strings.HasPrefix(raw, `"`) || !slices.Contains(plainValues, strings.Trim(raw, `"`))) {
			a.Surcharges = append(a.Surcharges, fmt.Sprintf("%s: %s", key, clip(raw)))
		}
	case key == "mcp_servers" || key == "container":
		if raw := strings.Join(strings.Fields(string(s.Raw())), ""); raw != "null" && raw != "[]" {
			a.Remote = append(a.Remote, RemoteUse{What: key})
		}
	case key == "system":
		a.blocks(s)
	case key == "messages":
		a.messages(s)
	default:
		return false
	}
	return true
}

// messages looks in the conversation for what the API would fetch, and for results after the model's last answer.
func (a *messagesRequest) messages(s *plainjson.Scanner) {
	if !s.Array() {
		return
	}
	for s.Elem() {
		if !s.Object() {
			continue
		}
		before, role := a.Result, ""
		a.Result = ""
		for key, ok := s.Field(); ok; key, ok = s.Field() {
			switch string(key) {
			case "role":
				text, _, _ := s.Decode(nil)
				role = string(text)
			case "content":
				a.blocks(s)
			default:
				s.Skip()
			}
		}
		switch {
		case role == "assistant":
			a.Result = ""
		case a.Result == "":
			a.Result = before
		}
	}
}

func (a *messagesRequest) blocks(s *plainjson.Scanner) {
	switch s.Kind() {
	case plainjson.Array:
		s.Array()
		for s.Elem() {
			a.block(s)
		}
	case plainjson.Object:
		a.block(s)
	default:
		s.Skip()
	}
}

// block looks at one block. The input of a tool call is the agent's own, and is not checked.
func (a *messagesRequest) block(s *plainjson.Scanner) {
	if !s.Object() {
		return
	}
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		switch string(key) {
		case "source":
			a.source(s)
		case "content":
			a.blocks(s)
		case "file_id":
			s.Skip()
			a.Remote = append(a.Remote, RemoteUse{What: "a file of the API by its id"})
		case "tool_use_id":
			text, _, _ := s.Decode(nil)
			a.Result = string(text)
		default:
			s.Skip()
		}
	}
}

func (a *messagesRequest) source(s *plainjson.Scanner) {
	if !s.Object() {
		return
	}
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		switch string(key) {
		case "content":
			a.blocks(s)
		case "url":
			text, _, _ := s.Decode(nil)
			a.Remote = append(a.Remote, RemoteUse{URL: cmp.Or(string(text), "?"), What: "a source that the API reads from a URL", Priced: true})
		case "file_id":
			s.Skip()
			a.Remote = append(a.Remote, RemoteUse{What: "a file of the API by its id"})
		default:
			s.Skip()
		}
	}
}

func (a *messagesRequest) tool(s *plainjson.Scanner) {
	a.Tools++
	if s.Kind() != plainjson.Object {
		s.Skip()
		return
	}
	s.Object()
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		if string(key) != "type" {
			s.Skip()
			continue
		}
		text, _, _ := s.Decode(nil) // of several, whichever counts
		if kind := clip(string(text)); kind != "" && !slices.Contains(clientTools, undated(kind)) {
			tool := undated(kind)
			a.Remote = append(a.Remote, RemoteUse{
				Tool: tool, What: fmt.Sprintf("the tool %q, which the API runs", kind), Priced: slices.Contains(pricedTools, tool),
			})
		}
	}
}
