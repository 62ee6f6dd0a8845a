// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

func TestTerminalApprover_Answers(t *testing.T) {
	for _, tt := range []struct {
		name, typed string
		want        event.Verdict
		remember    gate.Scope
	}{
		{"y", "y\n", event.Allow, gate.Once},
		{"Yes with spaces", "  Yes \r\n", event.Allow, gate.Once},
		{"n", "n\n", event.Deny, gate.Once},
		{"a", "a\n", event.Allow, gate.SameInput},
		{"t", "T\n", event.Allow, gate.SameTool},
		{"only Enter, then yes", "\ny\n", event.Allow, gate.Once},
		{"three invalid answers", "maybe\nyo\nok\ny\n", event.Deny, gate.Once},
		{"the end", "", event.Deny, gate.Once},
		{"the end in the middle of a line", "y", event.Allow, gate.Once},
		{"a line that is too long", strings.Repeat("y", 10_000) + "\nn\n", event.Deny, gate.Once},
		{"yes as the end of a line that is too long", strings.Repeat(" ", 4096) + "y\n", event.Deny, gate.Once},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			got, err := gate.TerminalApprover(strings.NewReader(tt.typed), io.Discard).Approve(t.Context(), gate.Question{Call: toolCall("c", "Bash", `{}`)})
			if err != nil || got.Verdict != tt.want || got.Remember != tt.remember {
				t.Errorf("%+v, %v; want %s, scope %d", got, err, tt.want, tt.remember)
			}
			if got.Verdict == event.Deny && !strings.Contains(got.Reason, " Continue without ") {
				t.Errorf("%+v does not state the next action", got)
			}
		})
	}
}

func TestTerminalApprover_NoWithAReason(t *testing.T) {
	for typed, want := range map[string]string{"n use go test\n": "use go test", "  No  not here \r\n": "not here", "n \xffa\n": "a"} {
		got, err := gate.TerminalApprover(strings.NewReader(typed), io.Discard).Approve(t.Context(), gate.Question{Call: toolCall("c", "Bash", `{}`)})
		if err != nil || got.Verdict != event.Deny || !strings.Contains(got.Reason, "rejected this call. The person's reason: "+want+"\nDo not repeat the call unchanged.") {
			t.Errorf("%q: %+v, %v", typed, got, err)
		}
	}
}

