// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

const atOnce = 20

// A worker is one of several evaluations. Its mark is in everything that it reads, answers and writes.
type worker struct {
	number  int
	ctx     context.Context
	cancel  context.CancelFunc
	adapter agent.Adapter
	session *session.Session
	tracker *guard.Tracker
	files   *workspace.Workspace

	mu   sync.Mutex
	kept []string // by its tool

	response *drover.Response[review]
	err      error
}

func (w *worker) mark() string      { return fmt.Sprintf("worker-%02d-of-many", w.number) }
func (w *worker) isCancelled() bool { return w.number == 7 }
func (w *worker) fails() bool       { return w.number%5 == 3 }

// tokens are what each answer of the model costs, different for each worker.
func (w *worker) tokens() script.Usage { return script.Usage{Input: 1000 + 10*w.number, Output: 1} }

// call is the id of a call.
func (w *worker) call(what string) string { return what + "_" + w.mark() }

// answer is the turn that the model sends to the worker.
func (w *worker) answer(r *script.Request) script.Turn {
	switch {
	case !r.BringsToolResult(w.call("keep")) && !r.BringsToolResult(w.call("write")):
		return script.Reply(use(w.call("keep"), "mcp__drover__keep", script.Input{"text": w.mark()})).Metered(w.tokens())
	case r.BringsToolResult(w.call("keep")):
		return script.Reply(use(w.call("write"), "Write", script.Input{"file_path": "own.txt", "content": w.mark()})).Metered(w.tokens())
	case w.isCancelled():
		w.cancel()
		return script.Hang()
	case w.fails():
		return script.Fail(400, "not today, "+w.mark())
	}
	return script.Reply(use(w.call("answer"), script.StructuredOutputTool, script.Input{"summary": w.mark(), "issues": []string{}})).Metered(w.tokens())
}

// keeps is a tool that keeps the text that it receives, in the session and by itself.
func (w *worker) keeps() *tool.Tool {
	return tool.Must("keep", "Keeps a text.", func(ctx context.Context, in countInput) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kept = append(w.kept, in.Text)
		s, _ := session.From(ctx)
		_, err := s.Dispatch(ctx, note(in))
		return in.Text, err
	})
}

func (w *worker) work(p *prompt.Prompt[review], transcript string) {
	defer w.cancel()
	w.response, w.err = drover.Evaluate(w.ctx, w.adapter, p, &drover.Options{
		Session: w.session, Tracker: w.tracker, Settings: agent.Settings{Workspace: w.files}, Transcript: &drover.TranscriptOptions{File: transcript},
	})
}

// summary is what became of the evaluation.
func (w *worker) summary(t *testing.T) drover.Summary {
	t.Helper()
	failed, _ := errors.AsType[*drover.EvaluationError](w.err)
	switch {
	case w.isCancelled() && !errors.Is(w.err, context.Canceled), w.fails() && (failed == nil || !strings.Contains(advice.Text(failed), "not today, "+w.mark())):
		t.Errorf("%s ended with %v", w.mark(), w.err)
	case !w.isCancelled() && !w.fails() && (w.err != nil || w.response.Output.Summary != w.mark()):
		t.Errorf("%s ended with %v and %+v", w.mark(), w.err, w.response)
	}
	if failed != nil {
		return failed.Summary
	}
	if w.response == nil {
		return drover.Summary{}
	}
	return w.response.Summary
}

// foreign are the marks of others in a text. It must have the worker's own.
func (w *worker) foreign(text string) (found []string) {
	for n := range atOnce {
		other := &worker{number: n}
		if strings.Contains(text, other.mark()) != (n == w.number) {
			found = append(found, other.mark())
		}
	}
	return found
}

func (w *worker) check(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff([][]string{{w.mark()}, {w.mark()}}, [][]string{w.kept, kept(w.session)}); diff != "" {
		t.Errorf("%s kept in its tool and its session (-want +got):\n%s", w.mark(), diff)
	}
	calls, answers := []string{w.call("keep") + " keep bridged success", w.call("write") + " Write native success"}, int64(2)
	if !w.fails() && !w.isCancelled() {
		calls, answers = slices.Insert(calls, 0, w.call("answer")+" StructuredOutput native success"), 3
	}
	if diff := cmp.Diff(calls, recorded(w.session)); diff != "" {
		t.Errorf("calls of %s (-want +got):\n%s", w.mark(), diff)
	}
	// The call that a cancelled evaluation has left is charged too, by an estimate.
	if got, want := w.tracker.Consumed().TotalTokens(), answers*int64(w.tokens().Input+w.tokens().Output); got != want && (!w.isCancelled() || got < want) {
		t.Errorf("%d tokens of %s are counted, want %d", got, w.mark(), want)
	}
	w.checkFiles(t)
	w.checkEvents(t)
}

