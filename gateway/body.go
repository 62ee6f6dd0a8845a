// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/jsonscan"
)

// Remote is what a model call may have the API reach for the agent: the API has a network, whatever the agent has.
type Remote struct {
	// Tools are the tools that the API runs which may be offered, without the date in their type: "web_search".
	Tools []string
	// Host reports whether images and documents may be read from a host. Nil means from none.
	Host func(host string) bool
}

// A remoteUse is something that the API would reach for.
type remoteUse struct {
	tool string // the type of a tool that the API runs
	url  string // of an image or a document
	what string // anything else
}

func (u remoteUse) String() string {
	switch {
	case u.tool != "":
		return fmt.Sprintf("the tool %q, which the API runs", clip(u.tool))
	case u.url != "":
		return "a source that the API reads from a URL"
	}
	return u.what
}

// permits reports whether a run that was given r may use u.
func (r *Remote) permits(u remoteUse) bool {
	switch {
	case u.tool != "":
		return slices.Contains(r.Tools, undated(u.tool))
	case u.url != "" && r.Host != nil:
		at, err := url.Parse(u.url)
		return err == nil && r.Host(at.Hostname())
	}
	return false
}

// clientTools are the tools with a type of their own that the agent runs, or that stay within the API.
var clientTools = []string{"custom", "bash", "text_editor", "computer", "memory", "tool_search_tool_regex", "tool_search_tool_bm25"}

// undated is the type of a tool without its date.
func undated(kind string) string {
	if at := strings.LastIndexByte(kind, '_'); at > 0 && len(kind)-at == 9 && strings.Trim(kind[at+1:], "0123456789") == "" {
		return kind[:at]
	}
	return kind
}

// pricedTools are the tools that the API runs and whose price is counted, or is nothing.
var pricedTools = []string{"web_search", "web_fetch"}

// checkRemote refuses what the API would reach for without the run having been given it.
func (r *Run) checkRemote(a *asked) error {
	if r.o.Remote == nil {
		return nil
	}
	for _, use := range a.remote {
		if !r.o.Remote.permits(use) {
			return fmt.Errorf("the request has %s, and the run was not given that", use)
		}
	}
	return nil
}

// checkPrice refuses what changes the price in a way that the table does not know, where a budget is in dollars.
func (r *Run) checkPrice(a *asked, header map[string][]string) error {
	if !slices.ContainsFunc(r.o.Trackers, func(t *guard.Tracker) bool { return t.Budget().MaxCostUSD != 0 }) {
		return nil
	}
	for _, field := range a.surcharges {
		return fmt.Errorf("the request has %s, whose price is not known, so that a budget in dollars cannot be kept", field)
	}
	for _, use := range a.remote {
		if use.tool != "" && !slices.Contains(pricedTools, undated(use.tool)) || use.what != "" {
			return fmt.Errorf("the request has %s, whose price is not known, so that a budget in dollars cannot be kept", use)
		}
	}
	for name, values := range header {
		for _, word := range []string{"latency", "service-tier", "guardrail"} {
			if folded := fold(name); strings.HasPrefix(folded, "x-amzn-bedrock-") && strings.Contains(folded, word) && !slices.Contains(plainValues, strings.Join(values, ",")) {
				return fmt.Errorf("the request has the header %s, whose price is not known, so that a budget in dollars cannot be kept", clip(name))
			}
		}
	}
	return nil
}

// surchargeFields change the price of a call unless they have one of plainValues.
var surchargeFields = []string{"speed", "service_tier", "inference_geo", "performance_config", "performanceconfig", "priority"}

var plainValues = []string{"", "standard", "standard_only", "auto", "default", "global"}

// field takes a field of the body that may cost more, or reach out. It reports whether it knows the field, which
// it has consumed then.
func (a *asked) field(s *jsonscan.Scanner, key string) bool {
	switch key = strings.ToLower(key); {
	case slices.Contains(surchargeFields, key):
		raw := strings.TrimSpace(string(s.Raw()))
		if raw != "null" && (!strings.HasPrefix(raw, `"`) || !slices.Contains(plainValues, strings.Trim(raw, `"`))) {
			a.surcharges = append(a.surcharges, fmt.Sprintf("%s: %s", key, clip(raw)))
		}
	case key == "mcp_servers" || key == "container":
		if raw := strings.Join(strings.Fields(string(s.Raw())), ""); raw != "null" && raw != "[]" {
			a.remote = append(a.remote, remoteUse{what: key})
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

// messages looks at the conversation: at what the API would fetch, and at the results that came after the
// model's last answer.
func (a *asked) messages(s *jsonscan.Scanner) {
	if !s.Array() {
		return
	}
	for s.Elem() {
		if !s.Object() {
			continue
		}
		before, role := a.result, ""
		a.result = ""
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
			a.result = ""
		case a.result == "":
			a.result = before
		}
	}
}

// blocks looks at the blocks of a message, or of what a block contains.
func (a *asked) blocks(s *jsonscan.Scanner) {
	switch s.Kind() {
	case jsonscan.Array:
		s.Array()
		for s.Elem() {
			a.block(s)
		}
	case jsonscan.Object:
		a.block(s)
	default:
		s.Skip()
	}
}

// block looks at one block. What a tool was called with is the agent's own, and is not looked at.
func (a *asked) block(s *jsonscan.Scanner) {
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
			a.remote = append(a.remote, remoteUse{what: "a file of the API by its id"})
		case "tool_use_id":
			text, _, _ := s.Decode(nil)
			a.result = string(text)
		default:
			s.Skip()
		}
	}
}

// source looks at where an image or a document comes from.
func (a *asked) source(s *jsonscan.Scanner) {
	if !s.Object() {
		return
	}
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		switch string(key) {
		case "content":
			a.blocks(s)
		case "url":
			text, _, _ := s.Decode(nil)
			a.remote = append(a.remote, remoteUse{url: cmp.Or(string(text), "?")})
		case "file_id":
			s.Skip()
			a.remote = append(a.remote, remoteUse{what: "a file of the API by its id"})
		default:
			s.Skip()
		}
	}
}

// tool looks at a tool that is offered.
func (a *asked) tool(s *jsonscan.Scanner) {
	a.Tools++
	if s.Kind() != jsonscan.Object {
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
			a.remote = append(a.remote, remoteUse{tool: kind})
		}
	}
}
