// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

const (
	playVariable    = "DROVER_TEST_PLAY"
	playDirVariable = "DROVER_TEST_PLAY_DIR"
)

// A player plays events on the terminal that it is started in, as the command does.
type player struct {
	dir string
	View
	gate.Approver
}

// plays are run by this test binary inside a terminal.
var plays = map[string]func(ctx context.Context, p *player){
	"run":      playRun,
	"writing":  playWriting,
	"hostile":  playHostile,
	"ask":      playAsk,
	"edit":     playEdit,
	"withdraw": playWithdraw,
	"other":    playOther,
	"queue":    playQueue,
	"stop":     playStop,
	"panic":    func(context.Context, *player) { panic("at the disco") },
	"quiet":    playRun,
	"dumb":     playAsk,

	"dumb-other": playOther,

	"background": playRun,
}

func init() {
	if name := os.Getenv(playVariable); name != "" {
		play(name)
	}
}

// play runs a play in place of the tests, and ends the process with its exit code.
func play(name string) {
	if strings.HasPrefix(name, "dumb") {
		_ = os.Setenv("TERM", "dumb")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	p := &player{dir: os.Getenv(playDirVariable)}
	work := map[string]string{"edit": p.dir}
	p.View, p.Approver = New(os.Stdin, os.Stdout, Options{Dir: cmp.Or(work[name], "/work"), MaxUSD: 0.5, Quiet: name == "quiet", Catalogue: catalogue.Tools()})
	func() {
		defer p.Close()
		plays[name](ctx, p)
	}()
	interrupted := ctx.Err() != nil
	stop()
	if interrupted {
		os.Exit(130)
	}
	os.Exit(0)
}

// log writes a line that the test can read.
func (p *player) log(format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(f, format+"\n", args...)
	_ = f.Close()
}

// await waits for a step of the test, or for the end of ctx.
func (p *player) await(ctx context.Context, step string) {
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(p.dir, step)); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *player) show(payloads ...event.Payload) {
	for _, payload := range payloads {
		p.Show(event.New(payload))
	}
}

func toolCall(id, name, input string) event.ToolCall {
	return event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(input)}
}

func toolResult(id, name, output string) event.ToolResult {
	text, _ := json.Marshal(output)
	return event.ToolResult{ID: event.CallID(id), Name: name, Status: event.ToolSuccess, Output: text}
}

func answered(text string) event.Done {
	return event.Done{Status: event.DoneSuccess, Result: text, Duration: time.Second, Usage: event.Usage{ToolUses: 1, Cost: &event.Cost{USD: 0.021}}}
}

func playRun(ctx context.Context, p *player) {
	p.show(event.Init{Model: "a-model", Tools: []string{"Bash"}}, event.Text{Content: strings.Repeat("many words ", 60)})
	p.show(toolCall("1", "Bash", `{"command":"npm test -- --`+strings.Repeat("very-", 60)+`long"}`))
	p.await(ctx, "result")
	p.show(toolResult("1", "Bash", "ok"))
	p.await(ctx, "more")
	for i := range 60 {
		id := fmt.Sprint("more", i)
		p.show(toolCall(id, "Read", `{"file_path":"/work/file`+fmt.Sprint(i)+`.go"}`), toolResult(id, "Read", "ok"))
	}
	p.await(ctx, "done")
	p.show(answered("The answer\nis 42."))
}

// playWriting writes a text a few times as fast as it may be drawn.
func playWriting(ctx context.Context, p *player) {
	p.show(event.Init{Model: "a-model", Tools: []string{"Bash"}})
	p.await(ctx, "write")
	for i := range 200 {
		p.show(event.TextDelta{Delta: fmt.Sprintf("word %d\n", i)})
		time.Sleep(5 * time.Millisecond)
	}
	p.show(event.TextDelta{Delta: "the end"})
	p.log("written")
	p.await(ctx, "done")
	p.show(event.Text{Content: "all"}, answered("all"))
}

