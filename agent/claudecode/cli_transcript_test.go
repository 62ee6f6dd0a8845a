// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
)

// transcribed are the lines that a run has reported.
type transcribed struct {
	mu    sync.Mutex
	lines []agent.TranscriptLine
}

func (r *transcribed) take(l agent.TranscriptLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, l)
}

// bare are the lines of a source as texts that can be compared.
func (r *transcribed) bare(source string) (all []string) {
	for _, l := range r.lines {
		if l.Source == source {
			all = append(all, unescaped(l.Raw))
		}
	}
	return all
}

// types are those of the parts of a source.
func (r *transcribed) types(source string) map[agent.TranscriptType]int {
	counts := map[agent.TranscriptType]int{}
	for _, l := range r.lines {
		for _, p := range l.Parts {
			if strings.HasPrefix(l.Source, source) {
				counts[p.Type]++
			}
		}
	}
	return counts
}

// unescaped is a line with what the CLI may or may not escape.
func unescaped(raw []byte) string {
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(string(raw))
}

// A witness starts the CLI and keeps its output, and the files that it has left.
type witness struct {
	output  bytes.Buffer
	files   map[string][]string // by source
	process claude.Process
}

func (w *witness) Spawn(ctx context.Context, cmd claude.Command) (claude.Process, error) {
	p, err := (&claude.HostSpawner{}).Spawn(ctx, cmd)
	if err != nil {
		return nil, err
	}
	w.process = p
	return &witnessed{Process: p, witness: w, stdout: io.TeeReader(p.Stdout(), &w.output), env: cmd.Env}, nil
}

type witnessed struct {
	claude.Process
	witness *witness
	stdout  io.Reader
	env     []string
}

func (p *witnessed) Stdout() io.Reader { return p.stdout }

func (p *witnessed) Wait() claude.ExitStatus {
	status := p.Process.Wait()
	for _, e := range p.env {
		if dir, ok := strings.CutPrefix(e, "CLAUDE_CONFIG_DIR="); ok {
			p.witness.files = readTranscripts(filepath.Join(dir, "projects"))
		}
	}
	return status
}

func readTranscripts(dir string) map[string][]string {
	files := map[string][]string{}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".jsonl"); err == nil && ok {
			source := agent.MainSource
			if id, ok := strings.CutPrefix(name, "agent-"); ok {
				source = agent.SubagentSource + id
			}
			content, _ := os.ReadFile(path)
			for line := range strings.Lines(string(content)) {
				files[source] = append(files[source], unescaped([]byte(strings.TrimSuffix(line, "\n"))))
			}
		}
		return nil
	})
	return files
}

// check compares the reported lines with the output of the CLI and with the files on disk.
func (w *witness) check(t *testing.T, got *transcribed) {
	t.Helper()
	if len(w.files) == 0 {
		t.Fatal("the CLI has left no files to compare with")
	}
	for source, lines := range w.files {
		reported := got.bare(source)
		if missing := without(lines, reported); len(missing) > 0 {
			t.Errorf("%s: %d of %d lines on disk were not reported, first %.300s", source, len(missing), len(lines), missing[0])
		}
		wantOrder(t, source, lines, reported)
	}
	counts := map[string]int{}
	for _, l := range got.lines {
		if counts[l.ID]++; l.ID != "" && counts[l.ID] > 1 {
			t.Errorf("the line %s was reported %d times: %.200s", l.ID, counts[l.ID], l.Raw)
		}
		if len(l.Parts) == 0 || l.Time.IsZero() || l.SessionID == "" {
			t.Errorf("a line has parts %v, time %v, session %q; want all of them: %.200s", l.Parts, l.Time, l.SessionID, l.Raw)
		}
	}
	for line := range strings.Lines(w.output.String()) {
		var m struct{ Type, Subtype, UUID string }
		if json.Unmarshal([]byte(line), &m) == nil && m.UUID != "" && m.Type != "stream_event" && m.Subtype != "thinking_tokens" && counts[m.UUID] != 1 {
			t.Errorf("the CLI sent %s/%s %s, which was reported %d times, want once", m.Type, m.Subtype, m.UUID, counts[m.UUID])
		}
	}
}

