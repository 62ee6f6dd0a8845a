// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// turn plays one turn and returns its end and its messages.
func turn(t testing.TB, c *claude.Client, prompt string) (*claude.TurnEnd, []claude.Message) {
	t.Helper()
	end, messages, err := collect(c.Turn(t.Context(), claude.Text(prompt)))
	if err != nil {
		t.Fatalf("turn %q: %v", prompt, err)
	}
	return end, messages
}

// collect reads a stream to its end.
func collect(stream iter.Seq2[claude.Message, error]) (end *claude.TurnEnd, messages []claude.Message, err error) {
	for m, merr := range stream {
		if merr != nil {
			return end, messages, merr
		}
		if e, ok := m.(*claude.TurnEnd); ok {
			end = e
		}
		messages = append(messages, m)
	}
	return end, messages, nil
}

// of are the messages of one type.
func of[M claude.Message](messages []claude.Message) []M {
	var found []M
	for _, m := range messages {
		if m, ok := m.(M); ok {
			found = append(found, m)
		}
	}
	return found
}

func TestClient_SeveralTurnsUseOneProcess(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Text("First."),
		script.Call("Bash", script.Input{"command": "echo from the shell"}),
		script.Text("Second."),
		script.Think("Hm.", "Third."),
	)
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	opts.SystemPrompt = claude.SystemText("You are terse.")
	c := claudetest.Connect(t, opts)

	end, messages := turn(t, c, "one")
	if got, want := end.Answer.Result, "First."; got != want {
		t.Errorf("first answer %q, want %q", got, want)
	}
	if init := of[*claude.SystemInit](messages); len(init) != 1 || init[0].ClaudeCodeVersion != cli.Version {
		t.Errorf("init messages %v, want one of version %s", init, cli.Version)
	}
	end, _ = turn(t, c, "two")
	if got, want := end.Answer.Result, "Second."; got != want {
		t.Errorf("second answer %q, want %q", got, want)
	}
	if got, isError, _ := model.ToolResult("Bash"); isError || !strings.Contains(got, "from the shell") {
		t.Errorf("the model saw %q of Bash", got)
	}
	_, messages = turn(t, c, "three")
	if text := of[*claude.AssistantMessage](messages); len(text) != 2 { // a line for each block
		t.Errorf("%d assistant messages for thinking and text, want 2", len(text))
	}
	last := model.LastRequest()
	if !last.SawText("You are terse.") || !last.SawText("one") || !last.SawText("two") {
		t.Errorf("the third request lacks the system prompt or the history")
	}
}

func TestQuery_YieldsTheResultAndLeavesNothing(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Done."))
	end, messages, err := collect(claude.Query(t.Context(), "go", cli.Options(model)))
	if err != nil {
		t.Fatal(err)
	}
	if end == nil || end.Answer == nil || end.Answer.Result != "Done." || end.Forced {
		t.Fatalf("turn end %+v, want the answer Done.", end)
	}
	for _, m := range messages {
		if _, ours := m.(*claude.TurnEnd); !ours && !json.Valid(m.Raw()) {
			t.Errorf("message %T has no raw JSON", m)
		}
	}
}

func TestStructuredOutput_InvalidAnswerIsRetried(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Structured(map[string]any{"n": -1}), script.Structured(map[string]any{"n": 3}))
	opts := cli.Options(model)
	opts.OutputSchema = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","x-note":"dropped","properties":{"n":{"type":"integer","minimum":0}},"required":["n"]}`)
	end, _, err := collect(claude.Query(t.Context(), "a number", opts))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(end.Answer.StructuredOutput), `{"n":3}`; got != want {
		t.Errorf("structured output %s, want %s", got, want)
	}
}

func TestTurn_ImagesAndPartialMessages(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("A small red square.").Chunked(4, 0))
	opts := cli.Options(model)
	opts.PartialMessages = true
	c := claudetest.Connect(t, opts)
	prompt := claude.Prompt{Text: "What is this?", Content: []claude.Content{claude.ImageContent("image/png", tinyPNG)}}
	_, messages, err := collect(c.Turn(t.Context(), prompt))
	if err != nil {
		t.Fatal(err)
	}
	var streamed strings.Builder
	for _, e := range of[*claude.StreamEvent](messages) {
		if text, ok := e.TextDelta(); ok {
			streamed.WriteString(text)
		}
	}
	if got, want := streamed.String(), "A small red square."; got != want {
		t.Errorf("streamed %q, want %q", got, want)
	}
	if !strings.Contains(string(model.LastRequest().Body), `"image/png"`) {
		t.Errorf("the model got no image")
	}
}

