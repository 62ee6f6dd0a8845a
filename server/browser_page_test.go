// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// A run of the real CLI is watched from its first words to its end, and its question is denied by keys alone, with a reason that the
// model reads.
func TestPage_RunOfTheRealCLI(t *testing.T) {
	p := openTab(t)
	cli := claudetest.CLI(t)
	const words = "I will look at the shop before I change anything in it."
	model := claudetest.NewModel(t,
		script.Reply(script.TextBlock{Text: words}, script.ToolCall{ID: "toolu_shop", Name: "Bash", Input: script.Input{"command": "rm -r shop", "description": "tidy up"}}).Chunked(8, 120*time.Millisecond),
		script.Text("I leave it as it is."),
	).RequireAllUsed()
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	adapter := claudecode.New(cli.Options(model))
	r := startOn(t, store, &drover.Options{
		Settings: agent.Settings{PartialText: true, Permissions: &gate.Permissions{}, Budget: &guard.Budget{MaxCostUSD: 0.5}},
		Policies: []gate.Policy{gate.KnowsAgent(adapter.Catalogue())}, Deadline: guard.FromNow(10 * time.Minute),
	}, server.LiveOptions{}, adapter)
	s.openRun(p, r.id)
	p.says(".dock .stream", words[:20])
	p.says(".question", "rm -r shop")
	p.wait("document.title.startsWith('(1) ')")
	p.says(".pill", "1 waits for you")
	p.says(".row .tag", "waits for you")
	p.says(".gauge-cost", "of $0.50")
	p.says(".gauge-deadline", "left of 10:00")
	p.wait("document.querySelector('[role=meter][aria-label^=Time]').getAttribute('aria-valuetext').includes('left of 10:00')")
	p.keys("n") // without the focus on the question it means nothing
	p.keys("w", "n", "The shop is needed.", kb.Enter)
	p.says(".connection", "Ended")
	<-r.done
	if r.err != nil {
		t.Fatal(r.err)
	}
	if text, _, ok := model.ToolResult("toolu_shop"); !ok || !strings.Contains(text, "The shop is needed.") {
		t.Errorf("the model reads of the denial: %q", text)
	}
	p.says(".pill", "Done")
	p.wait("document.title.endsWith(': Done')")
	p.wait("!document.querySelector('.question, .dock:not([hidden])')")
	p.keys("]")
	p.says(".verdict.denied", "the person who was asked")
	p.says(".verdict.denied", "The shop is needed.")
	p.says(".gate .decided.deny", "approver")
	p.says(".row.is-denied .took", "never ran")
	p.says(".page-event .part", "Sent to the model")
	p.says(".page-event .json-string", "rm -r shop")
}

// A cutter passes connections on to a server until they are cut.
type cutter struct {
	base string
	mu   sync.Mutex
	open []net.Conn
	cut  bool
}

func newCutter(t *testing.T, to string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{base: "http://" + l.Addr().String()}
	var passing sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		c.set(true)
		passing.Wait()
	})
	passing.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", strings.TrimPrefix(to, "http://"))
			if c.mu.Lock(); err != nil || c.cut {
				_ = from.Close()
				if err == nil {
					_ = there.Close()
				}
				c.mu.Unlock()
				continue
			}
			c.open = append(c.open, from, there)
			c.mu.Unlock()
			for _, way := range [][2]net.Conn{{from, there}, {there, from}} {
				passing.Go(func() {
					_, _ = io.Copy(way[0], way[1]) // it ends when one is closed
					_, _ = way[0].Close(), way[1].Close()
				})
			}
		}
	})
	return c
}

// set cuts all connections and refuses new ones, or accepts them again.
func (c *cutter) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for _, conn := range c.open {
			_ = conn.Close()
		}
		c.open = nil
	}
}

