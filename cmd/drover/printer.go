// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-agents/drover/claude"
)

// A printer writes what happens as plain lines that a person can follow, each when it is known.
type printer struct {
	out     io.Writer
	work    string // folder of the project; paths are shown relative to it
	started time.Time
	calls   map[string]printedCall
	tools   int
}

// A printedCall waits for its result.
type printedCall struct {
	name, subject string
	begun         time.Time
}

func newPrinter(out io.Writer, work string) *printer {
	return &printer{out: out, work: work, started: time.Now(), calls: map[string]printedCall{}}
}

// line writes seconds since the start, what it is, what it is about, what came of it, and how long
// it took.
func (p *printer) line(what, subject, outcome, took string) {
	text := fmt.Sprintf("  %04.1f  %-12s %-52s %-12s %9s", p.elapsed().Seconds(), what, clipRunes(subject, 52), outcome, took)
	fmt.Fprintln(p.out, strings.TrimRight(text, " "))
}

func (p *printer) elapsed() time.Duration { return time.Since(p.started) }

func (p *printer) setUp(init *claude.InitializeResult) {
	fmt.Fprintf(p.out, "set-up    claude %s  ok    model: scripted, no key needed\n", init.Version)
	fmt.Fprintf(p.out, "run       review of the bundled shop, with Read, Bash and one Go tool\n\n")
}

func (p *printer) message(m claude.Message) {
	switch m := m.(type) {
	case *claude.AssistantMessage:
		for _, b := range m.Content {
			p.block(b)
		}
	case *claude.UserMessage:
		for _, b := range m.Content {
			if r, ok := b.(*claude.ToolResultBlock); ok {
				p.toolResult(r)
			}
		}
	case *claude.APIRetry:
		p.line("retry", m.Error, "", "")
	}
}

func (p *printer) block(b claude.Block) {
	switch b := b.(type) {
	case *claude.TextBlock:
		p.line("model", b.Text, "", "")
	case *claude.ThinkingBlock:
		p.line("thinking", b.Thinking, "", "")
	case *claude.ToolUseBlock:
		p.calls[b.ID] = p.newCall(b)
	}
}

// newCall names a call as a person would: our own tools without their server, the tool that takes
// the answer as what it is.
func (p *printer) newCall(b *claude.ToolUseBlock) printedCall {
	call := printedCall{name: b.Name, subject: p.subject(b.Input), begun: time.Now()}
	if b.Name == "StructuredOutput" {
		call.name, call.subject = "answer", "as Review"
	}
	if own, ok := strings.CutPrefix(b.Name, "mcp__demo__"); ok {
		call.name = own
	}
	return call
}

// subject is what a call is about: the file, the command, or the whole input.
func (p *printer) subject(input json.RawMessage) string {
	var known struct {
		Path    string `json:"file_path"`
		Command string `json:"command"`
	}
	_ = json.Unmarshal(input, &known) // other inputs are shown as they are
	if rel, err := filepath.Rel(p.work, known.Path); err == nil && filepath.IsLocal(rel) {
		known.Path = rel
	}
	return cmp.Or(known.Path, known.Command, string(input))
}

func (p *printer) toolResult(r *claude.ToolResultBlock) {
	call := p.calls[r.ToolUseID]
	p.tools++
	outcome := sizeOf(r.Text())
	switch {
	case r.IsError:
		outcome = "failed"
	case call.name == "answer":
		outcome = "accepted"
	}
	p.line(call.name, call.subject, outcome, fmt.Sprintf("%.0f ms", float64(time.Since(call.begun).Microseconds())/1000))
}

// sizeOf is a short result itself, or else how many lines it has.
func sizeOf(result string) string {
	result = strings.TrimSpace(result)
	n := strings.Count(result, "\n") + 1
	switch {
	case n == 1 && len(result) <= 12:
		return result
	case n == 1:
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

// clipRunes is the first line of text, cut to a number of characters.
func clipRunes(text string, most int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(first); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return first
}

// done is the summary of a run that came to its end.
func (p *printer) done(answer *claude.ResultMessage) {
	tokens := answer.Usage.InputTokens + answer.Usage.OutputTokens
	p.line("done", fmt.Sprintf("%s: %d tool calls, %d tokens, $%.4f", answer.Subtype(), p.tools, tokens, answer.TotalCostUSD),
		"", fmt.Sprintf("%.1f s", p.elapsed().Seconds()))
}

// stopped is the summary of a run that did not.
func (p *printer) stopped(why error) {
	p.line("stopped", fmt.Sprintf("after %d tool calls: %v", p.tools, why), "", fmt.Sprintf("%.1f s", p.elapsed().Seconds()))
}

// review prints the answer.
func (p *printer) review(answer json.RawMessage) error {
	var r review
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the answer is no review: %w", err)
	}
	fmt.Fprintf(p.out, "\nReview\n  Summary  %s\n", r.Summary)
	for i, issue := range r.Issues {
		label := ""
		if i == 0 {
			label = "Issues"
		}
		fmt.Fprintf(p.out, "  %-8s %d. %s\n", label, i+1, issue)
	}
	return nil
}
