// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
)

const (
	firstPrompt  = "1b7c1d1e-5f8e-4c33-9a55-0d7a3c1f0001"
	secondPrompt = "1b7c1d1e-5f8e-4c33-9a55-0d7a3c1f0002"
)

// twoTurns holds a conversation of two turns and closes it. The notes have the UUID of the first
// answer.
func twoTurns(t *testing.T, r *effectRun) {
	t.Helper()
	r.opts.SessionID = someUUID
	r.connect(t)
	r.turn(t, claude.Prompt{Text: "FIRST PROMPT", UUID: firstPrompt})
	r.notes["first answer"] = of[*claude.AssistantMessage](r.messages)[0].UUID
	r.turn(t, claude.Prompt{Text: "SECOND PROMPT", UUID: secondPrompt})
	r.close(t)
}

func (r *effectRun) close(t *testing.T) {
	t.Helper()
	if err := r.client.Close(); err != nil {
		t.Fatal(err)
	}
}

// resumed starts the CLI again with other options and plays one turn.
func resumed(set func(o *claude.Options, r *effectRun), wantSession string, first, second bool) func(*testing.T, *effectRun) {
	return func(t *testing.T, r *effectRun) {
		t.Helper()
		again := *r
		o := *r.opts
		o.SessionID = ""
		set(&o, r)
		again.opts = &o
		again.connect(t)
		again.turn(t, claude.Text("THIRD PROMPT"))
		again.close(t)
		last := r.model.LastRequest()
		if last.SawText("FIRST PROMPT") != first || last.SawText("SECOND PROMPT") != second {
			t.Errorf("the model saw the first prompt: %v, the second: %v; want %v, %v", last.SawText("FIRST PROMPT"), last.SawText("SECOND PROMPT"), first, second)
		}
		if got := again.end.Answer.SessionID; wantSession != "" && got != wantSession {
			t.Errorf("session %s, want %s", got, wantSession)
		}
		if got := again.end.Answer.SessionID; wantSession == "" && got == someUUID {
			t.Errorf("session %s, want a new one", got)
		}
	}
}

