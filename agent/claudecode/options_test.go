// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

var allowAll = tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision {
	return event.Decision{Verdict: event.Allow}
})

func desk(t testing.TB) *tool.Registry {
	t.Helper()
	handler := func(context.Context, struct{}) (string, error) { return "yes", nil }
	return tool.MustRegistry(nil, tool.Must("look", "Looks.", handler, tool.ReadOnly), tool.Must("save", "Saves.", handler, tool.Mutates))
}

// optionsOf are the options that a request makes of a base.
func optionsOf(t testing.TB, base *claude.Options, req agent.Request) claude.Options {
	t.Helper()
	if req.Prompt == "" {
		req.Prompt = "go"
	}
	r, err := New(base).newRun(t.Context(), req)
	if err != nil {
		t.Fatalf("newRun: %v", err)
	}
	r.release()
	return r.opts
}

// changed names the fields in which options differ.
func changed(a, b claude.Options) []string {
	var names []string
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			names = append(names, x.Type().Field(i).Name)
		}
	}
	return names
}

// named is a skill that has nothing but a name.
type named string

func (n named) Name() string         { return string(n) }
func (named) WriteIn(*os.Root) error { return nil }

func quiet(context.Context, agent.Submission) (string, error) { return "", nil }

// A new field of Request must be listed here with its mapping or refusal.
func TestCLAUDE006_EveryFieldOfARequestIsMappedOrRefused(t *testing.T) {
	place, err := workspace.Open(t.Context(), &workspace.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = place.Close() }()
	fields := map[string]struct {
		value   any
		changes string // options that become others, or the beginning of the error
	}{
		"Prompt":          {"another", "prompt"},
		"Dir":             {t.TempDir(), "Dir"},
		"Workspace":       {place, "Hooks NoBackgroundTasks Settings AddDirs"},
		"Model":           {"haiku", "Model"},
		"SystemPrompt":    {"Be brief.", "SystemPrompt"},
		"Effort":          {"high", "Effort Settings"},
		"MaxTurns":        {3, "MaxTurns"},
		"Budget":          {&guard.Budget{MaxCostUSD: 0.5}, "MaxBudgetUSD"},
		"Resume":          {"token", "Resume"},
		"Fork":            {true, "Fork SessionID"},
		"Fresh":           {true, "Resume SessionID"},
		"Tools":           {[]string{"Read"}, "Tools AllowedTools StrictMCP"},
		"DisallowedTools": {[]string{"Bash"}, "DisallowedTools"},
		"UnknownTools":    {[]string{"Frob"}, ""}, // names of lists
		"Registry":        {desk(t), "AllowedTools MCPServers"},
		"Permissions":     {&gate.Permissions{}, "claudecode: the request has Permissions"},
		"Host":            {allowAll, "CanUseTool Hooks Settings"},
		"OutputSchema":    {json.RawMessage(`{"type":"object"}`), "OutputSchema"},
		"PartialText":     {true, "PartialMessages"},

		"AppendSystemPrompt": {"Be kind.", "SystemPrompt"},
		"ToolServer":         {"desk", ""}, // of no tools
		"Servers":            {map[string]agent.Server{"web": {URL: "http://127.0.0.1:1"}}, "MCPServers"},
		"Skills":             {[]agent.Skill{named("greet")}, "AllowedTools"},
		"Hooks":              {&agent.Hooks{Submitted: quiet}, "Hooks Settings"},
		"SideCallsPerTurn":   {3, ""},                                                  // the gateway counts
		"Ledger":             {agent.NewLedger(nil), ""},                               // begun with the run
		"MaxRefusals":        {3, ""},                                                  // of no hooks
		"Trackers":           {[]*guard.Tracker{guard.NewTracker(guard.Budget{})}, ""}, // the gateway counts
		"RunID":              {"run-1", ""},                                            // to the gateway
		"LastSeq":            {int64(7), ""},                                           // the Runner numbers
		"TraceParent":        {"00-1-1-01", "TraceParent"},
		"TraceState":         {"a=1", ""},                         // nothing without a parent
		"Transcript":         {func(agent.TranscriptLine) {}, ""}, // read beside the CLI
	}
	base := &claude.Options{Resume: "the base's"}
	before := optionsOf(t, base, agent.Request{})
	for _, structField := range reflect.VisibleFields(reflect.TypeFor[agent.Request]()) {
		name := structField.Name
		if structField.Anonymous {
			continue
		}
		t.Run(name, func(t *testing.T) {
			field, ok := fields[name]
			if !ok {
				t.Fatalf("Request.%s is neither mapped nor refused", name)
			}
			req := agent.Request{Prompt: "go"}
			reflect.ValueOf(&req).Elem().FieldByIndex(structField.Index).Set(reflect.ValueOf(field.value))
			r, err := New(base).newRun(t.Context(), req)
			if err != nil {
				if !strings.HasPrefix(advice.Text(err), field.changes) {
					t.Errorf("refused with %v, want %q", err, field.changes)
				}
				return
			}
			defer r.release()
			got := changed(before, r.opts)
			if r.req.Prompt != "go" {
				got = append(got, "prompt")
			}
			if got := strings.Join(got, " "); got != field.changes {
				t.Errorf("options that change: %q, want %q", got, field.changes)
			}
		})
	}
}

