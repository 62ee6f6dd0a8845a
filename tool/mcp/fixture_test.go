// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/drover-agents/drover/tool"
)

// A fixture is a registry with a tool for everything that must survive a way through MCP.
type fixture struct {
	registry  *tool.Registry
	proceed   chan struct{}
	cancelled chan string
	lastID    atomic.Value
}

type echoArgs struct {
	Text  string `json:"text" doc:"what to say"`
	Times int    `json:"times,omitzero" doc:"how often"`
}

type echoed struct {
	Text   string `json:"text"`
	Length int    `json:"length"`
}

// moreTools are those of single systems.
var moreTools []*tool.Tool

func newFixture() *fixture {
	f := &fixture{proceed: make(chan struct{}), cancelled: make(chan string, 1)}
	f.registry = tool.MustRegistry(nil,
		tool.Must("echo", "Says it again.", f.echo, tool.ReadOnly, tool.WithTitle("Echo")),
		tool.Must("write", "Writes.", f.name("written"), tool.Mutates, tool.FileWrite),
		tool.Must("wipe", "Wipes.", f.name("wiped"), tool.Mutates, tool.Dangerous, tool.ShellExecute, tool.NetworkAccess),
		tool.Must("peek", "Looks where it should not.", f.name("seen"), tool.ReadOnly, tool.Dangerous),
		tool.Must("plain", "Says nothing of itself.", f.name("plain <&>")),
		tool.Must("clash", "Fails.", f.clash),
		tool.Must("ask", "Needs approval.", f.ask),
		tool.Must("draw", "Draws.", f.draw),
		tool.Must("secret", "Hides its value.", f.echo, tool.WithHiddenValue()),
		tool.Must("steps", "Reports progress.", f.steps),
		tool.Must("proceed", "Lets steps go on.", f.goOn),
		tool.Must("block", "Waits to be cancelled.", f.block),
		tool.Must("how-it-ended", "Says how block ended.", f.howItEnded),
		tool.Must("change", "Changes the tools.", f.change),
		tool.Must("variables", "Lists the names of the environment.", variables),
		tool.Must("last-id", "Says the id of the call of echo.", func(context.Context, tool.None) (any, error) { return f.lastID.Load(), nil }),
		tool.Must("die", "Ends the program.", func(context.Context, tool.None) (any, error) { os.Exit(3); return nil, nil }),
		tool.Must[tool.None, any]("declared", "Has no handler.", nil),
	)
	if err := f.registry.Add(moreTools...); err != nil {
		panic(err)
	}
	return f
}

func (f *fixture) name(text string) func(context.Context, tool.None) (string, error) {
	return func(context.Context, tool.None) (string, error) { return text, nil }
}

func (f *fixture) echo(ctx context.Context, in echoArgs) (tool.Reply[echoed], error) {
	call, _ := tool.CallFrom(ctx)
	f.lastID.Store(string(call.ID))
	text := strings.Repeat(in.Text, max(in.Times, 1))
	return tool.Reply[echoed]{Value: echoed{text, len(text)}, Message: "echoed"}, nil
}

func (f *fixture) clash(context.Context, tool.None) (any, error) {
	return nil, &tool.Error{Code: "BUSY", Category: tool.CategoryConflict, Message: "Somebody else has it. Wait.", Retryable: true}
}

func (f *fixture) ask(context.Context, tool.None) (tool.Result, error) {
	return tool.Result{Outcome: tool.NeedsApproval, Action: &tool.Action{Type: "approval", Message: "Ask the owner."}}, nil
}

func (f *fixture) draw(context.Context, tool.None) (tool.Reply[any], error) {
	return tool.Reply[any]{Message: "a dot", Images: []tool.Image{{Data: []byte{1, 2, 3}, MIMEType: "image/png"}}}, nil
}

func (f *fixture) steps(ctx context.Context, _ tool.None) (string, error) {
	for i := range 3 {
		if err := tool.Progress(ctx, float64(i+1), 3, "step"); err != nil {
			return "", err
		}
	}
	select {
	case <-f.proceed:
		return "done", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (f *fixture) goOn(ctx context.Context, _ tool.None) (string, error) {
	select {
	case f.proceed <- struct{}{}:
		return "", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (f *fixture) block(ctx context.Context, _ tool.None) (any, error) {
	if err := tool.Progress(ctx, 1, 0, "blocked"); err != nil {
		return nil, err
	}
	<-ctx.Done()
	f.cancelled <- ctx.Err().Error()
	return nil, ctx.Err()
}

func (f *fixture) howItEnded(ctx context.Context, _ tool.None) (string, error) {
	select {
	case how := <-f.cancelled:
		return how, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

type changeArgs struct {
	Add     string `json:"add,omitzero"`
	Replace string `json:"replace,omitzero"`
	Remove  string `json:"remove,omitzero"`
}

func (f *fixture) change(_ context.Context, in changeArgs) (string, error) {
	var errs []error
	if in.Add != "" {
		errs = append(errs, f.registry.Add(tool.Must(in.Add, "New.", f.name("new"), tool.ReadOnly)))
	}
	if in.Replace != "" {
		errs = append(errs, f.registry.Replace(tool.Must(in.Replace, "Changed.", f.name("changed"), tool.ReadOnly)))
	}
	if in.Remove != "" && f.registry.Remove(in.Remove) != 1 {
		errs = append(errs, errors.New("there is no "+in.Remove))
	}
	return "changed", errors.Join(errs...)
}

func variables(context.Context, tool.None) ([]string, error) {
	var names []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