func sessionEffects() []optionEffect {
	return []optionEffect{
		{
			name:  "sessions",
			turns: []script.Turn{script.Text("ok").Always()},
			run:   twoTurns,
			checks: map[string]func(*testing.T, *effectRun){ // in the order of their names
				"Options.Continue": resumed(func(o *claude.Options, _ *effectRun) { o.Continue = true }, someUUID, true, true),
				"Options.Fork":     resumed(func(o *claude.Options, _ *effectRun) { o.Resume, o.Fork = someUUID, true }, "", true, true),
				"Options.Resume":   resumed(func(o *claude.Options, _ *effectRun) { o.Resume = someUUID }, someUUID, true, true),
				"Options.ResumeAt": resumed(func(o *claude.Options, r *effectRun) {
					o.Resume, o.Fork, o.SessionID, o.ResumeAt = someUUID, true, otherUUID, r.notes["first answer"]
				}, otherUUID, true, false),
			},
		},
		{
			name: "dropping a turn", newOnly: true,
			turns: []script.Turn{script.Text("ok").Always()},
			run:   twoTurns,
			checks: map[string]func(*testing.T, *effectRun){"Options.ResumeDropsTurn": func(t *testing.T, r *effectRun) {
				resumed(func(o *claude.Options, r *effectRun) {
					o.Resume, o.ResumeAt, o.ResumeDropsTurn = someUUID, r.notes["first answer"], new(secondPrompt)
				}, someUUID, true, false)(t, r)
				o := *r.opts
				o.SessionID, o.Resume, o.ResumeAt, o.ResumeDropsTurn = "", someUUID, r.notes["first answer"], new(otherUUID)
				if err := connectError(t, &o); !strings.Contains(advice.Text(err), "Resume rejected by --resume-drops-turn") {
					t.Errorf("a cut that drops another turn: %v, want the CLI's refusal", err)
				}
			}},
		},
		{
			name:  "store",
			turns: []script.Turn{script.Text("ok").Always()},
			run: func(t *testing.T, r *effectRun) {
				r.opts.Store = transcript.NewMemoryStore()
				twoTurns(t, r)
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.Store": func(t *testing.T, r *effectRun) {
				for _, file := range r.transcripts() { // what is resumed comes from the store
					r.write(t, file, "")
				}
				resumed(func(o *claude.Options, _ *effectRun) { o.Resume = someUUID }, someUUID, true, true)(t, r)
			}},
		},
		{
			name: "checkpoints",
			turns: []script.Turn{
				script.Func(func(r *script.Request) script.Turn {
					return script.Call("Write", script.Input{"file_path": workFile(r), "content": "new"})
				}), script.Text("ok"),
			},
			run: func(t *testing.T, r *effectRun) {
				r.opts.Checkpointing, r.opts.PermissionMode = true, claude.ModeAcceptEdits
				r.opts.NoBackgroundTasks = true
				r.connect(t)
				r.turn(t, claude.Prompt{Text: "write " + r.cli.Work + "/file.txt now", UUID: firstPrompt})
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.Checkpointing": func(t *testing.T, r *effectRun) {
				got, err := r.client.RewindFiles(t.Context(), firstPrompt, true)
				if err != nil || !got.CanRewind || len(got.FilesChanged) != 1 {
					t.Errorf("rewinding: %+v, %v; want one file", got, err)
				}
			}, "Options.NoBackgroundTasks": func(t *testing.T, r *effectRun) {
				if bash, ok := r.first(t).Tool("Bash"); !ok || strings.Contains(string(bash.InputSchema), "run_in_background") {
					t.Errorf("Bash takes %s, which has a way to the background", bash.InputSchema)
				}
			}},
		},
		{
			name:  "prompts",
			turns: []script.Turn{script.Text("ok"), script.Hang().When(script.LastUserText("WAIT")), script.Text("ok").Always()},
			run: func(t *testing.T, r *effectRun) {
				r.connect(t)
				if err := r.client.Send(t.Context(), claude.Prompt{Text: "FOR YOUR INFORMATION", NoTurn: true}); err != nil {
					t.Fatal(err)
				}
				r.turn(t, claude.Text("hi"))
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Prompt.NoTurn": func(t *testing.T, r *effectRun) {
					if n := len(r.model.Requests()); n != 1 || !r.first(t).SawText("FOR YOUR INFORMATION") {
						t.Errorf("%d requests, want one that has both prompts", n)
					}
				},
				"Prompt.Priority": prioritised,
			},
		},
		{
			name: "verbatim prompts", newOnly: true,
			turns: []script.Turn{script.Text("ok").Always()},
			run: func(t *testing.T, r *effectRun) {
				r.connect(t)
				r.turn(t, claude.Prompt{Text: "/compact", Verbatim: true})
				r.close(t)
				again := *r.opts
				again.VerbatimPrompts = true
				r.opts = &again
				r.connect(t)
				r.turn(t, claude.Text("/compact"))
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Prompt.Verbatim": saw("/compact"),
				"Options.VerbatimPrompts": func(t *testing.T, r *effectRun) {
					if n := len(r.model.Requests()); n != 2 || !r.model.LastRequest().SawText("/compact") {
						t.Errorf("%d requests, want two with the prompt as it is", n)
					}
				},
			},
		},
	}
}

// workFile is the path that the prompt names.
func workFile(r *script.Request) string {
	var path string
	for _, word := range strings.Fields(r.LastUserText()) {
		if strings.HasSuffix(word, "/file.txt") {
			path = word
		}
	}
	return path
}

// prioritised sends a prompt that is to come before the one that is being answered.
func prioritised(t *testing.T, r *effectRun) {
	done := make(chan error, 1)
	go func() {
		_, _, err := collect(r.client.Turn(t.Context(), claude.Text("WAIT")))
		done <- err
	}()
	if err := r.model.WaitRequests(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Send(t.Context(), claude.Prompt{Text: "AT ONCE", Priority: "now"}); err != nil {
		t.Fatal(err)
	}
	if err := r.model.WaitRequests(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if !r.model.LastRequest().SawText("AT ONCE") {
		t.Error("the urgent prompt did not break in")
	}
	if err := <-done; err != nil && !r.old { // the old one ends the turn that was broken into
		t.Errorf("the turns ended with %v", err)
	}
}
