// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strconv"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/drover-agents/drover/server"
)

// fedRun has the page read the events of a run from window.feed, and counts what changes in the document.
const fedRun = `
	const own = window.fetch;
	window.fetch = (path, init) => {
		if (!String(path).endsWith("/events")) return own(path, init);
		return Promise.resolve(new Response(new ReadableStream({ start: (c) => (window.stream = c) })));
	};
	const text = new TextEncoder();
	const began = Date.now() - 600_000;
	window.runs = () => Date.now() - began;
	let position = 0;
	window.feed = (events) => {
		let all = position ? "" : 'event: state\ndata: {"state":"running","controllable":true,"questions":[]}\n\n';
		for (const [type, payload, at] of events) all += "id: " + ++position + "\nevent: entry\ndata: " + JSON.stringify({ position: String(position), type, timestamp: began + at, turn: 1, payload }) + "\n\n";
		window.stream.enqueue(text.encode(all));
	};
	window.call = (i, at, name = "Bash") => [["tool_use", { toolUseId: "call-" + i, toolName: name, input: { command: "go test ./part" + i, file_path: "/srv/part" + i + ".go" } }, at], ["tool_result", { toolUseId: "call-" + i, toolName: name, status: "success", output: "done" }, at + 100]];
	const frames = async (n) => { for (let i = 0; i < n; i++) await new Promise(requestAnimationFrame); };
	window.changes = async (act) => {
		let n = 0;
		const count = (all) => { for (const c of all) n += c.type === "childList" ? [...c.addedNodes].reduce((sum, e) => sum + 1 + (e.querySelectorAll?.("*").length ?? 0), 0) : 1; };
		const watch = new MutationObserver(count);
		watch.observe(document.querySelector(".work"), { subtree: true, childList: true, attributes: true, characterData: true });
		await act();
		await frames(3);
		count(watch.takeRecords());
		watch.disconnect();
		return n;
	};`

// What the page does for an event, and for a step of scrolling, does not grow with the run: 10,000 events are as many elements as 200,
// and an event changes its own row.
func TestPage_WorkDoesNotGrow(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	id := importLog(t, store, "demo")
	p.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": fedRun}, nil)
	p.open(s.Address(s.base, id))
	p.wait("window.stream")
	eval[bool](p, `(() => {
		feed([["text", { content: "I run all of them." }, 10]]);
		const all = [];
		for (let i = 0; i < 4990; i++) all.push(...call(i, 1000 + i * 100, i % 5 ? "Bash" : "Write"));
		for (let i = 0; i < 20; i++) all.push(["gateway:connection", { host: "host" + i, port: 443, verdict: "allowed" }, 500_100]);
		all[all.length - 1][1] = { host: "evil.example", port: 443, verdict: "denied", reason: "no rule allows it" };
		feed(all);
		return true;
	})()`)
	const shown = "document.querySelector('.connection').textContent.includes('event 10001')"
	p.wait(shown + " && document.querySelector('.row.call')")
	elements := func(where string) {
		t.Helper()
		if n := eval[int](p, "document.querySelectorAll('*').length"); n > 4000 {
			t.Errorf("%s: the document has %d elements", where, n)
		} else {
			t.Logf("%s: %d elements", where, n)
		}
	}
	changes := func(where string, most int, act string) {
		t.Helper()
		n := eval[int](p, "window.changes(async () => {"+act+"})")
		if n > most {
			t.Errorf("%s: %d changes in the document, want at most %d", where, n, most)
		} else {
			t.Logf("%s: %d changes", where, n)
		}
	}
	p.wait("new Promise((done) => setTimeout(() => done(true), 1500))") // until what is painted once a second has been
	elements("at the start")
	const calls = "for (let i = 0; i < 10; i++) { window.next = (window.next ?? 5000) + 1; feed(call(window.next, window.runs() - 100)); await new Promise((done) => setTimeout(done, 90)); }"
	changes("ten calls", 700, calls)
	eval[bool](p, "(document.querySelector('.treegrid').focus(), true)")
	p.keys(kb.Home) // to the turn with all the calls, which follows nothing
	p.says(".panel-title", "Turn 1")
	elements("the turn of all calls")
	eval[bool](p, "(async () => { document.querySelector('.treegrid').scrollTop = 20000; for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame); return true; })()")
	changes("a step of scrolling", 200, "await new Promise(requestAnimationFrame); document.querySelector('.treegrid').scrollTop += 66;")
	for i, name := range []string{"Event", "Prompt", "Session", "Files", "Gateway", "Events"} {
		p.keys(strconv.Itoa(i + 1))
		p.wait("document.querySelector('[role=tab][aria-selected=true]').textContent.startsWith(" + strconv.Quote(name) + ")")
		elements("the tab " + name)
		if name == "Gateway" {
			p.says(".page-gateway tr", "evil.example:443denied")
			p.says(".page-gateway tr", "no rule allows it")
		}
	}
	changes("ten calls beside the tab Events", 700, calls)
}