func (w *worker) checkFiles(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(w.files.Root(), "*"))
	content, _ := os.ReadFile(filepath.Join(w.files.Root(), "own.txt"))
	if err != nil || len(names) != 1 || string(content) != w.mark() {
		t.Errorf("the workspace of %s has %q, and own.txt %q: %v", w.mark(), names, content, err)
	}
}

// checkEvents looks into everything that the session knows.
func (w *worker) checkEvents(t *testing.T) {
	t.Helper()
	var all strings.Builder
	for e := range w.session.Events() {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	if found := w.foreign(all.String()); found != nil {
		t.Errorf("the session of %s has events about %q, or none of its own", w.mark(), found)
	}
}

// checkTranscript compares what the evaluation has with what is of its run in the file that all share.
func (w *worker) checkTranscript(t *testing.T, kept, written []drover.TranscriptEntry) {
	t.Helper()
	raw, err := json.Marshal(kept)
	same, other := json.Marshal(written)
	if !bytes.Equal(raw, same) || other != nil || len(kept) == 0 {
		t.Errorf("of %s %d entries are written and %d kept, and they are not the same: %v", w.mark(), len(written), len(kept), other)
	}
	numbered(t, kept)
	if found := w.foreign(string(raw)); found != nil || err != nil {
		t.Errorf("the transcript of %s is about %q, or not about itself: %v", w.mark(), found, err)
	}
}

// Twenty evaluations at once, on the real CLI and one model, are distinguished by what the model reads. Some have
// an adapter for themselves and some share one, some fail and one is cancelled.
func TestEvaluate_TwentyAtOnceShareNothing(t *testing.T) {
	cli := claudetest.CLI(t)
	temp := filepath.Join(cli.Root, "many")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	var workers []*worker
	for n := range atOnce {
		w := &worker{number: n, session: session.New(nil), tracker: guard.NewTracker(guard.Budget{MaxTotalTokens: 100_000})}
		w.ctx, w.cancel = context.WithCancel(t.Context())
		workers = append(workers, w)
	}
	model := claudetest.NewModel(t, script.Func(func(r *script.Request) script.Turn {
		body := string(r.Body)
		for _, w := range workers {
			if strings.Contains(body, w.mark()) {
				if found := w.foreign(body); found != nil {
					return script.Fail(400, fmt.Sprintf("%s reads about %q", w.mark(), found))
				}
				return w.answer(r)
			}
		}
		return script.Fail(400, "unexpected request")
	}).Always())
	base := cli.Options(model)
	base.Dir = ""
	shared := claudecode.New(base)
	for _, w := range workers {
		w.adapter = shared
		if w.number%2 == 1 {
			w.adapter = claudecode.New(base)
		}
		var err error
		if w.files, err = workspace.Open(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}

	transcript := filepath.Join(cli.Root, "transcript.jsonl")
	var all sync.WaitGroup
	for _, w := range workers {
		p := reviewPrompt(t, prompt.Markdown("task", "Task", "You are "+w.mark()+".").With(w.keeps()))
		all.Go(func() { w.work(p, transcript) })
	}
	all.Wait()

	written, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	entries, faults := readEntries(written)
	runs, conversations := map[string][]drover.TranscriptEntry{}, map[string]bool{}
	for _, e := range entries {
		runs[e.RunID] = append(runs[e.RunID], e)
	}
	for _, w := range workers {
		w.check(t)
		s := w.summary(t)
		conversations[s.SessionID] = true
		w.checkTranscript(t, slices.Collect(s.Transcript.Entries()), runs[s.RunID])
		if err := w.files.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(runs) != atOnce || len(conversations) != atOnce || faults != 0 {
		t.Errorf("%d runs are written, %d conversations and %d lines that are no entries", len(runs), len(conversations), faults)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}