func TestCLAUDE006_OptionsAreMapped(t *testing.T) {
	dir := t.TempDir()
	got := optionsOf(t, nil, agent.Request{
		Settings: agent.Settings{Dir: dir, Model: "haiku", MaxTurns: 3, Budget: &guard.Budget{MaxCostUSD: 0.5}, SystemPrompt: "Be brief.", DisallowedTools: []string{"Bash(rm *)"}, PartialText: true}, Resume: "token",
		OutputSchema: json.RawMessage(`{"type":"object"}`),
	})
	want := claude.Options{
		Dir: dir, Model: "haiku", MaxTurns: 3, MaxBudgetUSD: new(0.5), Resume: "token", SystemPrompt: claude.SystemText("Be brief."),
		DisallowedTools: []string{"Bash(rm *)"}, OutputSchema: json.RawMessage(`{"type":"object"}`), PartialMessages: true,
		ForwardSubagentText: true,
	}
	if diff := changed(want, got); diff != nil {
		t.Errorf("options differ in %v: got %+v", diff, got)
	}
}

func TestOptions_UnsetFieldsComeFromTheBase(t *testing.T) {
	base := &claude.Options{
		Dir: "/base", Model: "opus", MaxTurns: 9, MaxBudgetUSD: new(2.0), SystemPrompt: claude.SystemText("base"), Effort: claude.EffortMax,
		Tools: []string{"Read"}, AllowedTools: []string{"Read"}, DisallowedTools: []string{"Bash"}, PartialMessages: true, ForwardSubagentText: true,
		SessionID: "6f9619ff-8b86-4d11-b42d-00c04fc964ff", Title: "mine", Settings: json.RawMessage(`{"a":1}`),
		MCPServers: map[string]claude.MCPServer{"other": claude.MCPHTTP{URL: "http://127.0.0.1:1"}},
		Agents:     map[string]claude.AgentDefinition{"helper": {Description: "Helps.", Prompt: "Help."}},
	}
	if diff := changed(*base, optionsOf(t, base, agent.Request{})); diff != nil {
		t.Errorf("an empty request changes %v", diff)
	}
}

