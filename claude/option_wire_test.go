// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// A wire is what a run with some options has beyond a run with none.
type wire struct {
	// args are the further arguments, env the further variables.
	args, env []string
	// init is a JSON object laid over the handshake; null takes a field away. The handshake of a
	// run without options is {"systemPrompt":[""]}.
	init string
	// prompt is a JSON object laid over the line of a prompt; null takes a field away.
	prompt string
	// request is a JSON object: the request that follows the handshake.
	request string
}

// nothing is the wire of an option that stays in this program.
var nothing = wire{}

// A form is a value of an option and what becomes of it.
type form struct {
	name string
	set  func(o *claude.Options)
	// send is the prompt, if the row is about prompts.
	send claude.Prompt
	wire wire
}

// An optionRow says of one field what it becomes. The fields of all option types must each be in
// one.
type optionRow struct {
	field string // "Options.Model"
	forms []form // its values: a full one first, then nil, empty and zero where they differ
	// shownBy is the test that shows the effect. For the real CLI these are the checks of
	// option_effect_test.go, named by their field; "effect" means those.
	shownBy string
	// unseen says why no effect can be seen without the real service, another system or a person.
	unseen string
	// tooOld says that the oldest CLI lacks it, which must be an error.
	tooOld bool
}

func optionRows() []optionRow {
	return slices.Concat(processRows(), modelRows(), promptRows(), toolRows(), sessionRows(), outputRows(),
		settingsRows(), sandboxRows(), agentRows(), mcpRows(), hookRows(), sendRows())
}

// optionTypes are the types whose fields are options.
var optionTypes = []any{
	claude.Options{},
	claude.Thinking{},
	claude.Skills{},
	claude.Plugin{},
	claude.TextPrompt{},
	claude.PresetPrompt{},
	claude.PromptFile{},
	claude.Sandbox{},
	claude.SandboxNetwork{},
	claude.SandboxTLSTerminate{},
	claude.SandboxFilesystem{},
	claude.SandboxCredentials{},
	claude.SandboxSecret{},
	claude.SandboxRipgrep{},
	claude.AgentDefinition{},
	claude.AgentMCPServer{},
	claude.MCPStdio{},
	claude.MCPSSE{},
	claude.MCPHTTP{},
	claude.MCPInProcess{},
	claude.MCPManifest{},
	claude.MCPToolPolicy{},
	claude.Hook{},
	claude.Prompt{},
}

func TestOptions_EachIsInTheTable(t *testing.T) {
	rows := map[string]int{}
	for _, row := range optionRows() {
		rows[row.field]++
	}
	for _, v := range optionTypes {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() {
				name := typ.Name() + "." + f.Name
				if rows[name] != 1 {
					t.Errorf("%s is in %d rows of the table, want 1: say what it becomes", name, rows[name])
				}
				delete(rows, name)
			}
		}
	}
	for name := range rows {
		t.Errorf("the table has a row for %s, which does not exist", name)
	}
}

// Every row has its effect shown by a test that exists, or says why none can be.
func TestOptions_EachEffectIsShownByATest(t *testing.T) {
	tests := testNames(t)
	checked := map[string]bool{}
	for _, e := range optionEffects() {
		for field := range e.checks {
			checked[field] = true
		}
	}
	for _, row := range optionRows() {
		switch {
		case len(row.forms) == 0:
			t.Errorf("%s: no form of it is checked", row.field)
		case (row.shownBy == "") == (row.unseen == ""):
			t.Errorf("%s: needs either a test that shows its effect or the reason why it has no such test", row.field)
		case row.shownBy == "effect" && !checked[row.field]:
			t.Errorf("%s: no check of its effect", row.field)
		case row.shownBy != "" && row.shownBy != "effect" && !tests[row.shownBy]:
			t.Errorf("%s: there is no test %s", row.field, row.shownBy)
		}
		delete(checked, row.field)
	}
	for field := range checked {
		t.Errorf("an effect is checked of %s, which has no row", field)
	}
}

// testNames are the tests of this folder.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

// What every option becomes, as a spawner sees it that records the command, the handshake and the
// first prompt.
func TestOptions_Wire(t *testing.T) {
	base := record(t, form{})
	for _, row := range optionRows() {
		t.Run(row.field, func(t *testing.T) {
			for _, f := range row.forms {
				t.Run(f.name, func(t *testing.T) { base.compare(t, record(t, f), f.wire) })
			}
		})
	}
}

// A recording is what reached the process.
type recording struct {
	args, env             []string
	init, prompt, request map[string]any
}