func playHostile(ctx context.Context, p *player) {
	p.show(event.Text{Content: "\x1b[2J\x1b[31mred\rback " + strings.Repeat("漢字", 60) + " e\u0301"})
	p.show(toolCall("1", "Bash", `{"command":"echo \u001b]0;title\u0007 `+strings.Repeat("漢字", 60)+`"}`))
	p.await(ctx, "write")
	p.show(toolResult("1", "Bash", "\x1b[31m"), event.TextDelta{Delta: "\x1b[2J\x1b[H" + strings.Repeat("漢字", 100)})
	p.await(ctx, "done")
	p.show(answered("\x1b[31mred\x1b[H"))
}

// asked asks a question and logs the answer.
func (p *player) asked(ctx context.Context, id, name, input string) {
	q := gate.Question{
		Call: toolCall(id, name, input), Reason: name + " needs the capability shellExecute, which has to be approved.",
		Policy: "capabilities", Risk: tool.Dangerous, Needs: tool.ShellExecute,
	}
	a, err := p.Approve(ctx, q)
	switch {
	case errors.Is(err, context.Canceled):
		p.log("%s: withdrawn", id)
	case err != nil:
		p.log("%s: %v", id, err)
	case strings.Contains(a.Reason, "reason"):
		p.log("%s: %q", id, a.Reason)
	default:
		p.log("%s: %s, remember %d", id, a.Verdict, a.Remember)
	}
}

func playAsk(ctx context.Context, p *player) {
	p.show(toolCall("1", "Bash", `{"command":"npm test"}`))
	p.await(ctx, "ask")
	p.asked(ctx, "once", "Bash", `{"command":"npm test"}`)
	p.asked(ctx, "this run", "Write", `{"file_path":"/work/a.txt","content":"text"}`)
	p.asked(ctx, "no", "mcp__drover__deploy", `{}`)
	p.asked(ctx, "why", "Bash", `{"command":"`+strings.Repeat("long ", 100)+`the last word"}`)
	p.await(ctx, "done")
	p.show(answered("asked"))
}

// playEdit asks about an edit of a file that is there, before its call is reported.
func playEdit(ctx context.Context, p *player) {
	input := fmt.Sprintf(`{"file_path":"a.txt","content":%q}`, strings.Repeat("a line\n", 30))
	p.show(event.Text{Content: "I write it."})
	p.asked(ctx, "edit", "Write", input)
	call := toolCall("edit", "Write", input)
	p.show(call, toolResult("edit", "Write", "ok"), answered("done"))
}

func playWithdraw(ctx context.Context, p *player) {
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		p.await(ctx, "withdraw")
		cancel()
	}()
	p.asked(short, "first", "Bash", `{"command":"withdrawn"}`)
	p.await(ctx, "ask")
	p.asked(ctx, "second", "Bash", `{"command":"asked"}`)
}

// playOther asks questions that are answered elsewhere.
func playOther(ctx context.Context, p *player) {
	for _, verdict := range []event.Verdict{event.Allow, event.Deny} {
		here, cancel := context.WithCancelCause(ctx)
		go func() {
			p.await(ctx, verdict.String())
			cancel(gate.AnsweredElsewhere{Where: "on the page", Verdict: verdict})
		}()
		p.asked(here, verdict.String(), "Bash", `{"command":"npm test"}`)
	}
	p.await(ctx, "done")
	p.show(answered("asked"))
}

func playQueue(ctx context.Context, p *player) {
	answers := make(chan struct{})
	for i := range 3 {
		go func() {
			p.asked(ctx, "queued", "Bash", fmt.Sprintf(`{"command":"question %d"}`, i))
			answers <- struct{}{}
		}()
	}
	p.show(event.Text{Content: "a line above"})
	for range 3 {
		<-answers
		p.show(event.Text{Content: "an answer came"})
	}
}

func playStop(ctx context.Context, p *player) {
	p.show(toolCall("1", "Bash", `{"command":"npm test"}`))
	p.await(ctx, "ask")
	if ctx.Err() == nil {
		p.asked(ctx, "stopped", "Bash", `{"command":"npm publish"}`)
	}
	p.Stopping()
	p.await(context.Background(), "done")
	p.show(event.Done{Status: event.DoneInterrupted, Reason: "interrupt", Duration: time.Second, Usage: event.Usage{ToolUses: 1}})
}
