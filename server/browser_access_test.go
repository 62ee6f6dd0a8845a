// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/server"
)

// serveNoted serves as [serve] does, and notes how each request was answered.
func serveNoted(t *testing.T, o server.Options) (*site, *answers) {
	t.Helper()
	s, err := server.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	noted := &answers{Handler: s}
	there := httptest.NewServer(noted)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		there.CloseClientConnections()
		there.Close()
	})
	return &site{s, t, there.URL}, noted
}

// The token leaves the address at once. After that, a reload and other tabs need none, and other browsers read how to get it.
func TestPage_TokenLeavesTheAddress(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	id := importLog(t, store, "demo")
	s.openRun(p, id)
	for _, where := range []string{"location.href", "document.documentElement.outerHTML", "JSON.stringify([localStorage, sessionStorage, history.state])", "document.cookie"} {
		if got := eval[string](p, where); strings.Contains(got, s.Token()) {
			t.Errorf("%s has the token: %.300s", where, got)
		}
	}
	p.open("about:blank")
	p.open(s.base + "/r/" + id + "#e=5")
	p.says(".foot .address", "#e=5")
	p.reload()
	p.says(".foot .address", "#e=5")
	p.wait("document.querySelector('.row.selected')")
	second := p.another()
	second.open(s.base + "/r/" + id + "#e=7")
	second.says(".foot .address", "#e=7")
	second.wait("document.querySelector('.row.selected')")
	second.open(s.base + "/r/" + id + "#t=" + s.Token() + "&e=9")
	second.wait("location.hash === '#e=9' && document.querySelector('.row.selected')")
	p.reload() // the trade in the other tab has locked nobody out
	p.wait("document.querySelector('.row.selected')")
	other := openTab(t)
	for _, address := range []string{"/", "/r/" + id + "#e=5", "/#t=wrong"} {
		other.open("about:blank")
		other.open(s.base + address)
		other.says(".access", "This browser has no access")
		other.says(".access", "drover serve")
	}
	p.call("Network.clearBrowserCookies", map[string]any{}, nil) // as a browser does that is started again
	p.reload()
	p.says(".access", "This browser has no access")
	viewer := openTab(t)
	viewer.open(s.base + "/r/" + id + "#t=" + s.ViewerToken())
	viewer.wait("document.querySelectorAll('.row').length > 3")
	viewer.wait("![...document.querySelectorAll('.actions button')].some((b) => /Stop|Continue/.test(b.textContent) && !b.disabled)")
}

// A page of another site, of another port, and by another name that leads here, gets nothing and changes nothing, with the cookie of
// a browser that has access.
func TestPage_OtherPagesAreRefused(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s, noted := serveNoted(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Emit(event.Text{Content: "The plan is secret."}), agenttest.Block())
	s.openRun(p, r.id)
	p.says(".row.turn", "The plan is secret.")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>elsewhere</title><body>")
	}))
	defer elsewhere.Close()
	attack := p.another()
	attack.foreign.Store(true)
	for name, base := range map[string]string{
		"another port": elsewhere.URL, "another site": strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1),
	} {
		attack.open(base)
		noted.take()
		got := eval[[]string](attack, `(async (base, run) => {
			const got = [];
			const attempt = async (path, init) => {
				try {
					const r = await fetch(base + path, { credentials: "include", ...init });
					got.push(path + " " + r.type + " " + (await r.text()));
				} catch (err) {
					got.push(path + " failed");
				}
			};
			for (const mode of ["cors", "no-cors"]) {
				await attempt("/v1/runs", { mode });
				await attempt("/v1/runs/" + run + "/events", { mode });
				await attempt("/v1/runs/" + run + "/stop", { mode, method: "POST", body: "{}" });
				await attempt("/v1/session", { mode, method: "POST", headers: { "Content-Type": "text/plain" }, body: '{"token":"x"}' });
			}
			await attempt("/v1/runs", { headers: { "Drover-Secret": "x", Authorization: "Bearer x" } });
			await new Promise((done) => {
				const events = new EventSource(base + "/v1/runs/" + run + "/events", { withCredentials: true });
				events.addEventListener("entry", (e) => { got.push("entry " + e.data); done(); });
				events.onerror = () => { events.close(); done(); };
			});
			await new Promise((done) => {
				const form = document.createElement("form");
				const frame = document.createElement("iframe");
				frame.name = "frame";
				form.method = "post"; form.target = "frame"; form.action = base + "/v1/runs/" + run + "/stop";
				document.body.append(frame, form);
				frame.onload = () => done();
				form.submit();
				setTimeout(done, 1000);
			});
			await new Promise((done) => {
				const frame = document.createElement("iframe");
				frame.onload = () => { let text = ""; try { text = frame.contentDocument.body.innerText; } catch {} got.push("frame " + text); done(); };
				frame.src = base + "/r/" + run;
				document.body.append(frame);
				setTimeout(done, 2000);
			});
			const script = document.createElement("script");
			await new Promise((done) => { script.onload = script.onerror = done; script.src = base + "/v1/runs"; document.body.append(script); });
			const w = window.open(base + "/r/" + run);
			got.push("window " + (w?.document === undefined ? "" : "readable"));
			w?.close();
			return got;
		})(`+fmt.Sprintf("%q, %q", s.base, r.id)+`)`)
		for _, line := range got {
			if strings.Contains(line, "plan") || strings.Contains(line, r.id+`"`) {
				t.Errorf("%s: a page of it reads %.200s", name, line)
			}
		}
		for _, answer := range noted.take() {
			if strings.Contains(answer, " /v1/") && !strings.HasSuffix(answer, " 403") && !strings.HasSuffix(answer, " 404") && !strings.HasSuffix(answer, " 405") {
				t.Errorf("%s: %s", name, answer)
			}
		}
	}
	attack.open(strings.Replace(s.base, "127.0.0.1", rebound, 1) + "/r/" + r.id)
	if text := eval[string](attack, "document.body.innerText"); !strings.Contains(text, "not called "+rebound) {
		t.Errorf("by a name that leads here: %.200s", text)
	}
	if got := noted.take(); !slices.ContainsFunc(got, func(a string) bool { return strings.HasSuffix(a, "/r/"+r.id+" 421") }) {
		t.Errorf("by a name that leads here: %q", got)
	}
	if run := s.run(r.id); run.State != "running" {
		t.Errorf("the run is %s", run.State)
	}
	p.says(".pill", "Running")
}

