// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/internal/testkit"
)

// A pane is a terminal in which this test binary plays one of the plays.
type pane struct {
	*testkit.Pane
	t   *testing.T
	dir string // where test and play meet
}

func newPane(t *testing.T, columns, rows int, play string, env ...string) *pane {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := self
	if play == "background" {
		command = "set -m\n" + self + " &\nwait $!"
	}
	p := &pane{t: t, dir: t.TempDir()}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			t.Logf("the play logged:\n%s", log)
		}
	})
	p.Pane = testkit.OpenPane(t, columns, rows, command, append(env, playVariable+"="+play, playDirVariable+"="+p.dir)...)
	return p
}

// step lets the play go on after a "wait" of its own.
func (p *pane) step(name string) {
	p.t.Helper()
	writeFile(p.t, filepath.Join(p.dir, name), nil)
}

// log waits for a line that the play has written down.
func (p *pane) log(want string) {
	p.t.Helper()
	var got []byte
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		got, _ = os.ReadFile(filepath.Join(p.dir, "log"))
		if bytes.Contains(got, []byte(want+"\n")) {
			return
		}
	}
	p.t.Fatalf("the play did not log %q but\n%s", want, got)
}

// checkWhole fails if a line on the screen is the rest of the one above: nothing may be wrapped.
func (p *pane) checkWhole() {
	p.t.Helper()
	screen, joined := p.Tmux("capture-pane", "-p"), p.Tmux("capture-pane", "-p", "-J")
	if a, b := strings.Count(screen, "\n"), strings.Count(joined, "\n"); a != b {
		p.t.Errorf("%d of %d lines are wrapped:\n%s", a-b, a, screen)
	}
}

// checkStatus fails unless the last line, and no other, is the status line.
func checkStatus(t *testing.T, screen []string) {
	t.Helper()
	var at []int
	for i, line := range screen {
		if testkit.StatusLine.MatchString(line) && !regexp.MustCompile(`^  \d`).MatchString(line) {
			at = append(at, i)
		}
	}
	if len(at) != 1 || at[0] != len(screen)-1 {
		t.Errorf("status lines at %v, want one at %d:\n%s", at, len(screen)-1, strings.Join(screen, "\n"))
	}
}

func TestLive_StatusLineStaysBelowFinishedLines(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			p := newPane(t, size[0], size[1], "run")
			screen := p.Wait(`(?m)^  Bash +npm test -- --very-.* [1-9]\d* s$`) // a second has passed
			checkStatus(t, screen)
			p.checkWhole()
			p.step("result")
			p.Wait(`(?m)^  \d\d\.\d  Bash .*ok +\d`)
			checkStatus(t, p.Wait(`  model .* s$`))
			p.step("more")
			checkStatus(t, p.Wait(`file59.go.*\n  model `))
			p.checkWhole()
			p.step("done")
			text := strings.Join(p.Over(0), "\n")
			if !strings.Contains(text, "\n\nThe answer\nis 42.\nexit code 0\n") || strings.Contains(text, "\n  model ") {
				t.Errorf("want the answer last and no status line:\n%s", text)
			}
		})
	}
}

func TestLive_ResizeRedraws(t *testing.T) {
	t.Parallel()
	p := newPane(t, 100, 24, "run")
	p.Wait(`  Bash +npm test`)
	for _, columns := range []string{"50", "30", "120", "61", "20", "200"} {
		p.Tmux("resize-window", "-x", columns)
		p.Wait(`(?m)^  Bash .* s$`)
		screen := p.settled()
		checkStatus(t, screen)
		if n := strings.Count(strings.Join(screen, "\n"), "  Bash  "); n != 1 {
			t.Errorf("%s columns: %d status lines:\n%s", columns, n, strings.Join(screen, "\n"))
		}
	}
	p.step("result")
	p.step("more")
	p.Wait(`file59.go.*\n  model `)
	p.checkWhole()
	p.step("done")
	p.Over(0)
}

