// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/mcp"
)

// eachWay runs a test with the fixture served by a process of its own, and over HTTP.
func eachWay(t *testing.T, run func(t *testing.T, from mcp.Source)) {
	t.Run("stdio", func(t *testing.T) { run(t, child(t, "registry")) })
	t.Run("HTTP", func(t *testing.T) { run(t, served(t, newFixture().registry)) })
}

// served offers a registry over HTTP until the test ends.
func served(t testing.TB, r *tool.Registry) mcp.HTTP {
	t.Helper()
	server := mcp.NewServer(r, &mcp.ServeOptions{Name: "fixture", Version: "1.2.3"})
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		web.Close()
	})
	return mcp.HTTP{URL: web.URL}
}

// imported imports into a registry that sends its events to the test.
func imported(t testing.TB, from mcp.Source, opts *mcp.ImportOptions) (*mcp.Imported, *tool.Registry, chan event.Event) {
	t.Helper()
	events := make(chan event.Event, 1000)
	o := mcp.ImportOptions{Trust: true}
	if opts != nil {
		o = *opts
	}
	o.Registry = tool.MustRegistry(&tool.Options{Emit: func(e event.Event) { events <- e }})
	im, err := mcp.Import(t.Context(), from, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(im.Close)
	return im, o.Registry, events
}

func call(t testing.TB, r *tool.Registry, name, input string) tool.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return r.Execute(ctx, tool.Call{ID: event.CallID("toolu_" + name), Name: name, Input: json.RawMessage(input)})
}

// A toolView is what must be the same on both sides.
type toolView struct {
	Title, Description, Risks, Needs string
	Input, Output                    any
}

func viewTools(t *testing.T, tools []*tool.Tool) map[string]toolView {
	t.Helper()
	out := map[string]toolView{}
	for _, tl := range tools {
		if !tl.Served() {
			continue
		}
		view := toolView{Title: tl.Title, Description: tl.Description, Risks: tl.Risks().String(), Needs: tl.Needs().String()}
		if tl.Input != nil {
			view.Input = value(t, tl.Input.JSON())
		}
		if tl.Output != nil && !tl.HideValue {
			view.Output = value(t, tl.Output.JSON())
		}
		out[tl.Name] = view
	}
	return out
}

