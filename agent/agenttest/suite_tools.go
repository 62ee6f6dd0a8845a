// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// toolChecks are the promises about the tools that an agent has by itself.
var toolChecks = []toolCheck{
	{"its tools change files where they are allowed", allowedToolsChange},
	{"permissions that deny hold for every tool of its catalogue", deniedToolsChangeNothing},
	{"a tool that its catalogue does not have is denied", unknownToolsChangeNothing},
	{"a host that never answers leaves every call undone", hostThat(neverAnswers)},
	{"a host that answers nonsense leaves every call undone", hostThat(answersNonsense)},
	{"a host that replaces an input by nonsense leaves every call undone", hostThat(writesNonsense)},
	{"a host that is gone leaves every call undone", hostThat(isGone)},
}

type toolCheck struct {
	name  string
	check func(t *testing.T, s Subject) error
}

// changes are the calls of the subject that change something, each with a file of its own.
func changes(s Subject) (calls []event.ToolCall, files []string) {
	for i := range s.Changes("") {
		file := filepath.Join(s.Request.Dir, fmt.Sprintf("made-by-call-%d", i))
		call := s.Changes(file)[i]
		call.ID = event.CallID(fmt.Sprintf("call-%d", i))
		calls, files = append(calls, call), append(files, file)
	}
	return calls, files
}

// made are those of the files that are there. They are removed.
func made(files []string) (found []string) {
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			found = append(found, filepath.Base(file))
			_ = os.RemoveAll(file)
		}
	}
	return found
}

func same(level gate.Level) *gate.Permissions {
	return &gate.Permissions{FileWrite: level, ShellExecute: level, NetworkAccess: level}
}

// run runs an agent under permissions and returns the results of its calls.
func run(ctx context.Context, a agent.Adapter, req agent.Request, p *gate.Permissions) ([]event.ToolResult, error) {
	r, err := agent.NewRunner(a, nil)
	if err != nil {
		return nil, err
	}
	req.Permissions = p
	var results []event.ToolResult
	for e, err := range r.Run(ctx, req) {
		if err != nil {
			return nil, fmt.Errorf("the run was refused: %w", err)
		}
		if result, ok := e.Payload.(event.ToolResult); ok {
			results = append(results, result)
		}
	}
	return results, nil
}

// allowedToolsChange shows that the calls of the subject do something, so that the other checks can fail.
func allowedToolsChange(t *testing.T, s Subject) error {
	calls, files := changes(s)
	if _, err := run(t.Context(), s.Calls(t, calls), s.Request, same(gate.LevelAllow)); err != nil {
		return err
	}
	if got := made(files); len(got) != len(files) || len(files) == 0 {
		return fmt.Errorf("%d of %d calls made their file: %q", len(got), len(files), got)
	}
	return nil
}

// deniedToolsChangeNothing makes the calls of the subject, and one of every other tool that needs a capability.
func deniedToolsChangeNothing(t *testing.T, s Subject) error {
	calls, files := changes(s)
	of := s.Calls(t, nil).Catalogue()
	if of == nil {
		return errors.New("Catalogue() = nil, want the tools of the agent")
	}
	for _, call := range calls {
		if n, ok := of.Native(call.Name); !ok || n.Needs&(tool.FileWrite|tool.ShellExecute) == 0 {
			return fmt.Errorf("%s changes files, and its catalogue does not list file writes or commands among its needs", call.Name)
		}
	}
	for _, n := range of.Natives {
		if n.Needs != 0 && !slices.ContainsFunc(calls, func(c event.ToolCall) bool { return c.Name == n.Name }) {
			calls = append(calls, event.ToolCall{ID: event.CallID("call-of-" + n.Name), Name: n.Name, Input: json.RawMessage(`{}`)})
		}
	}
	results, err := run(t.Context(), s.Calls(t, calls), s.Request, same(gate.LevelDeny))
	if err != nil {
		return err
	}
	if got := made(files); len(got) > 0 {
		return fmt.Errorf("calls that are denied made files: %q", got)
	}
	for _, r := range results {
		if n, ok := of.Native(r.Name); ok && n.Needs != 0 && r.Status == event.ToolSuccess {
			return fmt.Errorf("the call %q of %s succeeded, though it needs %s, which is denied", r.ID, r.Name, n.Needs)
		}
	}
	return nil
}

// A lacking adapter has a catalogue without some of its agent's tools.
type lacking struct {
	agent.Adapter
	catalogue *tool.Catalogue
}

func (l lacking) Catalogue() *tool.Catalogue { return l.catalogue }

// unknownToolsChangeNothing takes the tools of the subject out of the catalogue, and allows everything.
func unknownToolsChangeNothing(t *testing.T, s Subject) error {
	calls, files := changes(s)
	a := s.Calls(t, calls)
	whole := a.Catalogue()
	without := &tool.Catalogue{Agent: whole.Agent, Others: whole.Others, AnswerTool: whole.AnswerTool, SkillTool: whole.SkillTool}
	for _, n := range whole.Natives {
		if !slices.ContainsFunc(calls, func(c event.ToolCall) bool { return c.Name == n.Name }) {
			without.Natives = append(without.Natives, n)
		}
	}
	if _, err := run(t.Context(), lacking{a, without}, s.Request, same(gate.LevelAllow)); err != nil {
		return err
	}
	if got := made(files); len(got) > 0 {
		return fmt.Errorf("calls of tools that are not in the catalogue made files: %q", got)
	}
	return nil
}

// hostThat makes the calls of the subject under a host that does not do its part. Stop ends the run.
func hostThat(decide func(ctx context.Context, stop func()) event.Decision) func(*testing.T, Subject) error {
	return func(t *testing.T, s Subject) error {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		calls, files := changes(s)
		req := s.Request
		asked := make(chan struct{}, len(calls))
		req.Host = tool.DeciderFunc(func(ctx context.Context, _ event.ToolCall) event.Decision {
			select {
			case asked <- struct{}{}:
			default:
			}
			return decide(ctx, stop)
		})
		for _, err := range s.Calls(t, calls).Run(ctx, req) {
			if err != nil {
				return fmt.Errorf("the run failed: %w", err)
			}
		}
		if len(asked) == 0 {
			return errors.New("the host was not asked")
		}
		if got := made(files); len(got) > 0 {
			return fmt.Errorf("calls that no host has allowed made files: %q", got)
		}
		return nil
	}
}

func neverAnswers(ctx context.Context, stop func()) event.Decision {
	stop() // it is the run that has to end, and not the question
	<-ctx.Done()
	return event.Decision{Verdict: event.Allow}
}

func answersNonsense(context.Context, func()) event.Decision { return event.Decision{Verdict: 99} }

func writesNonsense(context.Context, func()) event.Decision {
	return event.Decision{Verdict: event.Allow, Input: json.RawMessage(`nonsense`)}
}

func isGone(context.Context, func()) event.Decision { panic("the host is gone") }