// settled waits until the screen has not changed for a while: a resize has been answered.
func (p *pane) settled() []string {
	p.t.Helper()
	last, since := "", time.Now()
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		now := testkit.StatusLine.ReplaceAllString(strings.Join(p.Screen(), "\n"), "STATUS")
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > 300*time.Millisecond {
			return p.Screen()
		}
	}
	p.t.Fatalf("the screen does not come to rest:\n%s", last)
	return nil
}

func TestLive_StatusLineShowsGrowingText(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 24, "writing")
	p.Wait(`  model .* s$`)
	record := filepath.Join(p.dir, "record")
	p.Tmux("pipe-pane", "-o", "cat > "+record)
	p.step("write")
	p.log("written")
	screen := p.Wait(`  model +….*word 199 the end .* s$`)
	checkStatus(t, screen)
	written, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	draws := strings.Count(string(written), "\x1b[J")
	t.Logf("%d redraws for 200 parts of a text in over a second", draws)
	if draws == 0 || draws > 40 || strings.Contains(string(written), "\n") {
		t.Errorf("%d redraws, want some but few, and no new line", draws)
	}
	p.step("done")
	p.Over(0)
}

func TestLive_HostileTextIsEscaped(t *testing.T) {
	for _, columns := range []int{80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			p := newPane(t, columns, 24, "hostile")
			screen := p.Wait(`  Bash +echo \\x1b\]0;title\\a 漢.* s$`)
			if text := strings.Join(screen, "\n"); !strings.Contains(text, `\x1b[2J\x1b[31mred\rback 漢字`) {
				t.Errorf("the text is not shown escaped:\n%s", text)
			}
			checkStatus(t, screen)
			p.checkWhole()
			p.step("write")
			checkStatus(t, p.Wait(`  model +…漢?字.* s$|  model +…字漢.* s$`))
			p.checkWhole()
			p.step("done")
			if text := strings.Join(p.Over(0), "\n"); !strings.Contains(text, `\x1b[31mred\x1b[H`) {
				t.Errorf("the answer is not shown escaped:\n%s", text)
			}
			if colours := p.Tmux("capture-pane", "-p", "-e"); strings.Contains(colours, "\x1b[31mred") {
				t.Errorf("the model has coloured the terminal: %q", colours)
			}
		})
	}
}

func TestQuestion_ReplacesTheStatusLineAndTakesOneKey(t *testing.T) {
	for columns, keys := range map[int]string{80: middleChoices, 200: choices} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			p := newPane(t, columns, 40, "ask")
			p.Wait(`  Bash +npm test`)
			p.Keys("y", "y", "Enter", "n", "Enter") // typed before there is a question
			p.step("ask")
			screen := p.Wait(`  Bash wants to run: npm test   ` + regexp.QuoteMeta(keys) + `$`)
			checkStatus(t, screen)
			if len(screen) != 1 {
				t.Errorf("what was typed is shown:\n%s", strings.Join(screen, "\n"))
			}
			p.Keys("x", "Up", "Left", "F1", "F5", "M-y", "Enter") // keys that are no answer do nothing
			p.Keys("y")
			p.log("once: allow, remember 0")
			checkStatus(t, p.Wait(`  Write wants to write: a.txt   \[y\]`))
			p.Keys("a")
			p.log("this run: allow, remember 2")
			p.Wait(`  deploy wants to be called: {}   \[y`)
			p.Keys("n")
			p.log("no: deny, remember 0")
			screen = p.Wait(`  Bash wants to run: long .*… \(\? shows all\)   \[y`)
			checkStatus(t, screen)
			if strings.Contains(strings.Join(screen, "\n"), "the last word") {
				t.Errorf("the question is not clipped:\n%s", strings.Join(screen, "\n"))
			}
			p.checkWhole()
			p.Keys("?")
			screen = p.Wait(`the last\s+word"\s+}`)
			checkStatus(t, screen)
			p.checkWhole()
			for _, want := range []string{"  why       capabilities: Bash needs the capability shellExecute", "  needs     shellExecute; risk: dangerous", "  input     {"} {
				if !strings.Contains(strings.Join(screen, "\n"), want) {
					t.Errorf("%q is not there:\n%s", want, strings.Join(screen, "\n"))
				}
			}
			p.Keys("n")
			p.log("why: deny, remember 0")
			p.step("done")
			p.Over(0)
		})
	}
}