// requests answers what follows the handshake, up to the prompt.
func (r *recording) requests(t *testing.T, s *claudetest.ScriptSession) {
	for {
		f, ok := s.Read()
		switch {
		case !ok:
			t.Error("the input ended before the prompt")
			return
		case f.Type == "user":
			r.prompt = object(t, []byte(f.Raw))
			return
		case f.Subtype() == "get_settings": // are compared with the sandbox that was asked for
			for _, arg := range s.Command().Args {
				if settings, ok := strings.CutPrefix(arg, "--settings="); ok {
					s.Answer(f, json.RawMessage(`{"effective":`+settings+`}`))
				}
			}
		default:
			r.request = object(t, f.Request)
			s.Answer(f, map[string]any{})
		}
	}
}

// record starts a client with the options of a form, sends its prompt and records both.
func record(t *testing.T, f form) recording {
	t.Helper()
	r := recording{}
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		init := s.Initialize(`{"plugins_applied":true,"agents":[{"name":"reviewer"}]}`)
		r.init = object(t, init.Request)
		r.requests(t, s)
		s.SendText("ok")
		s.Result("ok")
		s.State("idle")
		s.UntilEOF()
	})
	o := cli.Options()
	if f.set != nil {
		f.set(o)
	}
	c, err := claude.Connect(t.Context(), o)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	send := f.send
	if send.Text == "" && send.Content == nil {
		send.Text = "hi"
	}
	if err := c.Send(t.Context(), send); err != nil {
		t.Errorf("Send: %v", err)
	}
	for m := range c.Messages() {
		if _, ok := m.(*claude.TurnEnd); ok || send.NoTurn {
			break // closes
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	cmd := cli.Commands()[0]
	r.args, r.env = cmd.Args, cmd.Env
	return r
}

func object(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	return v
}

// compare checks that got is r and the wire, and nothing else.
func (r recording) compare(t *testing.T, got recording, want wire) {
	t.Helper()
	if diff := cmp.Diff(slices.Concat(r.args, want.args), got.args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	env := slices.Sorted(slices.Values(slices.Concat(r.env, want.env)))
	if diff := cmp.Diff(env, got.env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(overlay(t, r.init, want.init), got.init); diff != "" {
		t.Errorf("handshake (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(overlay(t, nil, want.request), overlay(t, got.request, "")); diff != "" {
		t.Errorf("request after the handshake (-want +got):\n%s", diff)
	}
	delete(r.prompt, "uuid")
	if !strings.Contains(want.prompt, `"uuid"`) {
		delete(got.prompt, "uuid") // a fresh one each time
	}
	if diff := cmp.Diff(overlay(t, r.prompt, want.prompt), got.prompt); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
}

// overlay is base with the members of a JSON object; null takes one away.
func overlay(t *testing.T, base map[string]any, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for k, v := range base {
		all[k] = v
	}
	if text == "" {
		return all
	}
	for k, v := range object(t, []byte(text)) {
		if v == nil {
			delete(all, k)
			continue
		}
		all[k] = v
	}
	return all
}

// A run without options is the base of the table above.
func TestOptions_WireOfNoOptions(t *testing.T) {
	got := record(t, form{})
	want := []string{"--output-format=stream-json", "--verbose", "--input-format=stream-json"}
	if diff := cmp.Diff(want, got.args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	want = []string{"CLAUDE_AGENT_SDK_VERSION=" + claude.Version, "CLAUDE_CODE_ENTRYPOINT=sdk-go", "CLAUDE_CODE_SDK_READS_SESSION_STATE=1"}
	if diff := cmp.Diff(want, got.env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"subtype": "initialize", "systemPrompt": []any{""}}, got.init); diff != "" {
		t.Errorf("handshake (-want +got):\n%s", diff)
	}
	delete(got.prompt, "uuid")
	line := map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": "hi"}, "parent_tool_use_id": nil, "session_id": ""}
	if diff := cmp.Diff(line, got.prompt); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
}

// A value never becomes a flag of its own.
func TestOptions_ValuesStayInTheirArgument(t *testing.T) {
	for _, value := range []string{"--dangerously-skip-permissions", "-p", "a b", "a\nb", "a=b", `"quoted" 'twice'`, "$(id)", "%PATH%", "ü\u2028"} {
		t.Run(value, func(t *testing.T) {
			got := record(t, form{set: func(o *claude.Options) {
				o.Model, o.Resume, o.PermissionPromptTool, o.SettingsFile, o.DebugFile, o.MCPConfig = value, value, value, value, value, value
				o.SystemPrompt, o.AddDirs, o.Plugins = claude.PromptFile{Path: value}, []string{value}, []claude.Plugin{{Path: value}}
				o.AllowedTools = []string{value}
			}})
			for _, arg := range got.args {
				if !strings.HasPrefix(arg, "--") || arg == value {
					t.Errorf("the value became an argument: %q", arg)
				}
			}
			for _, flag := range []string{"model", "resume", "permission-prompt-tool", "settings", "debug-file", "mcp-config", "system-prompt-file", "add-dir", "plugin-dir", "allowedTools"} {
				if want := "--" + flag + "=" + value; !slices.Contains(got.args, want) {
					t.Errorf("no argument %q in %q", want, got.args)
				}
			}
		})
	}
}
