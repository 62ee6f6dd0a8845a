// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// eachCLI runs f with the newest and the oldest CLI that is supported, one after the other.
func eachCLI(t *testing.T, f func(t *testing.T, version, path string)) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{
		claude.PinnedVersion: claudetest.CLI, claude.OldestTested: claudetest.OldestCLI,
	} {
		t.Run(version, func(t *testing.T) { f(t, version, get(t).Path) })
	}
}

// A realCLI is a running CLI that takes user messages and control requests.
type realCLI struct {
	t      *testing.T
	stdin  io.WriteCloser
	lines  chan line
	stderr bytes.Buffer
}

// A line is what the CLI wrote, as far as these tests look.
type line struct {
	Type             string
	Subtype          string
	Result           string
	IsError          bool            `json:"is_error"`
	APIErrorStatus   int             `json:"api_error_status"`
	StructuredOutput json.RawMessage `json:"structured_output"`
	Usage            struct {
		Input     int `json:"input_tokens"`
		Output    int `json:"output_tokens"`
		CacheRead int `json:"cache_read_input_tokens"`
	}
	Message struct {
		Content json.RawMessage
	}
	raw string
}

func startCLI(t *testing.T, path string, m *claudetest.Model, flags ...string) *realCLI {
	t.Helper()
	home := t.TempDir()
	args := append([]string{
		"-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose",
		"--setting-sources=", "--strict-mcp-config", "--tools=Bash,Read,Agent",
	}, flags...)
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + home, "CLAUDE_CONFIG_DIR=" + home, "TMPDIR=" + home,
		"CLAUDE_CODE_TMPDIR=" + home, "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
	}
	for name, value := range m.Env() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	c := &realCLI{t: t, lines: make(chan line, 1000)}
	cmd.Stderr = &c.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin = stdin
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	go c.read(stdout)
	t.Cleanup(func() {
		_ = stdin.Close()
		for range c.lines { // until the CLI has ended
		}
		_ = cmd.Wait() // the exit status shows only whether the last turn failed
		kill.Stop()
	})
	return c
}

func (c *realCLI) read(stdout io.Reader) {
	defer close(c.lines)
	r := bufio.NewReader(stdout)
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			return
		}
		l := line{raw: text}
		_ = json.Unmarshal([]byte(text), &l) // other lines have other shapes
		c.lines <- l
	}
}

func (c *realCLI) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, text+"\n"); err != nil {
		c.t.Fatalf("%v; stderr: %s", err, &c.stderr)
	}
}

// until returns the lines up to the first one of a type.
func (c *realCLI) until(kind string) []line {
	c.t.Helper()
	var seen []line
	for l := range c.lines {
		seen = append(seen, l)
		if l.Type == kind {
			return seen
		}
	}
	c.t.Fatalf("the CLI ended before a line of type %s; stderr: %s", kind, &c.stderr)
	return nil
}

