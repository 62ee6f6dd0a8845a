// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/isolation"
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
		r.what, r.subject, r.rows, r.tone = "breach", firstLine(p.Message), errorRows, toneBad
	case proxy.Connection:
		if p.Verdict != proxy.Denied {
			return nil
		}
		r.what, r.subject, r.mark, r.because, r.tone = "network", hostPort(p), "denied", p.Reason, toneBad
	case gateway.Limit:
		r.what, r.subject, r.rows, r.tone = "limit", p.Reason, errorRows, toneBad
	case gateway.BackOff:
		r.what, r.subject = "waiting", fmt.Sprintf("the model's service has too much to do (%d)", p.Status)
		r.figures = span(time.Duration(p.WaitMS * float64(time.Millisecond)))
	default:
		return nil
	}
	return []row{r}
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