func TestQuestion_DenialCarriesAReason(t *testing.T) {
	t.Parallel()
	p := newPane(t, 100, 60, "edit")
	screen := p.Wait(`(?s)model +I write it\.\n        @@ -0,0 \+1,30 @@\n(        \+a line\n){15}        … 15 more lines \(\? shows all\)\n  Write wants to write: a\.txt   \[y`)
	checkStatus(t, screen)
	p.Keys("?")
	p.Wait(`  why       capabilities: Write needs (?s).*\n  change    as a diff:\n        @@ -0,0 \+1,30 @@\n(        \+a line\n){30}  keys `)
	p.Keys("r")
	p.Wait(`\n  no, with the reason: _   \[enter\] send it  \[esc\] back$`)
	p.Keys("-l", "it is y")
	p.Wait(`reason: it is y_`)
	p.Keys("Escape")
	p.Wait(`wants to write: a\.txt   \[y`) // a key of the reason is no answer
	p.Keys("r", "Left", "Tab")
	p.Keys("-l", "écrire à part é")
	p.Keys("BSpace", "BSpace")
	p.Wait(`reason: écrire à part_`)
	p.Keys("Enter")
	p.log(`edit: "The user denied this call of Write. The user's reason: écrire à part\nDo not repeat the call unchanged. Do what the reason says."`)
	p.Over(0)
}

// A user approves only what can be seen.
func TestQuestion_WithoutRoomIsShownAbove(t *testing.T) {
	t.Parallel()
	p := newPane(t, 20, 80, "withdraw")
	p.step("withdraw")
	p.log("first: withdrawn")
	p.step("ask")
	p.Wait(`(?s)"asked".*\[y/a/n/r/\?\]`)
	p.Keys("n")
	p.log("second: deny, remember 0")
	p.Wait(`exit code 0`) // and no more: the terminal breaks what over looks for
}

func TestQuestion_WithdrawnDisappears(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 24, "withdraw")
	p.Wait(`wants to run: withdrawn`)
	p.step("withdraw")
	p.log("first: withdrawn")
	screen := p.Wait(`  model .* s$`)
	if strings.Contains(strings.Join(screen, "\n"), "wants to run") {
		t.Errorf("it is still there:\n%s", strings.Join(screen, "\n"))
	}
	p.Keys("y") // no question is open
	p.step("ask")
	p.Wait(`wants to run: asked   \[y`)
	p.Keys("n")
	p.log("second: deny, remember 0")
	p.Over(0)
}

func TestQuestion_AnsweredElsewhereBecomesALine(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 24, "other")
	p.Wait(`wants to run: npm test   \[y`)
	p.step("allow")
	p.log("allow: withdrawn")
	screen := p.Wait(`^  \d\d\.\d  Bash         answered on the page: allowed\n  Bash wants to run: npm test   \[y.*$`)
	checkStatus(t, screen)
	p.Keys("r")
	p.Keys("-l", "half a reason") // the other one is faster
	p.Wait(`half a reason_`)
	p.step("deny")
	p.log("deny: withdrawn")
	screen = p.Wait(`answered on the page: allowed\n  \d\d\.\d  Bash         answered on the page: denied\n  model .* s$`)
	checkStatus(t, screen)
	p.step("done")
	p.Over(0)
}

