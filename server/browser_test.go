// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/drover-agents/drover/record"
)

// A browserMain runs the tests of this package and then ends their browser.
type browserMain struct{ m *testing.M }

func (b browserMain) Run() int {
	code := b.m.Run()
	if err := closeBrowser(); err != nil {
		fmt.Fprintln(os.Stderr, "the browser:", err)
		return max(code, 1)
	}
	return code
}

// shared is the browser of all tests of this binary: a start costs a second of a core.
var shared struct {
	once sync.Once
	ctx  context.Context
	stop func()
	dir  string
	err  error
}

// envChromium names another browser than the Chromium on the PATH.
const envChromium = "DROVER_CHROMIUM"

// rebound is a name that leads to this machine in the browser, as an attacker's name server could have it.
const rebound = "rebound.example"

// chromium starts the browser if that has not been done. Call it before claudetest.CLI, which looks for goroutines left behind.
func chromium(t testing.TB) context.Context {
	t.Helper()
	path := os.Getenv(envChromium)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	if path == "" {
		t.Skipf("%s needs Chromium: make setup installs it, or set %s to its path", t.Name(), envChromium)
	}
	shared.once.Do(func() { startBrowser(path) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.ctx
}

func startBrowser(path string) {
	if shared.dir, shared.err = os.MkdirTemp("", "drover-browser-"); shared.err != nil {
		return
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(shared.dir, "profile")), chromedp.NoInheritEnv,
		chromedp.Env("PATH="+os.Getenv("PATH"), "HOME="+shared.dir, "TMPDIR="+shared.dir, "LANG=C.UTF-8", "TZ=UTC"),
		chromedp.Flag("host-resolver-rules", "MAP "+rebound+" 127.0.0.1"), chromedp.Flag("force-color-profile", "srgb"),
	}
	for _, flag := range []string{
		"headless", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync",
		"disable-dev-shm-usage", "disable-backgrounding-occluded-windows", "disable-renderer-backgrounding", "disable-background-timer-throttling",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	shared.ctx, _ = chromedp.NewContext(alloc) // Cancel in closeBrowser ends it
	shared.stop = stop
	shared.err = chromedp.Do(shared.ctx)
}

func closeBrowser() error {
	if shared.stop == nil {
		return nil
	}
	err := chromedp.Cancel(shared.ctx)
	shared.stop()
	return errors.Join(err, os.RemoveAll(shared.dir))
}

// A tab is a page of the browser. Errors of its scripts, and what its content policy refuses, fail the test.
type tab struct {
	t       testing.TB
	ctx     context.Context
	foreign atomic.Bool // it shows pages of others, of which much is refused
}

// openTab opens a tab in a browser of its own: without the cookies of others.
func openTab(t testing.TB) *tab {
	t.Helper()
	return newTab(chromium(t), t, chromedp.WithNewBrowserContext())
}

// another opens a second tab of the same browser.
func (p *tab) another() *tab {
	return newTab(shared.ctx, p.t, chromedp.WithExistingBrowserContext(chromedp.FromContext(p.ctx).BrowserContextID))
}

func newTab(parent context.Context, t testing.TB, option chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, option)
	p := &tab{t: t, ctx: ctx}
	var watching sync.WaitGroup
	t.Cleanup(func() {
		if t.Failed() {
			p.picture()
		}
		cancel()
		watching.Wait()
	})
	if err := chromedp.Do(ctx); err != nil { // the context of the first call is that of the tab
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(1280, 900))
	thrown, logged := chromedp.Events(ctx, runtime.ExceptionThrown), chromedp.Events(ctx, log.EntryAdded)
	watching.Go(func() {
		for e, err := range thrown {
			if err != nil {
				return
			}
			t.Errorf("a script of the page failed: %s %s", e.ExceptionDetails.Text, describe(e.ExceptionDetails))
		}
	})
	watching.Go(func() {
		for e, err := range logged {
			if err != nil {
				return
			}
			if e.Entry.Source == log.EntrySourceSecurity && !p.foreign.Load() {
				t.Errorf("the browser refused something of the page: %s", e.Entry.Text)
			}
		}
	})
	return p
}

func describe(d *runtime.ExceptionDetails) string {
	if d.Exception != nil {
		return d.Exception.Description
	}
	return d.URL
}

// picture keeps what a failed test has seen, if DROVER_PICTURES names a folder.
func (p *tab) picture() {
	if dir := os.Getenv("DROVER_PICTURES"); dir != "" {
		ctx, done := context.WithTimeout(p.ctx, 5*time.Second)
		defer done()
		if png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
			name := strings.NewReplacer("/", "-", " ", "_").Replace(p.t.Name())
			_ = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
		}
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, done := context.WithTimeout(p.ctx, 20*time.Second)
	defer done()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// call makes a call of the protocol of the browser.
func (p *tab) call(method string, params, into any) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error { return t.Call(ctx, method, params, into) }))
}

