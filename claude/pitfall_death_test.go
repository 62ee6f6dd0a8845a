// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testkit"
)

// A doomed CLI plays random lines and ends at a random moment.
type doomed struct {
	handshake int // how far it comes in the handshake: 0 and 1 not through it, 2 through it
	acts      []int
	code      int
}

func newDoomed(seed uint64) doomed {
	r := rand.New(rand.NewPCG(seed, 1))
	d := doomed{handshake: min(r.IntN(8), 2), code: []int{0, 1, 3, 137}[r.IntN(4)]}
	for range r.IntN(8) {
		d.acts = append(d.acts, r.IntN(10))
	}
	return d
}

func (d doomed) String() string {
	return fmt.Sprintf("handshake %d, acts %v, exit %d", d.handshake, d.acts, d.code)
}

// play sets died just before the end.
func (d doomed) play(s *claudetest.ScriptSession, died *time.Time) {
	hook := ""
	switch d.handshake {
	case 1:
		s.Await("control_request")
	case 2:
		hook = hookIDs(s.Initialize(""), claude.HookPreToolUse)[0]
		s.Await("user")
	}
	for _, act := range d.acts {
		d.act(s, act, hook)
	}
	s.Stderr("doomed indeed")
	*died = time.Now()
	s.Exit(d.code)
}

func (d doomed) act(s *claudetest.ScriptSession, act int, hook string) {
	switch act {
	case 0:
		s.SendText("something")
	case 1:
		s.State("running")
	case 2:
		s.Result("a result")
	case 3:
		s.State("idle")
	case 4:
		s.Line(`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["gone wrong"],"uuid":"u","session_id":"s"}`)
	case 5:
		s.Ask("hook_callback", preToolUse(hook, "wait")) // never answered
	case 6:
		s.Line("garbage")
	case 7:
		s.Line(`{"type":"system","subtype":"task_started","task_id":"a","task_type":"local_agent","description":"d","uuid":"u","session_id":"s"}`)
	case 8:
		s.JSON(map[string]string{"type": "control_cancel_request", "request_id": "cli-1"})
	case 9:
		time.Sleep(time.Second)
	}
}

// However and whenever the CLI ends, everything that waits for it ends at once and says why.
func TestProcessDeath_IsReportedAtOnce(t *testing.T) {
	for seed := range uint64(testkit.Size(200, 20_000)) {
		d := newDoomed(seed)
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { watchDie(t, d) })
		})
		if !ok {
			t.Logf("seed %d: %v", seed, d)
			break
		}
	}
}

func watchDie(t *testing.T, d doomed) {
	var died time.Time
	opts := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { d.play(s, &died) }).Options()
	opts.Hooks = []claude.Hook{onBash(func(ctx context.Context, _ string) { <-ctx.Done() })}
	c, err := claude.Connect(t.Context(), opts)
	if d.handshake < 2 {
		wantEnd(t, d, "Connect", err)
		wantSoon(t, died)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go func() {
		_, err := c.Request(t.Context(), "never_answered", nil)
		asked <- err
	}()
	end, _, err := collect(c.Turn(t.Context(), claude.Text("go")))
	if end == nil {
		wantEnd(t, d, "Turn", err)
	}
	wantEnd(t, d, "Request", <-asked)
	wantSoon(t, died)
	_, _, err = collect(c.Messages())
	if err != nil || d.code != 0 {
		wantEnd(t, d, "Messages", err)
	}
	wantEnd(t, d, "Send", c.Send(t.Context(), claude.Text("hello?")))
	_, _, err = collect(c.Turn(t.Context(), claude.Text("hello?")))
	wantEnd(t, d, "second Turn", err)
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wantSoon(t, died)
}

// wantEnd checks that err is the CLI's end with its reason, or the error result before it.
func wantEnd(t *testing.T, d doomed, what string, err error) {
	t.Helper()
	var dead *claude.ProcessError
	var failed *claude.ResultError
	switch {
	case errors.As(err, &dead):
		if dead.Status.Code != d.code || dead.StderrTail != "doomed indeed" {
			t.Errorf("%s: code %d, standard error %q; want %d and the reason", what, dead.Status.Code, dead.StderrTail, d.code)
		}
	case errors.As(err, &failed):
		if !strings.Contains(advice.Text(err), "gone wrong") {
			t.Errorf("%s: %v, want the words of the result", what, err)
		}
	default:
		t.Errorf("%s: %v, want a ProcessError or a ResultError", what, err)
	}
}

func wantSoon(t *testing.T, died time.Time) {
	t.Helper()
	if late := time.Since(died); late > 100*time.Millisecond {
		t.Errorf("known %v after the CLI ended", late)
	}
}

func init() {
	processScripts["die in a turn"] = func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		s.Stderr("cut short")
		s.Exit(9)
	}
}

// The same with a real process, whose streams end one after the other.
func TestProcessDeath_IsReportedWithItsReason(t *testing.T) {
	c := claudetest.Connect(t, asProcess(t, "die in a turn"))
	asked := make(chan error, 1)
	go func() {
		_, err := c.Request(t.Context(), "never_answered", nil)
		asked <- err
	}()
	started := time.Now()
	_, _, err := collect(c.Turn(t.Context(), claude.Text("go")))
	wantDeath(t, "Turn", err, 9, "cut short")
	wantDeath(t, "Request", <-asked, 9, "cut short")
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if errors.Is(err, io.EOF) {
		t.Errorf("the error %v is an EOF to callers", err)
	}
}