func TestDumbTerminal_SaysWhereAQuestionWasAnswered(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 50, "dumb-other")
	p.Wait(`ool:$`)
	p.step("allow")
	p.log("allow: withdrawn")
	p.Wait(`\(no longer asked: answered on the page: allowed\)`)
	p.step("deny")
	p.log("deny: withdrawn")
	p.Wait(`\(no longer asked: answered on the page: denied\)`)
	p.step("done")
	p.Over(0)
}

func TestQuestion_QueuesWhileLinesArrive(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 24, "queue")
	for n := range 3 {
		screen := p.Wait(fmt.Sprintf(`a line above\n(.*an answer came\n){%d}  Bash wants to run: question \d   \[y.*$`, n))
		checkStatus(t, screen)
		p.Keys("y")
	}
	p.Over(0)
}

func TestLive_CtrlCNamesStoppedCallsAndPrintsTheSummary(t *testing.T) {
	for name, during := range map[string]bool{"during a call": false, "during a question": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPane(t, 80, 24, "stop")
			p.Wait(`  Bash +npm test`)
			if during {
				p.step("ask")
				p.Wait(`wants to run: npm publish   \[y`)
			}
			p.Keys("C-c")
			p.Wait(`stopping Bash: npm test \.\.\.\n  stopping Bash +npm test .* s$`)
			if during {
				p.log("stopped: withdrawn")
			}
			p.step("done")
			screen := p.Over(130)
			if !strings.Contains(strings.Join(screen, "\n"), "  done         interrupted") {
				t.Errorf("no summary:\n%s", strings.Join(screen, "\n"))
			}
		})
	}
}

func TestLive_PanicRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 40, "panic")
	p.Over(2)
}

func TestLive_QuietShowsOnlyTheAnswer(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 24, "quiet")
	p.step("result")
	p.step("more")
	p.step("done")
	if text := strings.Join(p.Over(0), "\n"); !strings.HasPrefix(text, "The answer\nis 42.\nexit code 0\n") {
		t.Errorf("want nothing but the answer:\n%s", text)
	}
}

func TestColours_OnlyIfWanted(t *testing.T) {
	for _, tt := range []struct {
		name, play string
		env        []string
		want       bool
	}{
		{"on a terminal", "run", nil, true},
		{"NO_COLOR", "run", []string{"NO_COLOR=1"}, false},
		{"a dumb terminal", "dumb", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPane(t, 80, 24, tt.play, tt.env...)
			for _, step := range []string{"result", "more", "ask", "done"} {
				p.step(step)
			}
			if tt.play == "dumb" {
				for range 4 {
					p.Wait(`ool:$`)
					p.Keys("y", "Enter")
				}
			}
			p.Over(0)
			if got := p.Tmux("capture-pane", "-p", "-e"); strings.Contains(got, "\x1b[") != tt.want {
				t.Errorf("colours: %t, want %t:\n%q", !tt.want, tt.want, got)
			}
		})
	}
}

// A terminal that cannot move its cursor has lines, and questions between them.
func TestDumbTerminal_AsksLineByLine(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 50, "dumb")
	p.step("ask")
	for _, answer := range []string{"once: allow, remember 0", "this run: deny, remember 0", "no: allow, remember 2", "why: deny, remember 0"} {
		p.Wait(`ool:$`)
		p.Keys(map[string]string{"once": "y", "this run": "n", "no": "t", "why": "n"}[strings.Split(answer, ":")[0]], "Enter")
		p.log(answer)
	}
	p.step("done")
	p.Over(0)
}

// To touch the terminal from the background would stop the program.
func TestLive_BackgroundRunDoesNotTouchTheTerminal(t *testing.T) {
	t.Parallel()
	p := newPane(t, 80, 24, "background")
	for _, step := range []string{"result", "more", "done"} {
		p.step(step)
	}
	if text := strings.Join(p.Over(0), "\n"); !strings.Contains(text, "\n\nThe answer\nis 42.\n") {
		t.Errorf("no answer:\n%s", text)
	}
}
