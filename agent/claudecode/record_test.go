// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
)

var record = flag.Bool("record", false, "run the real CLI and record its lines into testdata; -update then makes the events of them")

// TestRecord_Scenarios is how the lines in testdata were made.
func TestRecord_Scenarios(t *testing.T) {
	if !*record {
		t.Skip("records the lines of the real CLI only with -record")
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) { recordScenario(t, name, s) })
	}
}

func recordScenario(t *testing.T, name string, s scenario) {
	real := s.cli(t)
	lines := s.run(t, real)
	archive := &txtar.Archive{
		Comment: []byte(s.why + "\n"),
		Files:   []txtar.File{{Name: "lines", Data: mask(real, lines)}},
	}
	path := filepath.Join("testdata", "recorded", name+".txtar")
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCLAUDE003_RecordedRunsOnTheRealCLI runs some of the scenarios: the CLI still sends what was recorded.
func TestCLAUDE003_RecordedRunsOnTheRealCLI(t *testing.T) {
	for _, name := range []string{"partial", "denied", "interrupted_tool", "tool_oldest"} {
		t.Run(name, func(t *testing.T) {
			s := scenarios[name]
			events := func(lines []string) []string {
				n, tick := newNormaliser()
				var out []string
				for _, e := range play(t, n, tick, lines...) {
					out = append(out, outline(e))
				}
				return out
			}
			var lines []string
			for _, line := range s.run(t, s.cli(t)) {
				lines = append(lines, string(line))
			}
			if diff := cmp.Diff(events(recorded(t, name)), events(lines)); diff != "" {
				t.Errorf("events (-recorded +real):\n%s\n  next: if the CLI is another one, record again with -record, then -update", diff)
			}
		})
	}
}

// outline is what does not differ from run to run.
func outline(e event.Event) string {
	s := fmt.Sprint(e.Kind, " ", e.Turn, " ", e.CallID())
	switch p := e.Payload.(type) {
	case event.Text:
		s += p.Content
	case event.TextDelta:
		s += p.Delta
	case event.ToolResult:
		s += " " + string(p.Status)
	case event.Done:
		s += fmt.Sprint(" ", p.Status, " ", p.Usage.ToolUses, " ", p.Usage.InputTokens(), " ", p.Usage.OutputTokens())
	}
	return s
}

func (s scenario) cli(t *testing.T) *claudetest.RealCLI {
	if s.oldest {
		return claudetest.OldestCLI(t)
	}
	return claudetest.CLI(t)
}

// run has the conversation and returns the lines that the CLI wrote.
func (s scenario) run(t *testing.T, real *claudetest.RealCLI) [][]byte {
	model := claudetest.NewModel(t, s.turns...)
	opts := real.Options(model)
	if s.env != nil {
		real.SetEnv(opts, model, s.env)
	}
	if s.setup != nil {
		s.setup(t, real, opts)
	}
	if s.before != "" {
		_, opts.Resume = runOnePrompt(t, opts, s.before, nil)
	}
	prompt := s.prompt
	if prompt == "" {
		prompt = "Go on."
	}
	var during func(*testing.T, *claude.Client, claude.Message)
	if s.interruptAt != nil {
		during = interruptAt(s.interruptAt)
	}
	lines, _ := runOnePrompt(t, opts, prompt, during)
	return lines
}

// interruptAt interrupts the turn at the first message of a kind.
func interruptAt(matches func(claude.Message) bool) func(*testing.T, *claude.Client, claude.Message) {
	done := false
	return func(t *testing.T, c *claude.Client, m claude.Message) {
		if done || !matches(m) {
			return
		}
		done = true
		go func() {
			time.Sleep(300 * time.Millisecond) // the tool, or the stream, is under way
			if _, err := c.Interrupt(context.WithoutCancel(t.Context())); err != nil {
				fmt.Fprintln(os.Stderr, "interrupt:", err)
			}
		}()
	}
}

// runOnePrompt runs a process for one prompt and returns its lines.
func runOnePrompt(t *testing.T, opts *claude.Options, prompt string, during func(*testing.T, *claude.Client, claude.Message)) (lines [][]byte, session string) {
	c, err := claude.Connect(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // an error result is an error of the process too
	if err := c.Send(t.Context(), claude.Text(prompt)); err != nil {
		t.Fatal(err)
	}
	for m, err := range c.Messages() {
		if err != nil {
			t.Logf("the conversation ended: %v", err)
			break
		}
		if _, over := m.(*claude.TurnEnd); over {
			break
		}
		if during != nil {
			during(t, c, m)
		}
		lines = append(lines, bytes.Clone(m.Raw()))
		if r, ok := m.(*claude.ResultMessage); ok {
			session = r.SessionID
		}
	}
	return lines, session
}

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	ports = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	socks = regexp.MustCompile(`cc-socks/[0-9]+`)
	// bulky are lists that do not matter here.
	bulky = regexp.MustCompile(`"(slash_commands|terminal_slash_commands|skills|plugins|agents|commands)":\[[^\]]*\]`)
	times = regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
)

// mask takes out of lines what differs from run to run.
func mask(cli *claudetest.RealCLI, lines [][]byte) []byte {
	seen := map[string]string{}
	var b bytes.Buffer
	for _, line := range lines {
		line = bytes.ReplaceAll(line, []byte(cli.Root), []byte("/drover"))
		line = bytes.ReplaceAll(line, []byte(strings.ReplaceAll(cli.Root, "/", "-")), []byte("-drover"))
		line = uuids.ReplaceAllFunc(line, func(id []byte) []byte {
			if seen[string(id)] == "" {
				n := len(seen) + 1
				seen[string(id)] = fmt.Sprintf("%08d-0000-4000-8000-%012d", n, n)
			}
			return []byte(seen[string(id)])
		})
		line = socks.ReplaceAll(line, []byte("cc-socks/100"))
		line = ports.ReplaceAll(line, []byte("127.0.0.1:8080"))
		line = bulky.ReplaceAll(line, []byte(`"$1":[]`))
		line = times.ReplaceAll(line, []byte("2026-01-02T03:04:05.678Z"))
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.Bytes()
}
