// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"strings"
	"time"
)

// maxShown is how many bytes of a text of an agent are in the text of an event.
const maxShown = 200

func shown[T ~string | ~[]byte](text T) string {
	if len(text) > maxShown {
		return strings.ToValidUTF8(string(text[:maxShown]), "") + "…"
	}
	return string(text)
}

// String is the event in short, for people: "3 tool_use: Read {"path":"a.go"}".
func (e Event) String() string {
	var b strings.Builder
	if e.Seq > 0 {
		fmt.Fprintf(&b, "%d ", e.Seq)
	}
	b.WriteString(string(e.Kind))
	if text := strings.TrimSpace(fmt.Sprint(e.Payload)); e.Payload != nil && text != "" {
		b.WriteString(": " + text)
	}
	return b.String()
}

// String is the model, the working directory, and how many tools there are.
func (i Init) String() string {
	return fmt.Sprintf("%s in %s, %s", i.Model, i.Dir, plural(int64(len(i.Tools)), "tool"))
}

// String is the text, which may be cut.
func (t Text) String() string { return shown(t.Content) }

// String is the part.
func (t TextDelta) String() string { return t.Delta }

// String is the summary, which may be cut.
func (t Thinking) String() string { return shown(t.Summary) }

// String is the tool and its input, which may be cut.
func (c ToolCall) String() string { return c.Name + " " + shown(objectOr(c.Input)) }

// String is the tool, what became of the call, and why.
func (r ToolResult) String() string {
	text := fmt.Sprintf("%s %s", r.Name, r.Status)
	if r.Duration > 0 {
		text += " in " + r.Duration.Round(time.Millisecond).String()
	}
	if r.Failure != nil {
		text += ": " + shown(r.Failure.Message)
	}
	return text
}

// String is the message, and the code where there is one: "the command ran too long (TIMEOUT)".
func (f ToolFailure) String() string {
	if f.Code == "" {
		return shown(f.Message)
	}
	return shown(f.Message) + " (" + f.Code + ")"
}

// String is how much is done, and the message: "3 of 10: files".
func (p ToolProgress) String() string {
	text := fmt.Sprint(p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %v", p.Total)
	}
	if p.Message != "" {
		text += ": " + shown(p.Message)
	}
	return text
}

// String is the level and the message.
func (l ToolLog) String() string { return l.Level + ": " + shown(l.Message) }

// String is the tool, the step, and its reason: "deploy denied: it is late".
func (s ToolStep) String() string {
	text := s.Name + " " + s.Step
	if s.Detail != "" {
		text += ": " + shown(s.Detail)
	}
	return text
}

// String is the tool, its input, and why there is a question.
func (r PermissionRequest) String() string {
	text := r.Name + " " + shown(objectOr(r.Input))
	if r.Reason != "" {
		text += ": " + shown(r.Reason)
	}
	return text
}

// String is the tool, the verdict, the policy, and the reason: "Bash: deny by deny-list: Bash is denied".
func (d Decision) String() string {
	text := d.Verdict.String()
	if d.Tool != "" {
		text = d.Tool + ": " + text
	}
	if d.Policy != "" {
		text += " by " + d.Policy
	}
	if d.Reason != "" {
		text += ": " + shown(d.Reason)
	}
	return text
}

// String is the policy, its verdict, and the reason: "risk: deny: it changes files". A policy without a verdict abstained.
func (v PolicyVerdict) String() string {
	text := v.Policy + ": abstained"
	if v.Verdict != nil {
		text = v.Policy + ": " + v.Verdict.String()
	}
	if v.Reason != "" {
		text += ": " + shown(v.Reason)
	}
	return text
}

// String is how the run ended, what it consumed, and its answer, which may be cut.
func (d Done) String() string {
	text := string(d.Status)
	if d.Reason != "" {
		text += " (" + shown(d.Reason) + ")"
	}
	text += ", " + d.Usage.String()
	if answer := strings.TrimSpace(d.Result); answer != "" {
		text += ": " + shown(answer)
	}
	return text
}

// String is the data, which may be cut.
func (e Extension) String() string { return shown(e.Data) }

// String is what was consumed, as far as it is known: "1,204 tokens (1,100 in, 104 out), $0.0060, 8 tool calls".
func (u Usage) String() string {
	var parts []string
	if u.Tokens != nil {
		parts = append(parts, u.Tokens.String())
	}
	if u.Cost != nil {
		parts = append(parts, u.Cost.String())
	}
	return strings.Join(append(parts, plural(int64(u.ToolUses), "tool call")), ", ")
}

// String is the totals, and whether they are of the whole run.
func (t Tokens) String() string {
	if t.Coverage == CoveragePartial {
		return "at least " + t.Totals.String()
	}
	return t.Totals.String()
}

// String is the sum, and both directions.
func (c TokenCount) String() string {
	text := fmt.Sprintf("%s (%s in, %s out", plural(c.Input.Total+c.Output.Total, "token"), grouped(c.Input.Total), grouped(c.Output.Total))
	if cached := c.Input.CacheRead; cached != nil && *cached > 0 {
		text += ", " + grouped(*cached) + " of them from a cache"
	}
	return text + ")"
}

// String is the total, and the parts that are known: "5,204 (4,000 read from a cache)".
func (t InputTokens) String() string {
	return parts(t.Total, []*int64{t.Uncached, t.CacheRead, t.CacheWrite}, "not cached", "read from a cache", "written to a cache")
}

// String is the total, and the parts that are known: "96 (90 visible, 6 reasoning)".
func (t OutputTokens) String() string {
	return parts(t.Total, []*int64{t.Visible, t.Reasoning}, "visible", "reasoning")
}

func parts(total int64, of []*int64, names ...string) string {
	var known []string
	for i, n := range of {
		if n != nil {
			known = append(known, grouped(*n)+" "+names[i])
		}
	}
	if known == nil {
		return grouped(total)
	}
	return grouped(total) + " (" + strings.Join(known, ", ") + ")"
}

// String is how many of what: "3 web_search_request".
func (u PricedUnit) String() string { return grouped(u.Quantity) + " " + u.Name }

// String is the share of the model.
func (r TokenRecord) String() string {
	text := r.Model
	if r.Provider != "" {
		text += " (" + r.Provider + ")"
	}
	text += ": "
	if r.Requests > 0 {
		text += plural(r.Requests, "request") + ", "
	}
	text += r.Tokens.String()
	if r.Cost != nil {
		text += ", " + r.Cost.String()
	}
	for _, u := range r.PricedUnits {
		text += ", " + u.String()
	}
	return strings.TrimPrefix(text, ": ")
}

// String is the amount, to a hundredth of a cent.
func (c Cost) String() string { return fmt.Sprintf("$%.4f", c.USD) }

func plural(n int64, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return grouped(n) + " " + unit
}

// grouped is a number with commas between the thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