func value(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRoundTrip_ToolsAreEqual(t *testing.T) {
	want := viewTools(t, newFixture().registry.Tools())
	eachWay(t, func(t *testing.T, from mcp.Source) {
		im, _, _ := imported(t, from, nil)
		if diff := cmp.Diff(want, viewTools(t, im.Tools())); diff != "" {
			t.Errorf("(-served +imported)\n%s", diff)
		}
		for _, tl := range im.Tools() {
			if tl.Namespace != "fixture" {
				t.Errorf("%s has the namespace %q", tl.Name, tl.Namespace)
			}
		}
	})
}

// A resultView is what must be the same on both sides.
type resultView struct {
	Outcome    tool.Outcome
	Text       string
	Structured any
	Images     []tool.Image
	Failure    *event.ToolFailure
}

func viewResult(t *testing.T, r tool.Result) resultView {
	t.Helper()
	view := resultView{Outcome: r.Outcome, Text: r.Render(), Images: r.Images, Failure: r.Event().Failure}
	if r.Structured != nil {
		view.Structured = value(t, r.Structured)
	}
	if r.Outcome == tool.NeedsApproval { // the server states it in words too, for clients of others
		view.Text = strings.TrimPrefix(view.Text, "This call needs approval, and the tool did not run. ")
		view.Failure = nil
	}
	return view
}

func TestRoundTrip_CallsAreEqual(t *testing.T) {
	calls := []struct{ name, tool, input string }{
		{"a structured value", "echo", `{"text":"hü<>","times":2}`},
		{"wrong arguments", "echo", `{"text":1,"more":true}`},
		{"no arguments", "plain", ``},
		{"a text", "plain", `{}`},
		{"an error with a category", "clash", `{}`},
		{"needs approval", "ask", `{}`},
		{"an image", "draw", `{}`},
		{"a hidden value", "secret", `{"text":"password"}`},
	}
	local := newFixture().registry
	eachWay(t, func(t *testing.T, from mcp.Source) {
		_, remote, _ := imported(t, from, nil)
		for _, tt := range calls {
			t.Run(tt.name, func(t *testing.T) {
				want, got := call(t, local, tt.tool, tt.input), call(t, remote, tt.tool, tt.input)
				if diff := cmp.Diff(viewResult(t, want), viewResult(t, got)); diff != "" {
					t.Errorf("(-local +remote)\n%s", diff)
				}
			})
		}
		call(t, remote, "echo", `{"text":"x"}`)
		if got := call(t, remote, "last-id", `{}`); got.Render() != "toolu_echo" {
			t.Errorf("the handler saw the call id %q, want toolu_echo", got.Render())
		}
	})
}

func TestRoundTrip_ProgressComesBack(t *testing.T) {
	eachWay(t, func(t *testing.T, from mcp.Source) {
		_, remote, events := imported(t, from, nil)
		done := make(chan tool.Result, 1)
		go func() { done <- call(t, remote, "steps", `{}`) }()
		for want := 1.0; want <= 3; want++ {
			p := await[event.ToolProgress](t, events)
			if p.Progress != want || p.Total != 3 || p.Message != "step" || p.ID != "toolu_steps" {
				t.Errorf("got %+v, want step %v of 3", p, want)
			}
		}
		if got := call(t, remote, "proceed", `{}`); !got.OK() {
			t.Error(got.Render())
		}
		if got := <-done; got.Render() != "done" {
			t.Errorf("got %q, want done", got.Render())
		}
	})
}

// await gives the next event with a payload of the type.
func await[P event.Payload](t *testing.T, events <-chan event.Event) P {
	t.Helper()
	for {
		select {
		case e := <-events:
			if p, ok := e.Payload.(P); ok {
				return p
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the event did not come")
		}
	}
}

func TestRoundTrip_CancelReachesTheHandler(t *testing.T) {
	eachWay(t, func(t *testing.T, from mcp.Source) {
		_, remote, events := imported(t, from, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan tool.Result, 1)
		go func() { done <- remote.Execute(ctx, tool.Call{Name: "block"}) }()
		await[event.ToolProgress](t, events)
		cancel()
		if got := <-done; got.Outcome != tool.Cancelled {
			t.Errorf("outcome %q, want cancelled", got.Outcome)
		}
		if got := call(t, remote, "how-it-ended", `{}`); got.Render() != context.Canceled.Error() {
			t.Errorf("the handler ended with %q, want its context cancelled", got.Render())
		}
	})
}

func TestRoundTrip_ChangesOfTheRegistryAreFollowed(t *testing.T) {
	eachWay(t, func(t *testing.T, from mcp.Source) {
		im, remote, _ := imported(t, from, nil)
		unchanged, _ := remote.Lookup("echo")
		changes := make(chan struct{}, 100)
		defer remote.Watch(func() { changes <- struct{}{} })()
		if got := call(t, remote, "change", `{"add":"later","replace":"other","remove":"wipe"}`); got.OK() == false {
			t.Fatal(got.Render())
		}
		settled := func() bool {
			_, added := remote.Lookup("later")
			_, gone := remote.Lookup("wipe")
			return added && !gone
		}
		for !settled() {
			select {
			case <-changes:
			case <-time.After(20 * time.Second):
				t.Fatal("the change was not taken over")
			}
		}
		if got := call(t, remote, "later", `{}`); got.Render() != "new" {
			t.Errorf("the new tool returns %q", got.Render())
		}
		if now, _ := remote.Lookup("echo"); now != unchanged {
			t.Error("a tool that did not change was replaced")
		}
		im.Close()
		if left := remote.Tools(); len(left) != 0 {
			t.Errorf("%d tools are left in the registry after Close", len(left))
		}
	})
}

func TestClose_LaterCallsFail(t *testing.T) {
	eachWay(t, func(t *testing.T, from mcp.Source) {
		im, _, _ := imported(t, from, nil)
		echo := im.Tools()[0]
		im.Close()
		im.Close()
		got := echo.Run(t.Context(), tool.Call{Input: json.RawMessage(`{}`)})
		if got.OK() {
			t.Error("a closed import answers")
		}
		if err := im.Refresh(t.Context()); err == nil {
			t.Error("a closed import refreshes")
		}
	})
}