// eval is the value of an expression in the page. Promises are awaited.
func eval[T any](p *tab, js string) T {
	p.t.Helper()
	ctx, done := context.WithTimeout(p.ctx, 20*time.Second)
	defer done()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// wait waits until an expression holds in the page.
func (p *tab) wait(js string) {
	p.t.Helper()
	end := time.Now().Add(time.Minute)
	for !eval[bool](p, "(async () => Boolean(await ("+js+")))()") {
		if time.Now().After(end) {
			p.t.Fatalf("not within a minute: %s\nthe page: %.3000s", js, eval[string](p, "document.title + '\\n' + document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// says waits until an element has a text in it.
func (p *tab) says(selector, text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.checkVisibility() && e.textContent.includes(%q))", selector, text))
}

// click clicks the visible element with a text, as a pointer does: where it is when it has stopped to move, and if it is on top.
func (p *tab) click(selector, text string) {
	p.t.Helper()
	p.says(selector, text)
	p.wait(fmt.Sprintf(`(async () => {
		const e = [...document.querySelectorAll(%q)].find((e) => e.checkVisibility() && e.textContent.includes(%q));
		e?.scrollIntoView({ block: "nearest" });
		const at = () => { const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; };
		window.pointAt = e && at();
		await new Promise((done) => setTimeout(done, 60));
		return e?.isConnected && String(at()) === String(window.pointAt) && e.contains(document.elementFromPoint(...window.pointAt));
	})().then(Boolean, () => false)`, selector, text))
	at := eval[[]float64](p, "window.pointAt")
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// keys presses keys, or writes a text where the focus is.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		switch {
		case len(k) > 1 && k[0] < 0x80:
			p.call("Input.insertText", map[string]any{"text": k}, nil)
		case len(k) == 1 && k[0] > ' ':
			for _, kind := range []string{"keyDown", "keyUp"} {
				p.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": k, "text": map[string]string{"keyDown": k}[kind]}, nil)
			}
		default:
			p.do(chromedp.KeyEvent(k))
		}
	}
}

// open opens an address, and returns when its document is there.
func (p *tab) open(address string) {
	p.t.Helper()
	var moved struct {
		ErrorText string `json:"errorText"`
	}
	if p.call("Page.navigate", map[string]any{"url": address}, &moved); moved.ErrorText != "" {
		p.t.Fatalf("%s: %s", address, moved.ErrorText)
	}
	p.wait("document.readyState === 'complete'")
}

// reload loads the page again.
func (p *tab) reload() {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void]("window.before = true"))
	p.call("Page.reload", map[string]any{}, nil)
	p.wait("!window.before && document.readyState === 'complete'")
}

// scheme chooses dark or light, and the width of the window.
func (p *tab) scheme(name string, width int64) {
	p.t.Helper()
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}}}, nil)
	p.do(chromedp.EmulateViewport(width, 900))
}

// openRun opens the page of a run with the token of the owner.
func (s *site) openRun(p *tab, run string) {
	s.t.Helper()
	p.open(s.Address(s.base, run))
	p.wait("document.querySelector('.run-page h1')?.textContent.length > 1")
}

// importLog puts a recorded run into a store.
func importLog(t testing.TB, store *record.Store, name string) string {
	t.Helper()
	r, err := record.OpenLog(filepath.Join("testdata", "logs", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Import(r, nil)
	if err = cmp.Or(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return kept.ID
}

// A recorder of requests notes how a server answered each.
type answers struct {
	http.Handler
	mu   sync.Mutex
	list []string
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	a.Handler.ServeHTTP(noted, r)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, noted.status))
}

func (a *answers) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.list
	a.list = nil
	return list
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