// What the model writes must not move the cursor, hide a part of itself, or look like the next
// question.
func TestTerminalApprover_ShowsTheCallWithoutControlCharacters(t *testing.T) {
	var out bytes.Buffer
	q := gate.Question{
		Call: event.ToolCall{
			Name: "Bash\x1b[2J", AgentID: "helper\u202e",
			Input: json.RawMessage("{\"command\":\"ls \u009b31m \u202e\u200b \xff\",\n \"b\":\"a\\nb\"}"),
		},
		Reason: "because\r\nAllow it? y", Risk: tool.Mutates | tool.Dangerous, Needs: tool.ShellExecute,
	}
	if _, err := gate.TerminalApprover(strings.NewReader("n\n"), &out).Approve(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	want := `
Subagent helper\u202e wants to call Bash\x1b[2J (risk: mutates, dangerous; needs: shellExecute)
  why it is asked: because\r\nAllow it? y
  input: {"command":"ls \u009b31m \u202e\u200b \xff","b":"a\nb"}
Allow it? [y]es, [n]o, no with a reason [n reason], [a]lways with this input, always this [t]ool: `
	if got := out.String(); got != want {
		t.Errorf("shown:\n%s\nwant:\n%s", got, want)
	}
}

func TestTerminalApprover_NamesTheNumberOfHiddenCharacters(t *testing.T) {
	var out bytes.Buffer
	input, err := json.Marshal(map[string]string{"command": strings.Repeat("é", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gate.TerminalApprover(strings.NewReader("n\n"), &out).Approve(t.Context(), gate.Question{Call: toolCall("c", "Bash", string(input))}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("[only the first 2000 of %d characters are shown; %d are hidden]", 5014, 3014)
	if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "é") != 2000-len(`{"command":"`) {
		t.Errorf("shown: %s\nwant it shortened, with %q", got, want)
	}
}

// shown is a terminal's screen that can be read while it is written.
type shown struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

func TestTerminalApprover_AsksOneQuestionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		var screen shown
		terminal := gate.TerminalApprover(in, &screen)
		verdicts := make(chan event.Verdict, 2)
		for i := range 2 {
			go func() {
				a, _ := terminal.Approve(t.Context(), gate.Question{Call: toolCall(fmt.Sprint(i), "Bash", `{}`)})
				verdicts <- a.Verdict
			}()
		}
		synctest.Wait()
		if n := strings.Count(screen.String(), "Allow it?"); n != 1 {
			t.Errorf("%d questions are shown at once", n)
		}
		fmt.Fprintln(keys, "y")
		if v := <-verdicts; v != event.Allow {
			t.Errorf("the first: %s", v)
		}
		synctest.Wait()
		fmt.Fprintln(keys, "n")
		if v := <-verdicts; v != event.Deny {
			t.Errorf("the second: %s", v)
		}
	})
}

// The person types an answer to a question that was withdrawn. It must not answer the next one.
func TestTerminalApprover_LineForAWithdrawnQuestionAnswersNoOther(t *testing.T) {
	for name, early := range map[string]bool{"typed before the next question": true, "typed after it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, keys := io.Pipe()
				var screen shown
				terminal := gate.TerminalApprover(in, &screen)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := terminal.Approve(ctx, gate.Question{Call: toolCall("1", "Read", `{}`)}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the first question ended with %v", err)
				}
				if early {
					fmt.Fprintln(keys, "y")
				}
				done := make(chan gate.Answer)
				go func() {
					a, _ := terminal.Approve(t.Context(), gate.Question{Call: toolCall("2", "Bash", `{"command":"rm -rf /"}`)})
					done <- a
				}()
				synctest.Wait()
				if !early {
					fmt.Fprintln(keys, "y")
				}
				synctest.Wait()
				if !strings.Contains(screen.String(), "before this question") {
					t.Errorf("the screen does not say that the line was thrown away: %s", screen.String())
				}
				fmt.Fprintln(keys, "n")
				if a := <-done; a.Verdict != event.Deny {
					t.Errorf("%+v: the line for the first question answered the second", a)
				}
			})
		})
	}
}

func TestTerminalApprover_ClosedInputDenies(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	in, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer keys.Close()
	var screen shown
	terminal := gate.TerminalApprover(in, &screen)
	done := make(chan error)
	go func() {
		_, err := terminal.Approve(t.Context(), gate.Question{Call: toolCall("c", "Bash", `{}`)})
		done <- err
	}()
	for screen.String() == "" {
		time.Sleep(time.Millisecond)
	}
	_ = terminal.Close()
	_ = terminal.Close()
	if err := <-done; err == nil {
		t.Error("the open question was answered by Close")
	}
	if _, err := terminal.Approve(t.Context(), gate.Question{}); err == nil {
		t.Error("a closed terminal still answers")
	}
}

func TestTerminalApprover_FailedWriteDenies(t *testing.T) {
	in, out := io.Pipe()
	_ = in.Close()
	if a, err := gate.TerminalApprover(strings.NewReader("y\n"), out).Approve(t.Context(), gate.Question{}); err == nil || a.Verdict != event.Deny {
		t.Errorf("%+v, %v; want an error: no person has seen the question", a, err)
	}
}

func ExampleTerminalApprover() {
	terminal := gate.TerminalApprover(strings.NewReader("y\n"), os.Stdout) // os.Stdin, in a program
	defer terminal.Close()
	answer, err := terminal.Approve(context.Background(), gate.Question{
		Call:   event.ToolCall{Name: "Bash", Input: json.RawMessage(`{"command":"make test"}`)},
		Reason: "it is a shell", Risk: tool.Mutates, Needs: tool.ShellExecute,
	})
	fmt.Println("y") // as a terminal shows it
	fmt.Println(answer.Verdict, err)
	// Output:
	// The agent wants to call Bash (risk: mutates; needs: shellExecute)
	//   why it is asked: it is a shell
	//   input: {"command":"make test"}
	// Allow it? [y]es, [n]o, no with a reason [n reason], [a]lways with this input, always this [t]ool: y
	// allow <nil>
}
