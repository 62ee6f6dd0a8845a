// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

// kinds decode the payloads that a reader of JSON gets as an extension.
var kinds = map[event.Kind]func([]byte) any{
	isolation.KindProtection: decoded[isolation.Protection],
	isolation.KindBreach:     decoded[isolation.Breach],
	workspace.KindRestored:   decoded[workspace.Restored],
	gateway.KindConnection:   decoded[proxy.Connection],
	gateway.KindLimit:        decoded[gateway.Limit],
	gateway.KindBackOff:      decoded[gateway.BackOff],
	gateway.KindModelCall:    decoded[gateway.ModelCall],

	drover.CompletionFailed{}.EventKind(): decoded[drover.CompletionFailed],
}

// agentKinds decode the payloads that agents add, by what follows the name of the agent in their kind.
var agentKinds = map[string]func([]byte) any{
	"task": decoded[agentTask], "tokens": decoded[agentTokens], "compaction": decoded[agentCompaction], "rate_limit": decoded[agentRateLimit],
}

// decoded is a value of JSON, or nil.
func decoded[P any](text []byte) any {
	var p P
	if json.Unmarshal(text, &p) != nil {
		return nil
	}
	return p
}

// typed is a payload in the type that a row is made of. Which agent has added it does not matter, so that the view knows none.
func typed(p event.Payload) any {
	raw, isRaw := p.(event.Extension)
	if decode, known := kinds[p.EventKind()]; known && isRaw {
		return decode(raw.Data)
	}
	_, name, _ := strings.Cut(string(p.EventKind()), ":")
	decode, known := agentKinds[name]
	if !known {
		return p
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	return decode(text)
}

// What agents add, as docs/events.md has it.
type (
	agentTask struct {
		TaskID                              string
		State                               string
		ToolUseID                           event.CallID
		Background                          bool
		Description, Status, Summary, Error string
		DurationMS                          int64
	}
	agentTokens     struct{ Input, Output int64 }
	agentCompaction struct {
		TokensBefore int64
		TokensAfter  *int64
	}
	agentRateLimit struct {
		Status, RateLimitType string
		Utilization           *float64
	}
)

// notice is the row of a kind that a part of Drover or an agent adds, if a person needs it.
func (l *lines) notice(r row, p event.Payload) []row {
	switch p := typed(p).(type) {
	case agentTask:
		return l.task(r, p)
	case agentTokens:
		l.usage.Tokens = &event.Tokens{Coverage: event.CoverageComplete}
		l.usage.Tokens.Totals.Input.Total, l.usage.Tokens.Totals.Output.Total = p.Input, p.Output
		return nil
	case gateway.ModelCall:
		l.paid(p.CostUSD)
		return nil
	case drover.CompletionFailed:
		l.unfinished = guard.Incomplete(p.Feedback).Missing()
		r.what, r.rows, r.tone = "check", errorRows, toneBad
		r.subject = joinWords(fmt.Sprintf("failed, round %d", p.Round), l.unfinished)
		if !p.SentBack {
			r.subject = joinWords("failed, no rounds are left", l.unfinished)
		}
	case agentCompaction:
		r.what, r.subject = "compact", "the conversation was summarised"
		r.figures = safetext.Thousands(p.TokensBefore) + " tok"
		if p.TokensAfter != nil {
			r.figures = safetext.Thousands(p.TokensBefore) + " to " + safetext.Thousands(*p.TokensAfter) + " tok"
		}
	case agentRateLimit:
		r.what, r.subject, r.tone = "limit", joinWords(strings.ReplaceAll(p.RateLimitType, "_", " "), strings.ReplaceAll(p.Status, "_", " ")), toneBad
		if p.Utilization != nil {
			r.figures = fmt.Sprintf("%.0f %% used", 100**p.Utilization)
		}
	default:
		return l.cellRow(r, p)
	}
	return []row{r}
}

// paid adds the cost of a model call to that of the run. A call without a price adds nothing.
func (l *lines) paid(usd float64) {
	if usd > 0 {
		l.usage.Cost = &event.Cost{USD: l.usage.TotalCostUSD() + usd}
	}
}

// A task is something that the agent runs in the background.
type task struct {
	description string
	announced   bool // that it is in the background
}

// task shows that a task continues in the background, and its end. A task that a call waits for is shown with the call.
func (l *lines) task(r row, p agentTask) []row {
	t := l.tasks[p.TaskID]
	if t == nil {
		t = new(task)
		l.tasks[p.TaskID] = t
	}
	t.description = cmp.Or(t.description, p.Description)
	r.what, r.subject = "task", cmp.Or(t.description, p.TaskID)
	begins := p.Background && !t.announced
	switch {
	case p.State == "ended" && (t.announced || !slices.ContainsFunc(l.order, func(c *call) bool { return c.id == p.ToolUseID })):
		delete(l.tasks, p.TaskID)
		r.figures = cmp.Or(p.Status, "over")
		if p.Status != "completed" {
			r.mark, r.tone, r.because, r.figures = cmp.Or(p.Status, "over"), toneBad, cmp.Or(safetext.FirstLine(p.Error), safetext.FirstLine(p.Summary)), ""
		}
		if p.DurationMS > 0 {
			r.took = safetext.Span(time.Duration(p.DurationMS) * time.Millisecond)
		}
	case begins:
		t.announced = true
		r.figures = "goes on in the background"
	default:
		return nil
	}
	return []row{r}
}

// cellRow is the row of an event of a cell or its gateway, if a person needs it. Allowed connections are not shown.
func (l *lines) cellRow(r row, p any) []row {
	switch p := p.(type) {
	case isolation.Protection:
		r.what, r.subject = "isolation", isolationText(p)
		if len(p.Missing) > 0 {
			r.mark, r.because, r.tone = "lacking", strings.Join(p.Missing, "; "), toneBad
		}
	case isolation.Breach:
		r.what, r.subject, r.rows, r.tone = "breach", safetext.FirstLine(l.opts.text(p.Message)), errorRows, toneBad
	case proxy.Connection:
		if p.Verdict != proxy.Denied {
			return nil
		}
		r.what, r.subject, r.mark, r.because, r.tone = "network", hostPort(p), "denied", p.Reason, toneBad
	case workspace.Restored:
		r.what, r.subject = "put back", restoredText(p)
		if len(p.Conflicts) > 0 {
			r.mark, r.because, r.tone = "partly", p.Conflicts[len(p.Conflicts)-1].Reason, toneBad
		}
		if p.Error != "" {
			r.mark, r.because, r.tone = "failed", p.Error, toneBad
		}
	case gateway.Limit:
		r.what, r.subject, r.rows, r.tone = "limit", l.opts.text(p.Reason), errorRows, toneBad
	case gateway.BackOff:
		r.what, r.subject = "waiting", fmt.Sprintf("the model's service has too much to do (%d)", p.Status)
		r.figures = safetext.Span(time.Duration(p.WaitMS * float64(time.Millisecond)))
	default:
		return nil
	}
	return []row{r}
}

// restoredText lists the paths that a rollback has restored. A restored path can have a conflict as well.
func restoredText(r workspace.Restored) string {
	all := slices.Clone(r.Restored)
	for _, c := range r.Conflicts {
		all = append(all, c.Path)
	}
	if len(all) == 0 {
		return "nothing"
	}
	text := all[len(all)-1]
	slices.Sort(all)
	if more := len(slices.Compact(all)) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func isolationText(p isolation.Protection) string {
	words := map[isolation.Level]string{
		isolation.LevelCell:     "files, processes and network of its own",
		isolation.LevelLandlock: "files and TCP are limited by the kernel",
		isolation.LevelSandbox:  "only commands of the Bash tool are confined",
		isolation.LevelHost:     "no isolation",
	}[p.Level]
	return joinWords(p.Level.String(), words)
}

func hostPort(c proxy.Connection) string {
	if c.Port == 0 {
		return c.Host
	}
	return net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
}