// The audit finds what is planted, and nothing on any page, in both schemes and widths.
func TestPage_Audit(t *testing.T) {
	p := openTab(t)
	store := openStore(t)
	s := serve(t, server.Options{Store: store, Starter: &pageStarter{t: t, store: store}})
	review, demo := importLog(t, store, "review"), importLog(t, store, "demo")
	asks := start(t, store, asking(), server.LiveOptions{}, agenttest.Emit(event.Text{Content: "I will log in."}), agenttest.UseTool(command, "done"), agenttest.Done("token-1"))
	waitFor(t, "the question", func() bool { return len(s.run(asks.id).Questions) == 1 })
	js, err := os.ReadFile("testdata/audit.js")
	if err != nil {
		t.Fatal(err)
	}
	audit := strings.TrimSpace(string(js))
	audit = strings.TrimSuffix(audit[strings.Index(audit, "(("):], ";")
	s.openRun(p, review)
	p.wait("document.querySelectorAll('.row').length > 3")
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme, 1280)
		if found := eval[struct {
			Findings []string `json:"findings"`
		}](p, audit+"({ plant: true })").Findings; len(found) != 3 {
			t.Errorf("%s: the audit finds %q, and three faults are planted", scheme, found)
		}
	}
	look := func(what string) {
		t.Helper()
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 400} {
				p.scheme(scheme, width)
				p.wait("true")
				got := eval[struct {
					Texts    int      `json:"texts"`
					Findings []string `json:"findings"`
				}](p, audit+"()")
				if len(got.Findings) > 0 || got.Texts < 5 {
					t.Errorf("%s, %s, %d wide: %d texts, findings:\n%s", what, scheme, width, got.Texts, strings.Join(got.Findings, "\n"))
				}
			}
		}
		for _, nameless := range p.nameless() {
			t.Errorf("%s: the accessibility tree has a %s", what, nameless)
		}
		p.scheme("light", 1280)
	}
	p.keys("]")
	for i, tab := range []string{"event", "prompt", "session", "files", "gateway", "events"} {
		p.keys(fmt.Sprint(i + 1))
		p.wait("document.querySelector('.page-" + tab + "').textContent.length > 20")
		look("a run, " + tab)
	}
	p.keys("?")
	p.says("dialog", "Keys")
	look("help")
	s.openRun(p, asks.id)
	p.says(".question", "perform")
	p.click(".question button", "Show all")
	look("a question")
	p.keys("w", "n")
	p.wait("document.querySelector('.with-reason input')")
	look("a denial with a reason")
	p.open(s.base + "/")
	p.says(".needs", "Waits for you")
	look("the list of runs")
	p.click(".list-tools button", "Compare")
	look("marking runs")
	p.click(".list-tools button", "Start a run")
	p.says("dialog", "What it may do")
	look("starting a run")
	p.open(s.base + "/compare?a=" + review + "&b=" + demo)
	p.says(".compare", "part at")
	look("two runs")
	p = openTab(t)
	p.open(s.base + "/")
	p.says(".access", "no access")
	look("no access")
}

// nameless lists what the browser gives to assistive technology without a name.
func (p *tab) nameless() (found []string) {
	p.t.Helper()
	type value struct {
		Value any `json:"value"`
	}
	var tree struct {
		Nodes []struct {
			Ignored bool  `json:"ignored"`
			Role    value `json:"role"`
			Name    value `json:"name"`
		} `json:"nodes"`
	}
	p.call("Accessibility.getFullAXTree", map[string]any{}, &tree)
	seen := 0
	for _, n := range tree.Nodes {
		role, _ := n.Role.Value.(string)
		switch name, _ := n.Name.Value.(string); role {
		case "button", "link", "textbox", "searchbox", "combobox", "checkbox", "slider", "tab", "row", "meter", "image", "img", "dialog", "treegrid", "tabpanel", "spinbutton", "listbox":
			if seen++; !n.Ignored && strings.TrimSpace(name) == "" && role != "row" {
				found = append(found, role+" without a name")
			}
		}
	}
	if len(tree.Nodes) < 5 {
		p.t.Errorf("the accessibility tree has %d nodes, %d controls", len(tree.Nodes), seen)
	}
	return found
}