// send sends a user message and returns the result and all lines of the turn.
func (c *realCLI) send(text string) (line, []line) {
	c.t.Helper()
	c.write(fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%q},"parent_tool_use_id":null,"session_id":""}`, text))
	seen := c.until("result")
	return seen[len(seen)-1], seen
}

func hasLine(lines []line, substr string) bool {
	return slices.ContainsFunc(lines, func(l line) bool { return strings.Contains(l.raw, substr) })
}

// TestModel_RealCLIPlaysEveryStep has one conversation with the CLI in which the model does everything that a script
// can express and that the CLI survives.
func TestModel_RealCLIPlaysEveryStep(t *testing.T) {
	eachCLI(t, func(t *testing.T, version, path string) {
		s := script.New()
		s.Strict = true
		s.CountTokens = 77
		steps := slices.DeleteFunc(cliSteps(), func(s cliStep) bool { return s.only != "" && s.only != version })
		for _, step := range steps {
			s.Turns = append(s.Turns, step.turns...)
		}
		m := claudetest.NewScriptedModel(t, s).RequireAllUsed()
		cli := startCLI(t, path, m)
		for _, step := range steps {
			t.Run(step.name, func(t *testing.T) {
				before := len(m.Requests())
				result, lines := cli.send(step.name)
				if result.IsError != step.isError || !strings.Contains(result.Result, step.result) {
					t.Errorf("result: got %q (error: %t), want %q (error: %t)", result.Result, result.IsError, step.result, step.isError)
				}
				if got, want := len(m.Requests())-before, len(step.turns); got != want {
					t.Errorf("got %d requests, want %d", got, want)
				}
				if step.check != nil {
					step.check(t, m, result, lines)
				}
			})
		}
		t.Run("count_tokens", func(t *testing.T) { checkTokenCounting(t, cli, m) })
	})
}

func checkTokenCounting(t *testing.T, cli *realCLI, m *claudetest.Model) {
	cli.write(`{"type":"control_request","request_id":"r1","request":{"subtype":"get_context_usage"}}`)
	seen := cli.until("control_response")
	if !hasLine(seen, `"tokens":77`) {
		t.Errorf("the scripted count is not in the CLI's answer: %.300s", seen[len(seen)-1].raw)
	}
	counted := slices.ContainsFunc(m.Traffic(), func(r *script.Request) bool { return r.Path == "/v1/messages/count_tokens" })
	if !counted {
		t.Error("the CLI did not ask for a count")
	}
}

type cliStep struct {
	name    string // also the message of the user
	only    string // version of the CLI that behaves so; empty means both
	turns   []script.Turn
	result  string
	isError bool
	check   func(t *testing.T, m *claudetest.Model, result line, lines []line)
}

func cliSteps() []cliStep {
	echo := func(id, text string) script.ToolCall {
		return script.ToolCall{ID: id, Name: "Bash", Input: script.Input{"command": "echo " + text, "description": "say " + text}}
	}
	return []cliStep{
		{
			name: "text", result: "Hello!", check: checkUsage,
			turns: []script.Turn{script.Text("Hello!").Chunked(2, time.Millisecond).Metered(script.Usage{Input: 21, Output: 4, CacheRead: 17})},
		},
		{
			name: "bash", result: "It said hi-there.", check: checkBash,
			turns: []script.Turn{script.Reply(echo("", "hi-there")), script.Text("It said hi-there.").When(script.AfterTool("Bash"))},
		},
		{
			name: "parallel", result: "Both done.", check: checkParallel,
			turns: []script.Turn{script.Reply(script.TextBlock{Text: "Two at once."}, echo("toolu_left", "left"), echo("toolu_right", "right")), script.Text("Both done.")},
		},
		{
			name: "thinking", result: "Four.", check: checkThinking,
			turns: []script.Turn{script.Think("two and two", "Four.")},
		},
		{
			name: "thinking is sent back", result: "Yes.", check: checkThinkingReturned,
			turns: []script.Turn{script.Text("Yes.")},
		},
		{
			name: "subagent", result: "Delegated.", check: checkSubagent,
			turns: []script.Turn{
				script.Call("Agent", script.Input{"description": "help", "prompt": "look closely", "subagent_type": "general-purpose"}),
				script.Text("Delegated."), script.Text("Seen nothing.").When(script.IsSubagent(), script.LastUserText("look closely")),
			},
		},
		{
			name: "overloaded", result: "Back again.", check: checkRetry,
			turns: []script.Turn{script.Fail(529, "Overloaded").RetryAfter(time.Second), script.Text("Back again.")},
		},
		{
			name: "forbidden", result: "403", isError: true, check: checkStatus(403),
			turns: []script.Turn{script.Fail(403, "not for you")},
		},
		{name: "dropped", result: "whole", // the oldest CLI asks again without streaming
			turns: []script.Turn{script.Text("half").Breaking(script.ResetAfter(3)), script.Text("whole")}},
		{
			name: "truncated", only: claude.PinnedVersion, result: "second half", check: checkContinued,
			turns: []script.Turn{script.Text("first half").Breaking(script.TruncateAfter(0)), script.Text("second half")},
		},
		{
			name: "truncated is taken as whole", only: claude.OldestTested, result: "first half",
			turns: []script.Turn{script.Text("first half").Breaking(script.TruncateAfter(0))},
		},
		{
			name: "error event", result: "calm again",
			turns: []script.Turn{script.Text("x").Breaking(script.ErrorEventAfter(2, script.APIError{Status: 529})), script.Text("calm again")},
		},
		{
			name: "output limit", result: "the rest", check: checkContinued,
			turns: []script.Turn{script.MaxTokens("first half"), script.Text("the rest")},
		},
		{
			name: "reset at once", result: "there",
			turns: []script.Turn{script.Text("x").Breaking(script.ResetAfter(script.Nothing)), script.Text("there")},
		},
		{
			name: "malformed", result: "plain", check: checkUnstreamed,
			turns: []script.Turn{script.Text("x").Breaking(script.MalformedAfter(2)), script.Text("plain")},
		},
		{
			name: "bad tool JSON", result: "I see.", check: checkBadToolJSON,
			turns: []script.Turn{script.Reply(script.ToolCall{Name: "Bash", RawInput: `{"command": "ec`}), script.Text("I see.")},
		},
	}
}

func checkUsage(t *testing.T, _ *claudetest.Model, result line, _ []line) {
	if u := result.Usage; u.Input != 21 || u.Output != 4 || u.CacheRead != 17 {
		t.Errorf("usage: got %+v, want 21 in, 4 out, 17 read from the cache", u)
	}
}