// tinyPNG is one red pixel.
var tinyPNG = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82")

func TestInterrupt_EndsTheTurnAndNotTheConversation(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Hang(), script.Text("Still here."))
	c := claudetest.Connect(t, cli.Options(model))
	if err := c.Send(t.Context(), claude.Text("wait")); err != nil {
		t.Fatal(err)
	}
	if err := model.WaitRequests(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Interrupt(t.Context()); err != nil {
		t.Fatalf("Interrupt: %v", err)
	}
	next, stop := iter.Pull2(c.Messages())
	defer stop()
	end := untilTurnEnd(t, next)
	var failed *claude.ResultError
	if err := end.Err(); !errors.As(err, &failed) || failed.TerminalReason != "aborted_streaming" {
		t.Errorf("the interrupted turn ended with %v, want a ResultError with terminal reason aborted_streaming", err)
	}
	if err := c.Send(t.Context(), claude.Text("and now?")); err != nil {
		t.Fatal(err)
	}
	if end = untilTurnEnd(t, next); end.Answer == nil || end.Answer.Result != "Still here." {
		t.Errorf("after the interrupt: %+v", end.Answer)
	}
}

func untilTurnEnd(t testing.TB, next func() (claude.Message, error, bool)) *claude.TurnEnd {
	t.Helper()
	for {
		m, err, ok := next()
		if err != nil || !ok {
			t.Fatalf("the messages ended: %v", err)
		}
		if end, ok := m.(*claude.TurnEnd); ok {
			return end
		}
	}
}

func TestTurn_CancellationLeavesTheClientUsable(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Hang(), script.Text("Next."))
	c := claudetest.Connect(t, cli.Options(model))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = model.WaitRequests(t.Context(), 1)
		cancel()
	}()
	_, _, err := collect(c.Turn(ctx, claude.Text("wait")))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled turn ended with %v, want the context's error", err)
	}
	end, _ := turn(t, c, "again")
	if end.Answer.Result != "Next." || len(end.Results) != 1 {
		t.Errorf("the next turn got %d results and %q", len(end.Results), end.Answer.Result)
	}
}

func TestQuery_BreakingOutStopsTheProcess(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "tail -f /dev/null", "timeout": 60000}))
	opts := cli.Options(model)
	opts.PermissionMode = claude.ModeBypassPermissions
	for m, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.(*claude.AssistantMessage); ok {
			break
		}
	}
	// the cleanup of claudetest.CLI fails the test if the CLI or its shell is left
}

func TestQueryStream_SendsEachPrompt(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Func(func(r *script.Request) script.Turn { return script.Text("got it") }).Always())
	prompts := func(yield func(claude.Prompt, error) bool) {
		for _, text := range []string{"one", "two", "three"} {
			if !yield(claude.Text(text), nil) {
				return
			}
		}
	}
	_, messages, err := collect(claude.QueryStream(t.Context(), prompts, cli.Options(model)))
	if err != nil {
		t.Fatal(err)
	}
	if results := of[*claude.ResultMessage](messages); len(results) == 0 {
		t.Errorf("no result at all")
	}
	last := model.LastRequest()
	for _, text := range []string{"one", "two", "three"} {
		if !last.SawText(text) {
			t.Errorf("the model never saw %q", text)
		}
	}
}

func TestQuery_APIErrorIsAResultError(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Fail(403, "not you").Always())
	end, _, err := collect(claude.Query(t.Context(), "hi", cli.Options(model)))
	var failed *claude.ResultError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want a ResultError", err)
	}
	if failed.APIErrorStatus != 403 || !strings.Contains(advice.Text(failed), "not you") {
		t.Errorf("status %d, text %q; want 403 and the API's words", failed.APIErrorStatus, failed.Error())
	}
	if end == nil || end.Answer == nil || !end.Answer.Failed() {
		t.Errorf("the error result was not delivered as a message")
	}
}

func TestQuery_MissingAuthenticationIsAClearError(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t)
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"ANTHROPIC_API_KEY": ""})
	_, _, err := collect(claude.Query(t.Context(), "hi", opts))
	var failed *claude.ResultError
	if !errors.As(err, &failed) || !strings.Contains(advice.Text(err), "login") {
		t.Errorf("error %v, want a ResultError that speaks of the login", err)
	}
}