// While the connection is cut, what is shown stays and nothing can be answered. After it, each event is there once.
func TestPage_ConnectionCutAndBack(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	cut := newCutter(t, s.base)
	more := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(more) })
	defer goOn()
	var steps []agenttest.Step
	emit := func(from, to int) {
		for i := from; i <= to; i++ {
			steps = append(steps, agenttest.Emit(event.Text{Content: fmt.Sprintf("line %d.", i)}))
		}
	}
	emit(1, 20)
	steps = append(steps, func(*agenttest.Run) { <-more })
	emit(21, 40)
	steps = append(steps, agenttest.UseTool(command, "done"))
	emit(41, 45)
	r := start(t, store, asking(), server.LiveOptions{}, append(steps, agenttest.Done("token-1"))...)
	p.open(s.Address(cut.base, r.id))
	shown := "document.querySelector('.page-event .block')?.textContent ?? ''"
	p.says(".row.turn", "line 1.")
	p.keys("j", "j") // behind the prompt
	p.wait("(" + shown + ").includes('line 20.')")
	p.wait("document.querySelector('.connection').textContent.startsWith('Live, event')")
	cut.set(true)
	p.says(".connection", "Reconnecting, shown up to event")
	p.wait("document.querySelector('.actions button').disabled && document.querySelector('.actions button').title.includes('Not connected')")
	goOn()
	waitFor(t, "the question", func() bool { return len(s.run(r.id).Questions) == 1 })
	if got := eval[string](p, shown); !strings.Contains(got, "line 20.") || strings.Contains(got, "line 21.") {
		t.Errorf("without a connection the page shows %q", got)
	}
	cut.set(false)
	p.wait("document.querySelector('.connection').textContent.startsWith('Live, event')")
	p.says(".question", "perform")
	cut.set(true) // a question that is open when the connection goes
	p.says(".question .offline", "Not connected")
	p.wait("[...document.querySelectorAll('.question .answers button')].every((b) => b.disabled)")
	cut.set(false)
	p.wait("[...document.querySelectorAll('.question .answers button')].every((b) => !b.disabled)")
	p.click(".question button", "Allow once")
	p.says(".connection", "Ended")
	<-r.done
	texts := "[...document.querySelectorAll('.row.turn')].map((r) => r.node.text).join('\\n')"
	p.wait("(" + texts + ").includes('line 45.')") // the rows follow in the next frame
	all := eval[string](p, texts)
	var want []string
	for i := range 45 {
		want = append(want, fmt.Sprintf("line %d.", i+1))
	}
	if got := strings.Fields(strings.ReplaceAll(all, "line ", "line-")); strings.Join(got, " ") != strings.ReplaceAll(strings.Join(want, " "), "line ", "line-") {
		t.Errorf("after the cuts the page has %q", got)
	}
}