func checkBash(t *testing.T, m *claudetest.Model, _ line, lines []line) {
	if text, isError, ok := m.ToolResult("Bash"); text != "hi-there" || isError || !ok {
		t.Errorf("the model saw %q (error: %t, found: %t), want hi-there", text, isError, ok)
	}
	if !hasLine(lines, `"tool_use"`) {
		t.Error("the CLI did not report the tool call")
	}
}

func checkParallel(t *testing.T, m *claudetest.Model, _ line, _ []line) {
	for id, want := range map[string]string{"toolu_left": "left", "toolu_right": "right"} {
		if text, _, _ := m.LastRequest().ToolResult(id); text != want {
			t.Errorf("%s: the model saw %q, want %q", id, text, want)
		}
	}
}

func checkThinking(t *testing.T, _ *claudetest.Model, _ line, lines []line) {
	if !hasLine(lines, `"thinking":"two and two"`) {
		t.Error("the CLI did not report the thinking")
	}
}

func checkThinkingReturned(t *testing.T, m *claudetest.Model, _ line, _ []line) {
	if !m.LastRequest().SawText("two and two") {
		t.Error("the signed thinking is not in the next request")
	}
}

func checkSubagent(t *testing.T, m *claudetest.Model, _ line, _ []line) {
	if text, _, _ := m.LastRequest().ToolResult("Agent"); !strings.Contains(text, "Seen nothing.") {
		t.Errorf("the model saw %q, want the subagent's answer", text)
	}
	if m.LastRequest().IsSubagent() {
		t.Error("the main conversation counts as a subagent's")
	}
}

func checkRetry(t *testing.T, _ *claudetest.Model, _ line, lines []line) {
	if !hasLine(lines, `"subtype":"api_retry"`) {
		t.Error("the CLI reported no retry")
	}
	if !hasLine(lines, `"error_status":529`) {
		t.Error("the retry does not name the status")
	}
}

func checkStatus(status int) func(*testing.T, *claudetest.Model, line, []line) {
	return func(t *testing.T, _ *claudetest.Model, result line, _ []line) {
		if result.APIErrorStatus != status {
			t.Errorf("api_error_status: got %d, want %d", result.APIErrorStatus, status)
		}
	}
}

func checkContinued(t *testing.T, m *claudetest.Model, _ line, lines []line) {
	if !m.LastRequest().SawText("first half") {
		t.Error("what came before the break is not in the next request")
	}
	if !hasLine(lines, "first half") {
		t.Error("the CLI did not report what came before the break")
	}
}

func checkUnstreamed(t *testing.T, m *claudetest.Model, _ line, _ []line) {
	if m.LastRequest().Stream {
		t.Error("the request after the malformed stream is streamed; this step is to show an answer that is not")
	}
}

func checkBadToolJSON(t *testing.T, m *claudetest.Model, _ line, _ []line) {
	results := m.LastRequest().ToolResults("Bash")
	if last := results[len(results)-1]; !last.IsError {
		t.Errorf("the model saw %q, want an error", last.Text)
	}
}

// The bundled example file gives the structured output.
func TestModel_RealCLIReturnsStructuredOutput(t *testing.T) {
	eachCLI(t, func(t *testing.T, _, path string) {
		m := claudetest.LoadModel(t, "../script/testdata/example.yaml")
		cli := startCLI(t, path, m, `--json-schema={"type":"object","properties":{"files":{"type":"integer"},"lines":{"type":"integer"}},"required":["files"]}`)
		result, _ := cli.send("Report as data.")
		if diff := cmp.Diff(`{"files":1,"lines":3}`, string(result.StructuredOutput)); diff != "" {
			t.Errorf("structured output (-want +got):\n%s", diff)
		}
		tool, ok := m.LastRequest().Tool(script.StructuredOutputTool)
		if !ok || !bytes.Contains(tool.InputSchema, []byte(`"files"`)) {
			t.Errorf("tool: got %s %t, want our schema", tool.InputSchema, ok)
		}
	})
}

// A request that the script does not answer ends the turn at once, with the script's own words.
func TestModel_UnmatchedRequestEndsTheTurnOfTheRealCLI(t *testing.T) {
	eachCLI(t, func(t *testing.T, _, path string) {
		ft := &fakeTest{TB: t}
		m := claudetest.NewModel(ft)
		defer ft.end()
		result, _ := startCLI(t, path, m).send("anything")
		if !result.IsError || !strings.Contains(result.Result, "no turn for request 1") {
			t.Errorf("got %q (error: %t), want the script's failure", result.Result, result.IsError)
		}
		if got := len(m.Requests()); got != 1 {
			t.Errorf("got %d requests, want 1: the CLI must not retry", got)
		}
	})
}