func TestOptions_AppendedSystemPrompt(t *testing.T) {
	for name, x := range map[string]struct {
		base claude.SystemPrompt
		own  string
		want claude.SystemPrompt
	}{
		"the CLI's own":               {nil, "", claude.PresetPrompt{Append: "Be kind."}},
		"the CLI's own, and more":     {claude.PresetPrompt{Append: "Be quick.", ExcludeDynamicSections: true}, "", claude.PresetPrompt{Append: "Be quick.\n\nBe kind.", ExcludeDynamicSections: true}},
		"a pointer to that":           {&claude.PresetPrompt{Append: "Be quick."}, "", claude.PresetPrompt{Append: "Be quick.\n\nBe kind."}},
		"one of the base":             {claude.SystemText("You count."), "", claude.SystemText("You count.\n\nBe kind.")},
		"a pointer to one":            {new(claude.SystemText("You count.")), "", claude.SystemText("You count.\n\nBe kind.")},
		"several blocks":              {claude.TextPrompt{Blocks: []string{"You count.", claude.DynamicBoundary, "Now."}}, "", claude.TextPrompt{Blocks: []string{"You count.", claude.DynamicBoundary, "Now.", "Be kind."}}},
		"one of the request":          {claude.PresetPrompt{Append: "Be quick."}, "You write.", claude.SystemText("You write.\n\nBe kind.")},
		"one of the request, no file": {claude.PromptFile{Path: "x"}, "You write.", claude.SystemText("You write.\n\nBe kind.")},
	} {
		t.Run(name, func(t *testing.T) {
			got := optionsOf(t, &claude.Options{SystemPrompt: x.base}, agent.Request{Settings: agent.Settings{SystemPrompt: x.own, AppendSystemPrompt: "Be kind."}}).SystemPrompt
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Errorf("the system prompt (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptions_DefaultSystemPromptIsTheCLIs(t *testing.T) {
	if got := optionsOf(t, nil, agent.Request{}).SystemPrompt; got != (claude.PresetPrompt{}) {
		t.Errorf("SystemPrompt is %#v, want the CLI's own", got)
	}
}

// What base points to belongs to other runs too.
func TestOptions_BaseIsNeverChanged(t *testing.T) {
	base := claude.Options{
		MCPServers:      map[string]claude.MCPServer{"other": claude.MCPHTTP{URL: "http://127.0.0.1:1"}},
		AllowedTools:    append(make([]string, 0, 9), "mcp__other"),
		DisallowedTools: append(make([]string, 0, 9), "WebFetch"),
		Settings:        json.RawMessage(`{"a":1}`),
	}
	hook := claude.On("Read", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) { return nil, nil })
	base.Hooks = append(make([]claude.Hook, 0, 9), hook)
	before := base
	before.MCPServers = map[string]claude.MCPServer{"other": base.MCPServers["other"]}
	room := func() []string { // what is behind the slices
		return slices.Concat(base.AllowedTools[:9], base.DisallowedTools[:9])
	}
	was := room()
	a := New(&base)
	for _, req := range []agent.Request{
		{Prompt: "go", Registry: desk(t), Settings: agent.Settings{DisallowedTools: []string{"look"}, Effort: "high"}, Resume: "x"},
		{Prompt: "go", Registry: desk(t), Settings: agent.Settings{Tools: []string{"Read", "save"}}},
		{Prompt: "go", Host: allowAll},
	} {
		r, err := a.newRun(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		r.release()
	}
	if diff := cmp.Diff(was, room()); diff != "" {
		t.Errorf("lists of the base were written to (-before +after):\n%s", diff)
	}
	if base.Hooks[:9][1].Func != nil {
		t.Error("the hooks of the base were written to")
	}
	before.Hooks, a.base.Hooks = nil, nil // functions cannot be compared
	if diff := changed(before, a.base); diff != nil {
		t.Errorf("the base changed in %v", diff)
	}
}

func TestOptions_AllowedToolsAreABoundary(t *testing.T) {
	type mapped struct {
		Tools, AllowedTools, DisallowedTools, SettingSources []string
		StrictMCP                                            bool
		Servers                                              int
	}
	for name, x := range map[string]struct {
		req  agent.Request
		want mapped
	}{
		"nothing set":                      {agent.Request{}, mapped{}},
		"none":                             {agent.Request{Settings: agent.Settings{Tools: []string{}}}, mapped{Tools: []string{}, SettingSources: []string{}, StrictMCP: true}},
		"none, not even ours":              {agent.Request{Settings: agent.Settings{Tools: []string{}}, Registry: desk(t)}, mapped{Tools: []string{}, SettingSources: []string{}, StrictMCP: true}},
		"some":                             {agent.Request{Settings: agent.Settings{Tools: []string{"Read", "Bash(git status)", "Bash(git log)"}}}, mapped{Tools: []string{"Read", "Bash"}, AllowedTools: []string{"Read", "Bash(git status)", "Bash(git log)"}, StrictMCP: true}},
		"some, with a host":                {agent.Request{Settings: agent.Settings{Tools: []string{"Read", "Bash(git status)"}}, Host: allowAll}, mapped{Tools: []string{"Read", "Bash"}, StrictMCP: true}},
		"only of servers":                  {agent.Request{Settings: agent.Settings{Tools: []string{"mcp__other__x"}, Servers: map[string]agent.Server{"other": {URL: "http://127.0.0.1:1"}}}}, mapped{Tools: []string{}, AllowedTools: []string{"mcp__other__x"}, StrictMCP: true, Servers: 1}},
		"ours":                             {agent.Request{Registry: desk(t)}, mapped{AllowedTools: []string{"mcp__drover"}, Servers: 1}},
		"ours, with a host":                {agent.Request{Registry: desk(t), Host: allowAll}, mapped{Servers: 1}},
		"one of ours by its bare name":     {agent.Request{Registry: desk(t), Settings: agent.Settings{Tools: []string{"look"}}}, mapped{Tools: []string{}, AllowedTools: []string{"mcp__drover__look"}, StrictMCP: true, Servers: 1}},
		"one of ours by its full name":     {agent.Request{Registry: desk(t), Settings: agent.Settings{Tools: []string{"mcp__drover__save"}}}, mapped{Tools: []string{}, AllowedTools: []string{"mcp__drover__save"}, StrictMCP: true, Servers: 1}},
		"all of ours":                      {agent.Request{Registry: desk(t), Settings: agent.Settings{Tools: []string{"Read", "mcp__drover"}}}, mapped{Tools: []string{"Read"}, AllowedTools: []string{"Read", "mcp__drover"}, StrictMCP: true, Servers: 1}},
		"under another name":               {agent.Request{Registry: desk(t), Settings: agent.Settings{ToolServer: "my.desk"}}, mapped{AllowedTools: []string{"mcp__my_desk"}, Servers: 1}},
		"under another name, by bare name": {agent.Request{Registry: desk(t), Settings: agent.Settings{ToolServer: "my.desk", Tools: []string{"look"}, DisallowedTools: []string{"save"}}}, mapped{Tools: []string{}, AllowedTools: []string{"mcp__my_desk__look"}, DisallowedTools: []string{"mcp__my_desk__save"}, StrictMCP: true, Servers: 1}},
		"under another name, by full name": {agent.Request{Registry: desk(t), Settings: agent.Settings{ToolServer: "my.desk", Tools: []string{"mcp__my_desk__look"}}}, mapped{Tools: []string{}, AllowedTools: []string{"mcp__my_desk__look"}, StrictMCP: true, Servers: 1}},
		"skills":                           {agent.Request{Skills: []agent.Skill{named("greet")}}, mapped{AllowedTools: []string{"Skill"}}},
		"skills, with a host":              {agent.Request{Skills: []agent.Skill{named("greet")}, Host: allowAll}, mapped{}},
		"skills and a list":                {agent.Request{Skills: []agent.Skill{named("greet")}, Settings: agent.Settings{Tools: []string{"Read"}}}, mapped{Tools: []string{"Read", "Skill"}, AllowedTools: []string{"Read", "Skill"}, StrictMCP: true}},
		"skills that the list names":       {agent.Request{Skills: []agent.Skill{named("greet")}, Settings: agent.Settings{Tools: []string{"Skill(greet)"}}}, mapped{Tools: []string{"Skill"}, AllowedTools: []string{"Skill(greet)"}, StrictMCP: true}},
		"skills and no tools":              {agent.Request{Skills: []agent.Skill{named("greet")}, Settings: agent.Settings{Tools: []string{}}}, mapped{Tools: []string{"Skill"}, AllowedTools: []string{"Skill"}, SettingSources: []string{}, StrictMCP: true}},
		"ours under their former names":    {agent.Request{Registry: desk(t), Settings: agent.Settings{Tools: []string{"mcp__wink__look"}, DisallowedTools: []string{"mcp__wink__save"}}}, mapped{Tools: []string{}, AllowedTools: []string{"mcp__drover__look"}, DisallowedTools: []string{"mcp__drover__save"}, StrictMCP: true, Servers: 1}},
		"former names of another server":   {agent.Request{Registry: desk(t), Settings: agent.Settings{ToolServer: "desk", DisallowedTools: []string{"mcp__wink__save"}}}, mapped{AllowedTools: []string{"mcp__desk"}, DisallowedTools: []string{"mcp__wink__save"}, Servers: 1}},
		"one of ours taken away":           {agent.Request{Registry: desk(t), Settings: agent.Settings{DisallowedTools: []string{"save", "Bash"}}}, mapped{AllowedTools: []string{"mcp__drover"}, DisallowedTools: []string{"mcp__drover__save", "Bash"}, Servers: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			o := optionsOf(t, nil, x.req)
			got := mapped{o.Tools, o.AllowedTools, o.DisallowedTools, o.SettingSources, o.StrictMCP, len(o.MCPServers)}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestToolServer_Introduction(t *testing.T) {
	var o claude.Options
	release, err := serveTools(&o, agent.Request{Registry: desk(t), Settings: agent.Settings{ToolServer: "desk"}}, func(event.ToolResult) {})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	server, ok := o.MCPServers["desk"].(*claude.MCPInProcess)
	if !ok {
		t.Fatalf("the servers are %v", o.MCPServers)
	}
	manifest, err := server.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if want := `"serverInfo":{"name":"desk","version":"1.0.0"}`; !strings.Contains(string(manifest.InitializeResult), want) {
		t.Errorf("the server introduces itself as %s, want %s", manifest.InitializeResult, want)
	}
}

func TestOptions_Effort(t *testing.T) {
	for word, want := range map[string]struct{ effort, settings string }{
		"":          {"", `{"a":1}`},
		"minimal":   {"low", `{"a":1,"ultracode":false}`},
		"low":       {"low", `{"a":1,"ultracode":false}`},
		"medium":    {"medium", `{"a":1,"ultracode":false}`},
		"high":      {"high", `{"a":1,"ultracode":false}`},
		"xhigh":     {"xhigh", `{"a":1,"ultracode":false}`},
		"max":       {"max", `{"a":1,"ultracode":false}`},
		"ultracode": {"xhigh", `{"a":1,"ultracode":true}`},
	} {
		o := optionsOf(t, &claude.Options{Settings: json.RawMessage(`{"a":1}`)}, agent.Request{Settings: agent.Settings{Effort: word}})
		if string(o.Effort) != want.effort || string(o.Settings) != want.settings {
			t.Errorf("effort %q gives %q and settings %s, want %q and %s", word, o.Effort, o.Settings, want.effort, want.settings)
		}
	}
}

func TestOptions_UnsupportedRequestIsRefused(t *testing.T) {
	for name, x := range map[string]struct {
		base claude.Options
		req  agent.Request
		want string
	}{
		"unknown effort":                 {req: agent.Request{Settings: agent.Settings{Effort: "hard"}}, want: `"hard" is not one of minimal, low, medium, high, xhigh, max, ultracode`},
		"ultracode beside a file":        {claude.Options{SettingsFile: "x.json"}, agent.Request{Settings: agent.Settings{Effort: "ultracode"}}, "read the file and pass it as Settings"},
		"settings that are no object":    {claude.Options{Settings: json.RawMessage(`[]`)}, agent.Request{Settings: agent.Settings{Effort: "low"}}, "Settings of the base"},
		"permissions without a host":     {req: agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}, want: "no Host that enforces them"},
		"negative turns":                 {req: agent.Request{Settings: agent.Settings{MaxTurns: -1}}, want: "MaxTurns"},
		"negative budget":                {req: agent.Request{Settings: agent.Settings{Budget: &guard.Budget{MaxCostUSD: -1}}}, want: "Request.Budget: guard: Budget.MaxCostUSD is -1"},
		"invalid schema":                 {req: agent.Request{OutputSchema: json.RawMessage(`7`)}, want: "OutputSchema"},
		"tool of an unknown server":      {claude.Options{MCPServers: map[string]claude.MCPServer{"desk": claude.MCPHTTP{URL: "http://127.0.0.1:1"}}}, agent.Request{Settings: agent.Settings{Tools: []string{"Read", "mcp__dsek__look"}}}, "Request.Tools: there is no tool mcp__dsek__look\n  next: write mcp__desk__look"},
		"no tool of an unknown server":   {claude.Options{StrictMCP: true}, agent.Request{Settings: agent.Settings{DisallowedTools: []string{"mcp__desk"}}}, "Request.DisallowedTools: there is no tool mcp__desk"},
		"tool with two names":            {req: agent.Request{Settings: agent.Settings{Tools: []string{"Read,Write"}}}, want: "Tools[0]"},
		"server of the same name":        {claude.Options{MCPServers: map[string]claude.MCPServer{"drover": claude.MCPHTTP{URL: "http://127.0.0.1:1"}}}, agent.Request{Registry: tool.MustRegistry(nil)}, `MCP server "drover" already`},
		"server of the request's name":   {claude.Options{MCPServers: map[string]claude.MCPServer{"desk": claude.MCPHTTP{URL: "http://127.0.0.1:1"}}}, agent.Request{Registry: tool.MustRegistry(nil), Settings: agent.Settings{ToolServer: "desk"}}, `MCP server "desk" already`},
		"a text after a file":            {claude.Options{SystemPrompt: claude.PromptFile{Path: "x"}}, agent.Request{Settings: agent.Settings{AppendSystemPrompt: "Be kind."}}, "Request.AppendSystemPrompt: nothing can be added to the file"},
		"bare mode with hooks":           {claude.Options{ExtraArgs: []string{"--bare"}}, agent.Request{Hooks: &agent.Hooks{Submitted: quiet}}, "bare mode"},
		"hooks that settings switch off": {claude.Options{Settings: json.RawMessage(`{"disableAllHooks":true}`)}, agent.Request{Hooks: &agent.Hooks{Submitted: quiet}}, "disableAllHooks"},
		"fewer than no refusals":         {req: agent.Request{Hooks: &agent.Hooks{}, MaxRefusals: -1}, want: "Request.MaxRefusals: -1 is negative"},
		"bare mode with a host":          {claude.Options{ExtraArgs: []string{"--bare"}}, agent.Request{Host: allowAll}, "bare mode"},
	} {
		t.Run(name, func(t *testing.T) {
			x.req.Prompt = "go"
			_, err := New(&x.base).newRun(t.Context(), x.req)
			if err == nil || !strings.Contains(advice.Text(err), x.want) {
				t.Errorf("got %v, want an error with %q", err, x.want)
			}
		})
	}
}

func TestServers_OfARequest(t *testing.T) {
	base := &claude.Options{MCPServers: map[string]claude.MCPServer{"web": claude.MCPHTTP{URL: "http://127.0.0.1:1"}}}
	for name, x := range map[string]struct {
		servers map[string]agent.Server
		want    map[string]claude.MCPServer
		refused string
	}{
		"none":    {nil, base.MCPServers, ""},
		"two":     {map[string]agent.Server{"a": {URL: "http://a", Headers: map[string]string{"K": "v"}}, "b": {Command: []string{"b", "c"}, Env: map[string]string{"D": "e"}, Timeout: time.Second}}, map[string]claude.MCPServer{"web": base.MCPServers["web"], "a": claude.MCPHTTP{URL: "http://a", Headers: map[string]string{"K": "v"}}, "b": claude.MCPStdio{Command: "b", Args: []string{"c"}, Env: map[string]string{"D": "e"}, Timeout: time.Second}}, ""},
		"taken":   {map[string]agent.Server{"web": {URL: "http://a"}}, nil, `the adapter has a server "web" of its own`},
		"neither": {map[string]agent.Server{"a": {}}, nil, "neither a command nor a URL"},
		"both":    {map[string]agent.Server{"a": {URL: "http://a", Command: []string{"b"}}}, nil, "or both"},
	} {
		t.Run(name, func(t *testing.T) {
			o := *base
			err := overlay(&o, agent.Request{Settings: agent.Settings{Servers: x.servers}})
			if x.refused != "" {
				if err == nil || !strings.Contains(advice.Text(err), x.refused) {
					t.Errorf("got %v, want %q", err, x.refused)
				}
				return
			}
			if diff := cmp.Diff(x.want, o.MCPServers); err != nil || diff != "" || len(base.MCPServers) != 1 {
				t.Errorf("%v; servers (-want +got):\n%s", err, diff)
			}
		})
	}
}