// Everything that a recorded run has is shown: what it did, why a call was refused, what it cost.
func TestPage_ShowsAllOfARun(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	id := importLog(t, store, "review")
	s.openRun(p, id)
	rows := func() []string {
		return eval[[]string](p, "[...document.querySelectorAll('.treegrid .row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.ariaLevel + ' ' + r.querySelector('.name').textContent)")
	}
	p.wait("document.querySelectorAll('.treegrid .row').length > 8")
	p.keys("[", "[", "[") // from the last problem up: what is folded opens
	p.says(".row", "Write")
	t.Run("bars", func(t *testing.T) {
		p.t = t
		off := eval[[]string](p, `(() => {
			const rows = [...document.querySelectorAll(".row")].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex);
			const [began, ended] = [rows[0].node.start, rows.at(-1).node.start];
			const seen = [];
			for (const r of rows.filter((r) => r.matches(".turn, .call"))) {
				const lane = r.querySelector(".lane").getBoundingClientRect();
				const bar = r.querySelector(".bar").getBoundingClientRect();
				const want = ((r.node.start - began) / (ended - began)) * lane.width;
				if (Math.abs(bar.x - lane.x - want) > 4 || bar.width < 2) seen.push(r.ariaLabel + " is at " + (bar.x - lane.x) + " of " + lane.width + ", not " + want);
			}
			return rows.length > 8 ? seen : ["only " + rows.length + " rows"];
		})()`)
		for _, text := range off {
			t.Errorf("a bar is not where its time is: %s", text)
		}
	})
	t.Run("failure", func(t *testing.T) {
		p.t = t
		p.click(".row.is-failed .name", "rolled back")
		p.says(".verdict.failed", "exit code 1")
		p.says(".verdict.failed", "cat: missing.txt")
		p.says(".page-event .part", "Put back as they were before the call")
		p.says(".page-event .part", "cart/left.txt")
	})
	t.Run("call that a person has allowed", func(t *testing.T) {
		p.t = t
		p.keys("/", "is:asked", kb.Enter)
		p.click(".row.call .name", "go test")
		p.wait("document.querySelector('.row.call .bar.tone-waiting')")
		p.says(".gate .decided.allow", "approver")
		p.says(".facts", "Waited")
		p.keys("/", kb.Escape)
	})
	t.Run("denial", func(t *testing.T) {
		p.t = t
		p.click(".row .name", "Write")
		p.keys("j", "k")
		p.wait("document.querySelector('.treegrid').getAttribute('aria-activedescendant') === document.querySelector('.row.selected').id")
		p.click(".kind", "Denied")
		p.click(".row.is-denied .name", "Write")
		p.says(".panel-title", "Write")
		p.says(".verdict.denied", "Denied by")
		p.says(".verdict.denied", "The call never ran; nothing changed.")
		p.wait("document.querySelectorAll('.gate tr').length === 4 && document.querySelectorAll('.gate tr.decided').length === 1")
		p.says(".gate tr.skipped", "not asked: denied above")
		p.click(".kind", "Denied")
	})
	t.Run("subagents are a tree", func(t *testing.T) {
		p.t = t
		p.keys("/", "agent:", kb.Enter)
		p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('.tools input').value = 'is:subagent'; document.querySelector('.tools input').dispatchEvent(new Event('input'))"))
		p.wait("[...document.querySelectorAll('.row')].some((r) => r.ariaLevel === '4')")
		got := strings.Join(rows(), "\n")
		for _, want := range []string{"2 Agent", "3 5.1", "4 Bash", "3 5.2"} {
			if !strings.Contains(got, want) {
				t.Errorf("there is no row %q in\n%s", want, got)
			}
		}
		p.keys("/", kb.Escape)
	})
	t.Run("filter", func(t *testing.T) {
		p.t = t
		for filter, want := range map[string]string{"is:failed": "Bash", "tool:Edit": "Edit", "logo.png file_path": "Read", "turn:3": "Write"} {
			p.keys("/", filter, kb.Enter)
			p.wait("document.querySelector('.tools input').value === " + strconv.Quote(filter))
			p.wait("[...document.querySelectorAll('.row.call .label')].length > 0 && [...document.querySelectorAll('.row.call .label')].every((l) => l.textContent === " + strconv.Quote(want) + ")")
			p.keys("/", kb.Escape)
		}
		p.keys("/", "nothing of this kind", kb.Enter)
		p.says(".empty", "No turn and no call matches the filter.")
		p.keys("6")
		p.says(".event-note", "0 of ")
		p.keys("/", kb.Escape, "1")
	})
	t.Run("prompt by section", func(t *testing.T) {
		p.t = t
		p.keys("2")
		p.says(".prompt-section summary", "1. Task")
		p.says(".prompt-section summary", "shown as a summary")
		p.says(".page-prompt", "Tools of the agent")
		p.wait("document.querySelectorAll('.prompt-section').length === 4")
	})
	t.Run("session slices over time", func(t *testing.T) {
		p.t = t
		p.keys("3")
		p.says(".session-at", "after event")
		p.says(".slice summary", "policyState")
		p.says(".slices", "Bash")
		p.click(".session-range button", "‹")
		p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('.session-range input').value = 3; document.querySelector('.session-range input').dispatchEvent(new Event('input'))"))
		p.says(".session-at", "after event 3 of")
		p.wait("!document.querySelector('.slices').textContent.includes('Bash')")
	})
	t.Run("files", func(t *testing.T) {
		p.t = t
		p.keys("4")
		p.says(".page-files", "cart.go")
	})
	t.Run("gateway", func(t *testing.T) {
		p.t = t
		p.keys("5")
		p.says(".page-gateway", "Model calls")
		p.wait("document.querySelectorAll('.page-gateway tbody tr').length >= 9")
		p.says(".page-gateway", "Network")
	})
	t.Run("events", func(t *testing.T) {
		p.t = t
		p.keys("6")
		p.says(".event-note", "113 events")
		p.click(".event-row", "prompt:rendered")
		p.wait("location.hash === '#e=1'")
	})
	t.Run("link to an event", func(t *testing.T) {
		p.t = t
		p.open(s.base + "/r/" + id + "#e=33")
		p.wait("document.querySelector('.row.selected') && location.hash === '#e=33'")
		p.says(".foot .address", "#e=33")
		p.wait("document.querySelector('.toggle[title^=Keep]').hidden || document.querySelector('.toggle[title^=Keep]').ariaPressed === 'false'")
	})
	t.Run("picture and changes", func(t *testing.T) {
		p.t = t
		p.keys("1", "/", "logo", kb.Enter)
		p.click(".row.call .name", "logo.png")
		p.wait("document.querySelector('.page-event figure img')?.naturalWidth > 0")
		p.keys("/", kb.Escape, "/", "tool:Edit", kb.Enter)
		p.click(".row.call .name", "Edit")
		p.wait("document.querySelector('.page-event .diff-line.added') && document.querySelector('.page-event .diff-line.removed')")
		p.keys("/", kb.Escape)
	})
}