func TestQuery_DoesNotWriteToTheHome(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("ok"))
	if _, _, err := collect(claude.Query(t.Context(), "hi", cli.Options(model))); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(cli.Home)
	if err != nil || len(left) != 0 {
		t.Errorf("the CLI wrote %v into its home (%v); everything belongs below CLAUDE_CONFIG_DIR", left, err)
	}
	if transcripts, _ := filepath.Glob(filepath.Join(cli.Config, "projects", "*", "*.jsonl")); len(transcripts) != 1 {
		t.Errorf("transcripts %v, want one below CLAUDE_CONFIG_DIR", transcripts)
	}
}

func TestClient_ClearStartsAFreshConversation(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("First."), script.Text("Second."))
	c := claudetest.Connect(t, cli.Options(model))
	first, _ := turn(t, c, "remember the word marzipan")
	cleared, messages := turn(t, c, "/clear")
	if resets := of[*claude.ConversationReset](messages); len(resets) != 1 {
		t.Errorf("%d resets, want 1", len(resets))
	}
	if cleared.Answer.NumTurns != 0 {
		t.Errorf("/clear took %d model turns", cleared.Answer.NumTurns)
	}
	second, _ := turn(t, c, "which word?")
	if model.LastRequest().SawText("marzipan") {
		t.Errorf("the model still sees the conversation from before /clear")
	}
	if first.Answer.SessionID == second.Answer.SessionID {
		t.Errorf("both conversations have the id %s", first.Answer.SessionID)
	}
}

func TestPrompt_NoTurnYieldsNoMessages(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Understood."))
	c := claudetest.Connect(t, cli.Options(model))
	_, messages, err := collect(c.Turn(t.Context(), claude.Prompt{Text: "the word is marzipan", NoTurn: true}))
	if err != nil || len(messages) != 0 {
		t.Errorf("a prompt without a turn yields %d messages, error %v; want none", len(messages), err)
	}
	turn(t, c, "go on")
	if len(model.Requests()) != 1 || !model.LastRequest().SawText("marzipan") {
		t.Errorf("the model got %d requests; want one, with both prompts", len(model.Requests()))
	}
}

// The CLI takes a tool that it does not have without a word; we do not.
func TestOptionTools_UnknownToolIsLogged(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("One."), script.Text("Two."))
	var logged bytes.Buffer
	opts := cli.Options(model)
	opts.Tools = []string{"Read", "Agent", "Abacus"}
	opts.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	c := claudetest.Connect(t, opts)
	turn(t, c, "one")
	turn(t, c, "two")
	if got := strings.Count(logged.String(), "tool=Abacus"); got != 1 {
		t.Errorf("the missing tool is named %d times, want once:\n%s", got, logged.String())
	}
	if got := logged.String(); strings.Contains(got, "tool=Read") || strings.Contains(got, "tool=Agent") {
		t.Errorf("a tool that exists is called missing:\n%s", got)
	}
}

// A second loop over messages inside of a loop would wait for its end, and so for itself.
func TestMessages_SecondLoopFails(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize(`{}`)
		s.Turn("One.")
		s.Turn("Two.")
		s.UntilEOF()
	})
	c := claudetest.Connect(t, cli.Options())
	loops := map[string]func() error{
		"Turn":     func() error { _, _, err := collect(c.Turn(t.Context(), claude.Text("inside"))); return err },
		"Messages": func() error { _, _, err := collect(c.Messages()); return err },
		"Lines": func() error {
			for _, err := range c.Lines() {
				return err
			}
			return nil
		},
	}
	tryAll := func(where string) {
		for name, loop := range loops {
			if err := loop(); !errors.Is(err, claude.ErrReading) {
				t.Errorf("%s inside of %s gets %v, want ErrReading", name, where, err)
			}
		}
	}
	for _, err := range c.Turn(t.Context(), claude.Text("go")) {
		if err != nil {
			t.Fatal(err)
		}
		tryAll("Turn")
	}
	if err := c.Send(t.Context(), claude.Text("go on")); err != nil {
		t.Fatal(err)
	}
	for m, err := range c.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		tryAll("Messages")
		if _, over := m.(*claude.TurnEnd); over {
			break
		}
	}
}
