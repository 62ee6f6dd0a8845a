// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/bench/internal/corpus"
	"github.com/drover-agents/drover/bench/internal/rig"
)

// An asking is a run of requests to the host, with at most atOnce unanswered. Those in setup are
// sent one by one before the clock starts.
type asking struct {
	session *session
	setup   []template
	request template
	want    []byte // a right answer contains it
	count   int
	atOnce  int

	sent, answers int
	started       time.Time
	report        rig.Report
	buf           []byte
}

// A template is a request line, split where its number goes.
type template [][]byte

func newTemplate(body string) template {
	line := `{"type":"control_request","request_id":"ask-#","request":` + body + "}\n"
	return bytes.Split([]byte(line), []byte("#"))
}

func (t template) appendTo(dst []byte, number int) []byte {
	for i, part := range t {
		if i > 0 {
			dst = strconv.AppendInt(dst, int64(number), 10)
		}
		dst = append(dst, part...)
	}
	return dst
}

func (s *session) ask() {
	a := &asking{session: s, count: s.count, atOnce: 1, want: []byte(`"success"`)}
	switch s.scenario {
	case rig.Hooks16:
		a.atOnce = 16
		a.request = s.hookRequest()
	case rig.Hooks:
		a.request = s.hookRequest()
	case rig.Permissions:
		a.request = newTemplate(corpus.Permission)
		a.want = []byte(`"allow"`)
	case rig.MCP:
		a.request = s.mcpRequest(corpus.CallTool)
		a.setup = []template{s.mcpRequest(corpus.Initialize), s.mcpRequest(corpus.Ready), s.mcpRequest(corpus.ListTools)}
		a.want = []byte(corpus.Sum)
	}
	s.asking = a
	a.next()
}

func (s *session) hookRequest() template {
	if s.callback == "" {
		fmt.Fprintln(os.Stderr, "fakecli: the host has no PreToolUse hook")
		os.Exit(2)
	}
	return newTemplate(strings.Replace(corpus.Hook, "CALLBACK", s.callback, 1))
}

func (s *session) mcpRequest(message string) template {
	if len(s.servers) == 0 {
		fmt.Fprintln(os.Stderr, "fakecli: the host has no in-process MCP server")
		os.Exit(2)
	}
	return newTemplate(`{"subtype":"mcp_message","server_name":"` + s.servers[0] + `","message":` + message + `}`)
}

// next sends a request of the setup, or as many as may be open.
func (a *asking) next() {
	a.buf = a.buf[:0]
	if len(a.setup) > 0 {
		a.buf = a.setup[0].appendTo(a.buf, -len(a.setup))
		a.session.write(a.buf)
		return
	}
	if a.started.IsZero() {
		a.started = time.Now()
	}
	for a.sent < a.count && a.sent-a.answers < a.atOnce {
		a.buf = a.request.appendTo(a.buf, 100+a.sent)
		a.sent++
	}
	if len(a.buf) > 0 {
		a.session.write(a.buf)
	}
}

func (a *asking) answered(line []byte) {
	if len(a.setup) > 0 {
		a.check(line, []byte(`"success"`))
		a.setup = a.setup[1:]
		a.next()
		return
	}
	a.answers++
	a.check(line, a.want)
	if a.answers < a.count {
		a.next()
		return
	}
	a.report.RoundTrips = a.answers
	a.report.Seconds = time.Since(a.started).Seconds()
	a.session.report(a.report)
	a.session.finish()
	a.session.asking = nil
}

func (a *asking) check(line, want []byte) {
	if bytes.Contains(line, want) && bytes.Contains(line, []byte(`"success"`)) {
		return
	}
	a.report.Wrong++
	if a.report.Example == "" {
		a.report.Example = fmt.Sprintf("%.300s", line)
	}
}