// A run that has reached its limit says so, and where.
func TestPage_ShowsWhyARunEnded(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	s.openRun(p, importLog(t, store, "budget"))
	p.says(".pill", "Out of budget")
	p.says(".reason", "budget")
	p.click(".row.note.is-failed .name", "Limit")
	p.says(".panel-title", "Limit reached")
	p.says(".verdict.failed", "budget")
}

// The list is searched, and a question is answered in it. The page of the run says who has answered, also in another tab.
func TestPage_ListOfRuns(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	importLog(t, store, "review")
	importLog(t, store, "budget")
	r := start(t, store, asking(), server.LiveOptions{}, agenttest.Emit(event.Text{Content: "I will log in."}), agenttest.UseTool(command, "done"), agenttest.Done("token-1"))
	p.open(s.Address(s.base, ""))
	rows := func(want int) {
		t.Helper()
		p.wait("document.querySelectorAll('tr[data-id]').length === " + strconv.Itoa(want))
	}
	rows(3)
	p.keys("/", "input trust", kb.Enter)
	rows(2)
	p.says(".c-run", "Review shop")
	p.keys("/", " of another world", kb.Enter)
	rows(0)
	p.says(".empty", "No run matches.")
	p.keys("/", kb.Escape)
	rows(3)
	p.click(".tabs-line button", "Went wrong")
	rows(1)
	p.says(".c-status", "Out of budget")
	p.click(".tabs-line button", "Live")
	rows(1)
	p.says(".c-status", "Waiting")
	second := p.another()
	second.open(s.base + "/r/" + r.id)
	second.says(".question", "perform")
	p.says(".need", "perform")
	p.wait("document.title.startsWith('(1) ')")
	p.click(".need button", "Allow once")
	second.says(".question.by", "Allowed in another page or program.")
	second.says(".connection", "Ended")
	p.wait("document.querySelector('.needs').hidden && !document.title.startsWith('(')")
	<-r.done
	if r.err != nil {
		t.Fatal(r.err)
	}
}

// What a tool returns is text: no markup, no control of the terminal or of the direction, and five megabytes do not hold up the page.
func TestPage_HostileTextIsText(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	const hostile = "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 2'> \x1b[31mred\x1b[0m \u202etxt.exe\u202c end"
	large := strings.Repeat("all work and no play \u202e\x1b[2J <b>bold</b>\n", 5<<20/41+1)
	call := func(id string, output string) agenttest.Step {
		input, err := json.Marshal(map[string]string{"file_path": hostile})
		if err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(output)
		if err != nil {
			t.Fatal(err)
		}
		return agenttest.Emit(event.ToolCall{ID: event.CallID(id), Name: "Read" + hostile, Input: input}, event.ToolResult{ID: event.CallID(id), Name: "Read", Status: event.ToolSuccess, Output: out})
	}
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Emit(event.Text{Content: hostile}), call("call-1", hostile), call("call-2", large), agenttest.Done("token-1"))
	<-r.done
	s.openRun(p, r.id)
	p.wait("document.querySelectorAll('.row.call').length === 2")
	for i := range 2 {
		p.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('.row.call')[" + strconv.Itoa(i) + "].click()"))
		p.says(".page-event h3", "Output")
		if took := eval[float64](p, "(async () => { const began = performance.now(); document.querySelectorAll('.row.call')["+strconv.Itoa(1-i)+"].click(); document.querySelectorAll('.row.call')["+strconv.Itoa(i)+"].click(); await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); return performance.now() - began; })()"); took > 2000 {
			t.Errorf("showing output %d took %.0f ms", i+1, took)
		}
		p.wait("[...document.querySelectorAll('.page-event .block .control')].some((c) => c.textContent === 'RLO') && [...document.querySelectorAll('.page-event .block .control')].some((c) => c.textContent === 'ESC')")
	}
	p.says(".cut-foot", "The first 65.5 kB of ")
	p.click(".cut-foot button", "Show more")
	p.says(".cut-foot", "The first 327.7 kB of ")
	if found := eval[int](p, "document.querySelectorAll('#app script, #app b:not(.gauge-figure b), .page img, .row img').length"); found != 0 {
		t.Errorf("texts have become %d elements", found)
	}
	if eval[bool](p, "'owned' in window") {
		t.Error("a text was run as a script")
	}
	p.foreign.Store(true)
	if eval[bool](p, `(() => {
		const script = document.createElement("script");
		script.textContent = "window.owned = 3";
		const styled = document.createElement("p");
		styled.setAttribute("style", "color: red");
		document.body.append(script, styled);
		document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.owned = 4'>");
		return "owned" in window || getComputedStyle(styled).color === "rgb(255, 0, 0)";
	})()`) {
		t.Error("the page has run a script, or used a style, that is in its document")
	}
	p.wait("/[\\u202e\\u001b]/.test(document.body.textContent + document.title + [...document.querySelectorAll('[aria-label], [title]')].map((e) => e.ariaLabel + e.title).join('')) === false")
}