// without are those of lines that are not in reported, as often as they are there.
func without(lines, reported []string) (missing []string) {
	left := map[string]int{}
	for _, l := range reported {
		left[l]++
	}
	for _, l := range lines {
		if left[l]--; left[l] < 0 {
			missing = append(missing, l)
		}
	}
	return missing
}

// wantOrder checks that lines were reported in the order of the file, but for the requests to the model, which
// are only there.
func wantOrder(t *testing.T, source string, file, reported []string) {
	t.Helper()
	isRequest := func(l string) bool { return strings.HasPrefix(l, `{"type":"api-request`) }
	file = slices.DeleteFunc(slices.Clone(file), isRequest)
	reported = slices.DeleteFunc(slices.Clone(reported), func(l string) bool { return isRequest(l) || !slices.Contains(file, l) })
	if diff := cmp.Diff(file, reported); diff != "" {
		t.Errorf("%s: the order of the file and of what was reported (-want +got):\n%s", source, diff)
	}
}

// working has the model think, send texts, delegate and fail.
func working() []script.Turn {
	return []script.Turn{
		script.Reply(script.ThinkingBlock{Thinking: "hmm"}, script.TextBlock{Text: "Let\u2028me."}, delegate(false), bash("false")).When(mainAgent),
		script.Reply(script.TextBlock{Text: "I dig"}, bash("echo deep")).When(script.IsSubagent()),
		script.Text("Dug.").When(script.IsSubagent()).Always(),
		script.Text("Done.").When(mainAgent).Always(),
	}
}

func TestTranscript_EveryLineIsReportedOnce(t *testing.T) {
	for name, find := range map[string]func(testing.TB) *claudetest.RealCLI{"newest": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) {
			cli, see := find(t), &witness{}
			base := cli.Options(claudetest.NewModel(t, working()...))
			base.PermissionMode, base.Spawner = claude.ModeBypassPermissions, see
			var got transcribed
			run(t, base, agent.Request{Prompt: "go\u2028on", Transcript: got.take}).check(t)
			see.check(t, &got)
			main, sub := got.types(agent.MainSource), got.types(agent.SubagentSource)
			want := map[agent.TranscriptType]int{
				agent.TranscriptUserMessage: 1, agent.TranscriptThinking: 1, agent.TranscriptAssistantMessage: 2,
				agent.TranscriptToolUse: 2, agent.TranscriptToolResult: 2, agent.TranscriptTokenUsage: 2,
			}
			delete(main, agent.TranscriptSystemEvent)
			if diff := cmp.Diff(want, main); diff != "" {
				t.Errorf("main (-want +got):\n%s", diff)
			}
			want = map[agent.TranscriptType]int{
				agent.TranscriptUserMessage: 1, agent.TranscriptAssistantMessage: 2, agent.TranscriptToolUse: 1,
				agent.TranscriptToolResult: 1, agent.TranscriptTokenUsage: 2,
			}
			delete(sub, agent.TranscriptSystemEvent)
			if diff := cmp.Diff(want, sub); diff != "" {
				t.Errorf("subagent (-want +got):\n%s", diff)
			}
		})
	}
}

// In a cell the files are gone with the run; a copy in a store is as good to compare with.
func TestTranscript_OfACellEqualsItsStore(t *testing.T) {
	cli, store := claudetest.CLI(t), transcript.NewMemoryStore()
	base := cli.Options(claudetest.NewModel(t, working()...))
	base.PermissionMode, base.Store = claude.ModeBypassPermissions, store
	var got transcribed
	all := run(t, base, agent.Request{Prompt: "go", Transcript: got.take})
	all.check(t)
	key := transcript.Key{ProjectKey: transcript.ProjectKey(base.Dir), SessionID: all.done(t).ResumeToken}
	entries, err := store.Load(t.Context(), key)
	if err != nil || len(entries) == 0 {
		t.Fatalf("the store has %d entries, %v", len(entries), err)
	}
	var want []string
	for _, e := range entries {
		want = append(want, unescaped(e))
	}
	if missing := without(want, got.bare(agent.MainSource)); len(missing) > 0 {
		t.Errorf("%d of %d lines of the store were not reported, first %.200s", len(missing), len(want), missing[0])
	}
	requests := func(l agent.TranscriptLine) bool { return bytes.HasPrefix(l.Raw, []byte(`{"type":"api-request"`)) }
	if !slices.ContainsFunc(got.lines, requests) {
		t.Error("no request to the model was reported, which only the files have")
	}
}

