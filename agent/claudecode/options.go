// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/tool"
)

func refusal(field, format string, args ...any) error {
	return &requestError{field, fmt.Errorf(format, args...)}
}

// A requestError is about a field of a request whose value cannot be honoured.
type requestError struct {
	field string
	cause error
}

func (e *requestError) Error() string {
	return "claudecode: Request." + e.field + ": " + e.cause.Error()
}
func (e *requestError) Unwrap() error { return e.cause }

// overlay lays a request over options, which are a copy of the base: whatever they point to belongs to
// other runs too and is replaced, never changed.
func overlay(o *claude.Options, req agent.Request) error {
	o.Dir = cmp.Or(req.Dir, o.Dir)
	o.Model = cmp.Or(req.Model, o.Model)
	o.MaxTurns = cmp.Or(req.MaxTurns, o.MaxTurns)
	if b := req.Budget; b != nil {
		if err := b.Validate(); err != nil {
			return refusal("Budget", "%w", err)
		}
		if b.MaxCostUSD != 0 {
			o.MaxBudgetUSD = new(b.MaxCostUSD)
		}
	}
	if req.OutputSchema != nil {
		o.OutputSchema = req.OutputSchema
	}
	if req.TraceParent != "" { // the state belongs to it
		o.TraceParent, o.TraceState = req.TraceParent, req.TraceState
	}
	o.PartialMessages = o.PartialMessages || req.PartialText
	return errors.Join(overlaySystemPrompt(o, req), overlayServers(o, req.Servers), overlayTools(o, req), overlayEffort(o, req.Effort))
}

func overlayServers(o *claude.Options, servers map[string]agent.Server) error {
	all := maps.Clone(o.MCPServers)
	var errs []error
	for name, s := range servers {
		switch _, taken := all[name]; {
		case taken:
			errs = append(errs, advice.Wrap(refusal("Servers", "the adapter has a server %q of its own", name), "choose another key"))
		case (len(s.Command) == 0) == (s.URL == ""):
			errs = append(errs, advice.Wrap(refusal("Servers", "%q has neither a command nor a URL, or both", name), "give one of them"))
		case s.URL != "":
			set(&all, name, claude.MCPServer(claude.MCPHTTP{URL: s.URL, Headers: s.Headers, Timeout: s.Timeout}))
		default:
			set(&all, name, claude.MCPServer(claude.MCPStdio{Command: s.Command[0], Args: s.Command[1:], Env: s.Env, Timeout: s.Timeout}))
		}
	}
	o.MCPServers = all
	return errors.Join(errs...)
}

// overlaySystemPrompt sets the prompt of the request, else of the base, else the CLI's own, and what is added to it.
func overlaySystemPrompt(o *claude.Options, req agent.Request) error {
	switch {
	case req.SystemPrompt != "":
		o.SystemPrompt = claude.SystemText(req.SystemPrompt)
	case o.SystemPrompt == nil:
		o.SystemPrompt = claude.PresetPrompt{}
	}
	if req.AppendSystemPrompt == "" {
		return nil
	}
	more, err := appended(o.SystemPrompt, req.AppendSystemPrompt)
	o.SystemPrompt = more
	return err
}

func appended(to claude.SystemPrompt, text string) (claude.SystemPrompt, error) {
	switch p := to.(type) {
	case claude.PresetPrompt:
		p.Append = paragraphs(p.Append, text)
		return p, nil
	case *claude.PresetPrompt:
		return appended(*p, text)
	case claude.TextPrompt:
		p.Blocks = append(slices.Clone(p.Blocks), text)
		if len(p.Blocks) == 2 { // one block stays one
			p.Blocks = []string{paragraphs(p.Blocks...)}
		}
		return p, nil
	case *claude.TextPrompt:
		return appended(*p, text)
	}
	return to, advice.Wrap(refusal("AppendSystemPrompt", "nothing can be added to the file that is the base's system prompt"),
		"read the file and pass it as claude.SystemText")
}

