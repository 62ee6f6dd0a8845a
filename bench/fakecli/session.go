// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-agents/drover/bench/internal/corpus"
	"github.com/drover-agents/drover/bench/internal/rig"
)

// A session is one life of the fake CLI. Requests to the host are written on the goroutine that
// reads standard input, streams on one of their own.
type session struct {
	scenario rig.Scenario
	count    int
	die      string
	states   bool // the host reads session states
	servers  []string
	callback string // id of the host's first hook
	block    *corpus.Block

	asking *asking
	out    sync.Mutex
}

func newSession(args []string) (*session, error) {
	s := &session{
		scenario: rig.Scenario(os.Getenv(rig.EnvScenario)),
		die:      os.Getenv(rig.EnvDie),
		states:   os.Getenv("CLAUDE_CODE_SDK_READS_SESSION_STATE") == "1",
		servers:  configuredServers(args),
	}
	if text := os.Getenv(rig.EnvCount); text != "" {
		count, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rig.EnvCount, err)
		}
		s.count = count
	}
	switch s.scenario {
	case rig.Text:
		s.block = corpus.Text()
	case rig.Mixed, rig.Death:
		s.block = corpus.Mixed()
	case rig.Big:
		s.block = corpus.Big()
	case rig.Hooks, rig.Hooks16, rig.Permissions, rig.MCP:
	default:
		return nil, fmt.Errorf("%s is %q, which is not a scenario", rig.EnvScenario, s.scenario)
	}
	return s, nil
}

// configuredServers are the in-process servers that the host names on the command line; some name
// them in the handshake instead.
func configuredServers(args []string) []string {
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--mcp-config=")
		if arg == "--mcp-config" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if !ok {
			continue
		}
		var config struct {
			MCPServers map[string]json.RawMessage `json:"mcpServers"`
		}
		if !strings.HasPrefix(value, "{") {
			file, _ := os.ReadFile(value)
			value = string(file)
		}
		_ = json.Unmarshal([]byte(value), &config)
		return slices.Sorted(maps.Keys(config.MCPServers))
	}
	return nil
}

// serve reads lines until the host closes standard input.
func (s *session) serve() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			rest, readErr := in.ReadBytes('\n')
			line, err = append(bytes.Clone(line), rest...), readErr
		}
		if len(bytes.TrimSpace(line)) > 0 {
			s.take(line)
		}
		if err != nil {
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, "fakecli: reading:", err)
				os.Exit(1)
			}
			return
		}
	}
}

func (s *session) take(line []byte) {
	if s.asking != nil && bytes.Contains(line, []byte(`"control_response"`)) {
		s.asking.answered(line)
		return
	}
	var m struct {
		Type      string
		RequestID string `json:"request_id"`
		Request   json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		fmt.Fprintf(os.Stderr, "fakecli: a line is not JSON: %v\n", err)
		os.Exit(1)
	}
	switch m.Type {
	case "control_request":
		s.control(m.RequestID, m.Request)
	case "user":
		s.prompt()
	}
}

// write writes whole lines.
func (s *session) write(lines []byte) {
	s.out.Lock()
	defer s.out.Unlock()
	if _, err := os.Stdout.Write(lines); err != nil {
		os.Exit(0) // the host has gone
	}
}

func (s *session) prompt() {
	s.write([]byte(corpus.Init))
	switch {
	case s.die != "":
		go s.deadlyStream()
	case s.block != nil:
		go s.stream()
	default:
		s.ask()
	}
}

func (s *session) stream() {
	for left := s.count; left > 0; left -= s.block.Lines() {
		s.write(s.block.Prefix(left))
	}
	s.finish()
}

// finish ends the turn as the CLI does.
func (s *session) finish() {
	s.write([]byte(corpus.Result))
	if s.states {
		s.write([]byte(corpus.Idle))
	}
}

func (s *session) report(r rig.Report) {
	raw, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(os.Getenv(rig.EnvReport), raw, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakecli: no report:", err)
		os.Exit(2)
	}
}
