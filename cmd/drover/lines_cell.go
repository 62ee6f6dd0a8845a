// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

// cellRow is the row of what a cell or its gateway tells, if a person should know it. What was allowed is
// no news.
func cellRow(r row, p event.Payload) []row {
	switch p := p.(type) {
	case isolation.Walls:
		r.what, r.subject = "walls", wallsText(p)
		if len(p.Missing) > 0 {
			r.mark, r.because, r.tone = "lacking", strings.Join(p.Missing, "; "), toneBad
		}
	case isolation.Breach:
		r.what, r.subject, r.rows, r.tone = "breach", wording.FirstLine(wording.Text(p.Message)), errorRows, toneBad
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
		r.what, r.subject, r.rows, r.tone = "limit", wording.Text(p.Reason), errorRows, toneBad
	case gateway.BackOff:
		r.what, r.subject = "waiting", fmt.Sprintf("the model's service has too much to do (%d)", p.Status)
		r.figures = span(time.Duration(p.WaitMS * float64(time.Millisecond)))
	default:
		return nil
	}
	return []row{r}
}

// restoredText says what a rollback has put back. A path can be put back and in a conflict as well.
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

// wallsText says what a level is, in few words.
func wallsText(w isolation.Walls) string {
	words := map[isolation.Level]string{
		isolation.LevelCell:     "files, processes and network of its own",
		isolation.LevelLandlock: "files and TCP are limited by the kernel",
		isolation.LevelSandbox:  "only commands of the Bash tool are confined",
		isolation.LevelHost:     "no walls",
	}[w.Level]
	return joinWords(w.Level.String(), words)
}

func hostPort(c proxy.Connection) string {
	if c.Port == 0 {
		return c.Host
	}
	return net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
}