func paragraphs(texts ...string) string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	return strings.Join(texts, "\n\n")
}

// efforts are the words for how hard the model works, and what the CLI calls them.
var efforts = map[string]claude.Effort{
	"minimal": claude.EffortLow, "low": claude.EffortLow, "medium": claude.EffortMedium, "high": claude.EffortHigh,
	"xhigh": claude.EffortXHigh, "max": claude.EffortMax, ultracode: claude.EffortXHigh,
}

// ultracode is the highest effort with a setting, of the same name, by which the model divides work among many subagents.
const ultracode = "ultracode"

// The words that are not efforts of the CLI: one switches thinking off, which newer models refuse, the other leaves
// everything to the CLI.
const (
	effortOff     = "off"
	effortDefault = "default"
)

// overlayEffort sets the effort. The setting is part of it: a file of the user may switch it on, so
// every other word switches it off.
func overlayEffort(o *claude.Options, word string) error {
	if word == "" {
		return nil
	}
	effort, known := efforts[word]
	switch {
	case word == effortOff:
		o.Thinking = &claude.Thinking{Disabled: true}
	case word == effortDefault:
		o.Thinking = nil
	case !known:
		return refusal("Effort", "%q is not one of minimal, low, medium, high, xhigh, max, ultracode, off, default", word)
	}
	o.Effort = effort
	if o.SettingsFile != "" {
		if word == ultracode {
			return advice.Wrap(refusal("Effort", "ultracode needs a setting, which cannot be added to a SettingsFile"),
				"read the file and pass it as Settings")
		}
		return nil
	}
	settings, err := withSetting(o.Settings, ultracode, word == ultracode)
	if err != nil {
		return refusal("Effort", "Settings of the base: %w", err)
	}
	o.Settings = settings
	return nil
}

func withSetting(settings json.RawMessage, key string, value any) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &all); err != nil {
			return nil, fmt.Errorf("not a JSON object: %w", err)
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if all == nil { // it was null
		all = map[string]json.RawMessage{}
	}
	all[key] = raw
	return json.Marshal(all)
}

// overlayTools sets which tools there are. A list is a boundary: with it, no MCP server counts that the
// options do not name, and an empty one leaves none, not even tools of settings files.
//
// Without a host the list also sets what runs without a question, and so do tools of this program. With
// a host that would be a way around it.
func overlayTools(o *claude.Options, req agent.Request) error {
	own, allowed := toolsOf(req), agent.ListedTools(req, catalogue.Tools())
	var taken []string
	for _, name := range o.DisallowedTools {
		taken = append(taken, own.present(name))
	}
	o.DisallowedTools = slices.Concat(taken, own.full(req.DisallowedTools))
	if err := checkServers(o, req); err != nil {
		return err
	}
	if req.Tools == nil {
		if req.Host == nil {
			o.AllowedTools = slices.Concat(o.AllowedTools, own.all(), skillRule(req.Skills))
		}
		return nil
	}
	o.Tools, o.AllowedTools, o.StrictMCP = own.builtin(allowed), nil, true
	if req.Host == nil {
		o.AllowedTools = own.full(allowed)
	}
	if len(req.Tools) == 0 {
		o.SettingSources, o.MCPServers, o.MCPConfig = []string{}, nil, ""
		return nil
	}
	return boundServers(o, own.full(allowed))
}

// checkServers refuses names of tools of MCP servers that there are not. Settings files, files of servers and plugins may have
// servers that are not known here.
func checkServers(o *claude.Options, req agent.Request) error {
	if o.MCPConfig != "" || len(o.Plugins) > 0 {
		return nil
	}
	known := req.KnownNames(nil, req.Registry)
	known.Servers = append(slices.Collect(maps.Keys(o.MCPServers)), tool.DefaultServerName)
	if req.Tools != nil {
		if err := known.Check(req.Tools...); err != nil {
			return refusal("Tools", "%w", err)
		}
	}
	if req.Tools != nil || o.StrictMCP {
		if err := known.Check(req.DisallowedTools...); err != nil {
			return refusal("DisallowedTools", "%w", err)
		}
	}
	return nil
}