func TestTranscript_UnsavedConversationIsReported(t *testing.T) {
	cli := claudetest.CLI(t)
	base := cli.Options(claudetest.NewModel(t, working()...))
	base.PermissionMode, base.NoPersistence = claude.ModeBypassPermissions, true
	var got transcribed
	run(t, base, agent.Request{Prompt: "go", Transcript: got.take}).check(t)
	if first := got.lines[0]; first.Parts[0].Type != agent.TranscriptUserMessage || string(first.Parts[0].Detail) != `"go"` || first.SessionID == "" && len(got.lines) < 5 {
		t.Errorf("the first line is %s, want the prompt", first.Raw)
	}
	main := got.types(agent.MainSource)
	if main[agent.TranscriptToolResult] != 2 || main[agent.TranscriptThinking] != 1 || got.types(agent.SubagentSource)[agent.TranscriptToolUse] != 1 {
		t.Errorf("reported were %v and of the subagent %v", main, got.types(agent.SubagentSource))
	}
}

// breakOff runs the agent until its tool works, and then ends it somehow.
func breakOff(t *testing.T, end func(w *witness, cancel func())) (*witness, *transcribed) {
	t.Helper()
	cli, see, got := claudetest.CLI(t), &witness{}, &transcribed{}
	base := cli.Options(claudetest.NewModel(t, script.Reply(script.TextBlock{Text: "First."}, bash("tail -f /dev/null"))))
	base.PermissionMode, base.Spawner = claude.ModeBypassPermissions, see
	ctx, cancel := context.WithCancel(inTime(t))
	defer cancel()
	for e, err := range claudecode.New(base).Run(ctx, agent.Request{Prompt: "go", Transcript: got.take}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.KindToolUse {
			end(see, cancel)
		}
	}
	return see, got
}

func TestTranscript_InterruptedRunLosesNoLine(t *testing.T) {
	for name, end := range map[string]func(w *witness, cancel func()){
		"interrupted at once": func(_ *witness, cancel func()) { cancel() },
		"interrupted later":   func(_ *witness, cancel func()) { time.AfterFunc(200*time.Millisecond, cancel) },
		"killed at once":      func(w *witness, _ func()) { _ = w.process.Kill() },
		"killed later":        func(w *witness, _ func()) { time.AfterFunc(200*time.Millisecond, func() { _ = w.process.Kill() }) },
	} {
		t.Run(name, func(t *testing.T) {
			see, got := breakOff(t, end)
			if name == "killed at once" && len(see.files) == 0 {
				see.files = map[string][]string{agent.MainSource: {}} // it was too early for any
			}
			see.check(t, got)
			types := got.types(agent.MainSource)
			if types[agent.TranscriptUserMessage] == 0 || types[agent.TranscriptAssistantMessage] == 0 || types[agent.TranscriptToolUse] != 1 {
				t.Errorf("reported were %v, want the prompt, the text and the call", types)
			}
		})
	}
}

func TestTranscript_EarlierLinesAreNotRepeated(t *testing.T) {
	cli := claudetest.CLI(t)
	base := cli.Options(claudetest.NewModel(t, script.Text("One."), script.Text("Two.")))
	runner := newRunner(t, base, nil)
	var first, second transcribed
	record(t, runner.Run(inTime(t), agent.Request{Prompt: "begin", Transcript: first.take})).check(t)
	record(t, runner.Run(inTime(t), agent.Request{Prompt: "go on", Transcript: second.take})).check(t)
	if first.lines[0].SessionID != second.lines[len(second.lines)-1].SessionID {
		t.Error("the second run is another conversation")
	}
	reported := map[string]bool{}
	for _, l := range first.lines {
		reported[l.ID] = l.ID != ""
	}
	for _, l := range second.lines {
		if reported[l.ID] {
			t.Errorf("a line of the first run was reported again: %.200s", l.Raw)
		}
	}
	if got := second.types(agent.MainSource); got[agent.TranscriptUserMessage] != 1 || got[agent.TranscriptAssistantMessage] != 1 {
		t.Errorf("the second run reported %v, want one message of each side", got)
	}
}