// Every page can be used by keys alone.
func TestPage_Keyboard(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	id := importLog(t, store, "review")
	p.open(s.Address(s.base, ""))
	p.says(".c-run", "Review shop")
	focus := func(what string) {
		t.Helper()
		p.wait("document.activeElement?.matches(" + strconv.Quote(what) + ")")
	}
	p.keys("/")
	focus(".search input")
	p.keys(kb.Escape, "j")
	focus(".c-run a")
	p.keys(kb.Enter)
	p.wait("location.pathname === '/r/" + id + "' && document.querySelector('.row')")
	for range 40 { // to the timeline: it is one stop
		if p.keys(kb.Tab); eval[bool](p, "document.activeElement?.matches('.treegrid')") {
			break
		}
		if eval[bool](p, "document.activeElement !== document.body && getComputedStyle(document.activeElement).outlineStyle === 'none'") {
			t.Errorf("the focus is not shown on %s", eval[string](p, "document.activeElement.outerHTML"))
		}
	}
	focus(".treegrid")
	selected := "document.querySelector('.row.selected')?.getAttribute('aria-label') ?? ''"
	p.keys(kb.Home, kb.ArrowDown, kb.ArrowLeft)
	p.wait("document.querySelector('.row.selected')?.ariaExpanded === 'false'")
	p.keys(kb.ArrowRight)
	p.wait("document.querySelector('.row.selected')?.ariaExpanded === 'true'")
	p.keys("l")
	p.wait("document.querySelector('.row.selected')?.ariaLevel === '2'")
	p.keys("h")
	p.wait("document.querySelector('.row.selected')?.ariaLevel === '1'")
	p.keys(kb.Home, "]")
	p.wait("(" + selected + ").includes('denied')")
	hash := eval[string](p, "location.hash")
	p.keys("]", "[")
	p.wait("location.hash === " + strconv.Quote(hash))
	p.keys(kb.Enter)
	focus(".page")
	p.keys(kb.Escape)
	focus(".treegrid")
	for i, name := range []string{"Event", "Prompt", "Session", "Files", "Gateway", "Events"} {
		p.keys(strconv.Itoa(i + 1))
		p.wait("document.querySelector('[role=tab][aria-selected=true]').textContent.startsWith(" + strconv.Quote(name) + ")")
	}
	p.keys("1", "?")
	p.wait("document.querySelector('dialog[open]')?.contains(document.activeElement)")
	p.keys(kb.Escape)
	p.wait("!document.querySelector('dialog')")
	focus(".treegrid")
	p.keys("+")
	p.says(".overview-label", "Zoomed")
	p.keys("0")
	p.says(".overview-label", "Whole run")
}