// ownTools are the tools of this program, which lists may name with or without their server.
type ownTools struct {
	registry *tool.Registry
	server   string
}

func toolsOf(req agent.Request) ownTools {
	return ownTools{req.Registry, cmp.Or(req.ToolServer, tool.DefaultServerName)}
}

// prefix begins the names of the tools, and names all of them.
func (t ownTools) prefix() string { return tool.NewMCPName(t.server, "").String() }

// all are the names that mean all of them.
func (t ownTools) all() []string {
	if t.registry == nil {
		return nil
	}
	return []string{t.prefix()}
}

// called is the name of one of them, as the CLI knows it.
func (t ownTools) called(name string) string {
	return tool.NewMCPName(t.server, name).String()
}

func (t ownTools) has(name string) bool {
	if t.registry == nil {
		return false
	}
	_, there := t.registry.Lookup(name)
	return there
}

// present is the name that a tool has now, where it may be one of ours under the name that it had in earlier versions.
func (t ownTools) present(name string) string {
	if t.registry == nil || t.server != tool.DefaultServerName {
		return name
	}
	return ident.PresentTool(name)
}

// full are the names as the CLI knows them.
func (t ownTools) full(names []string) []string {
	var all []string
	for _, name := range names {
		if n, isMCP := tool.ParseMCPName(t.present(name)); isMCP {
			name = tool.NewMCPName(n.Server, n.Tool).String()
		} else if t.has(name) {
			name = t.called(name)
		}
		all = append(all, name)
	}
	return all
}

// builtin are the tools of the CLI among those named, each once and without arguments.
func (t ownTools) builtin(names []string) []string {
	list := []string{}
	for _, name := range names {
		base, _, _ := strings.Cut(strings.TrimSpace(name), "(")
		if !t.has(name) && !strings.HasPrefix(base, "mcp__") && !slices.Contains(list, base) {
			list = append(list, base)
		}
	}
	return list
}

// within reports which of our tools are within the lists of a request. Tools may be added during the run:
// a list of what there is has to name those in full.
func (t ownTools) within(req agent.Request) func(*tool.Tool) bool {
	allowed := serverTools(t.full(req.Tools))
	taken := serverTools(t.full(req.DisallowedTools))
	return func(own *tool.Tool) bool {
		full := t.called(own.Name)
		if slices.Contains(req.DisallowedTools, own.Name) || taken.has(full) {
			return false
		}
		return req.Tools == nil || allowed.has(full)
	}
}

const toolServerVersion = "1.0.0"

// serveTools serves the tools of the request. The returned function must be called after the run.
func serveTools(o *claude.Options, req agent.Request, failed func(event.ToolResult)) (release func(), err error) {
	if req.Registry == nil || req.Tools != nil && len(req.Tools) == 0 {
		return func() {}, nil
	}
	own := toolsOf(req)
	if _, taken := o.MCPServers[own.server]; taken {
		return nil, refusal("Registry", "the base has an MCP server %q already; give that one another name", own.server)
	}
	server, err := NewSDKServer(req.Registry, &SDKServerOptions{
		SDKToolOptions: SDKToolOptions{Only: own.within(req), AlwaysLoad: true, FormatResult: func(r tool.Result) claude.ToolResult {
			if !r.OK() {
				failed(r.Event())
			}
			return FormatResult(r)
		}},
		Name: own.server, Version: toolServerVersion, Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("claudecode: Request.Registry: %w", err)
	}
	o.MCPServers = maps.Clone(o.MCPServers)
	set(&o.MCPServers, own.server, claude.MCPServer(server.Server()))
	return server.Close, nil
}