// A run is stopped, continued, and started again with changes.
func TestPage_StopContinueStartAgain(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	starter := &pageStarter{t: t, store: store}
	s := serve(t, server.Options{Store: store, Starter: starter})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Emit(event.Text{Content: "I begin."}), agenttest.Block())
	s.openRun(p, r.id)
	p.click(".actions button", "Stop run")
	p.wait("document.activeElement?.textContent === 'Keep running'") // Enter by mistake stops nothing
	p.keys(kb.Enter)
	p.wait("!document.querySelector('dialog')")
	p.says(".pill", "Running")
	p.click(".actions button", "Stop run")
	p.click("dialog button", "Stop run")
	<-r.done
	p.says(".pill", "Stopped")
	p.click(".actions button", "Continue")
	p.wait("document.activeElement?.tagName === 'TEXTAREA'")
	p.keys("Go on with the cart.")
	p.click("dialog button", "Continue")
	p.says(".row.turn", "continued: Go on with the cart.")
	p.click(".actions .more", "")
	p.click(".menu button", "Start again with changes")
	p.wait("document.querySelector('dialog textarea')?.value === 'Look at the shop.'")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('[data-limit=usd]').value = '0.25'"))
	p.click("dialog .check", "change files")
	p.click("dialog button", "Start")
	p.says(".row.turn", "started: Look at the shop.")
	other := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
	p.open(s.base + "/r/" + other.id)
	p.says(".pill", "Running")
	p.click(".actions .more", "")
	p.says(".menu button", "Interrupt the turn")
	s.request("POST", "/v1/runs/"+other.id+"/stop", "{}")
	p.says(".pill", "Stopped")
	p.says(".menu button", "Start again with changes") // what is open stays open when the run ends
	p.wait("![...document.querySelectorAll('.menu button')].some((b) => /Interrupt/.test(b.textContent))")
	starter.mu.Lock()
	got := starter.started
	starter.mu.Unlock()
	if len(got) != 1 || got[0].Limits.USD != 0.25 || len(got[0].Deny) != 1 || got[0].Deny[0] != "fileWrite" {
		t.Errorf("the page has asked for %+v", got)
	}
}

// A pageStarter starts runs of a scripted agent.
type pageStarter struct {
	t       *testing.T
	store   *record.Store
	mu      sync.Mutex
	started []server.Start
}

func (st *pageStarter) Offer(context.Context) (server.Offer, error) {
	return server.Offer{Agents: []server.OfferedAgent{}, Prompts: true, Folders: []string{"/srv/shop"}, Limits: server.Limits{USD: 1}, Permissions: map[string]string{"fileWrite": "allow", "shellExecute": "ask", "networkAccess": "deny"}}, nil
}

func (st *pageStarter) Start(_ context.Context, s server.Start) (string, error) {
	st.mu.Lock()
	st.started = append(st.started, s)
	st.mu.Unlock()
	return st.run("started: " + s.Prompt), nil
}

func (st *pageStarter) Continue(_ context.Context, _ *record.Run, text string) (string, error) {
	return st.run("continued: " + text), nil
}

func (st *pageStarter) Again(*record.Run) *server.Start {
	return &server.Start{Prompt: "Look at the shop."}
}

func (st *pageStarter) run(says string) string {
	return start(st.t, st.store, nil, server.LiveOptions{}, agenttest.Emit(event.Text{Content: says}), agenttest.Done("token-1")).id
}

// Bundles are opened in the page, whole or cut short, and two runs are compared.
func TestPage_BundlesAndComparison(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	id := importLog(t, store, "review")
	other := importLog(t, store, "demo")
	_, bundle := s.request("GET", "/v1/runs/"+id+"/bundle", "")
	dir := t.TempDir()
	for name, text := range map[string]string{"whole.zip": bundle, "cut.zip": bundle[:len(bundle)*2/3], "other.zip": "no zip"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	choose := func(name string) {
		t.Helper()
		p.open(s.Address(s.base, ""))
		p.says(".list-tools button", "Open a bundle")
		p.do(chromedp.SetUploadFiles(chromedp.CSS("input[type=file]"), []string{filepath.Join(dir, name)}, chromedp.NodeReady))
	}
	choose("whole.zip")
	p.wait("location.pathname.startsWith('/r/bundle-')")
	p.says(".connection", "113 events")
	p.says(".row.is-denied", "never ran")
	p.wait("![...document.querySelectorAll('.actions button')].some((b) => /Stop|Continue/.test(b.textContent))")
	choose("cut.zip")
	p.wait("location.pathname.startsWith('/r/bundle-2')")
	p.says(".gone, .verdict.failed", "cut")
	choose("other.zip")
	p.says("dialog", "The bundle cannot be opened")
	p.open(s.base + "/")
	p.click(".list-tools button", "Compare")
	p.wait("document.querySelectorAll('.c-run input[type=checkbox]').length === 2")
	for i := range 2 {
		p.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('.c-run input[type=checkbox]')[" + strconv.Itoa(i) + "].click()"))
	}
	p.wait("location.pathname === '/compare' && location.search.includes('" + other + "')")
	p.says(".compare", "They part at the first call:")
	p.wait("document.querySelector('.compare .diff-line.added')")
	p.click(".compare dd a", "Read")
	p.wait("location.pathname.startsWith('/r/') && location.hash.startsWith('#e=') && document.querySelector('.row.selected')")
}
