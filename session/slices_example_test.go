// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// A VirtualFileSystem is the files of a workspace as a session knows them.
type VirtualFileSystem struct{ Files []VirtualFile }

// A VirtualFile has version 1 when it is new, and one more for each change.
type VirtualFile struct {
	Path, Content string
	Version       int
}

// WriteFile is the event that changes a file.
type WriteFile struct{ Path, Content string }

func (v VirtualFileSystem) write(e WriteFile) VirtualFileSystem {
	files := slices.Clone(v.Files)
	if i := slices.IndexFunc(files, func(f VirtualFile) bool { return f.Path == e.Path }); i >= 0 {
		files[i] = VirtualFile{e.Path, e.Content, files[i].Version + 1}
		return VirtualFileSystem{files}
	}
	return VirtualFileSystem{append(files, VirtualFile{e.Path, e.Content, 1})}
}

// A workspace is copied, its files become a slice of the session, and after the run what has changed on
// the disk is dispatched. What was asked for before never changes, so both can be compared.
func ExampleSeed() {
	ctx := context.Background()
	s := session.New(nil)
	session.Reduce(s, VirtualFileSystem.write)
	copied := VirtualFileSystem{[]VirtualFile{{"cart.py", "total = 0\n", 1}, {"shop.py", "open = True\n", 1}}}
	if err := session.Seed(ctx, s, copied); err != nil {
		fmt.Println(err)
		return
	}
	before, _ := session.Query[VirtualFileSystem](s).Latest()

	for _, changed := range []WriteFile{{"cart.py", "total = 1\n"}, {"test_cart.py", "assert total\n"}} {
		if _, err := s.Dispatch(ctx, changed); err != nil {
			fmt.Println(err)
			return
		}
	}
	now, _ := session.Query[VirtualFileSystem](s).Latest()
	for _, f := range now.Files {
		if !slices.Contains(before.Files, f) {
			fmt.Printf("%s: %d bytes (v%d)\n", f.Path, len(f.Content), f.Version)
		}
	}
	// Output:
	// cart.py: 10 bytes (v2)
	// test_cart.py: 13 bytes (v1)
}

// The program that receives the end of a tool call records it. What follows from it is there at once: the files that
// were changed, and the plan.
func ExampleSession_RecordTool() {
	ctx := context.Background()
	s := session.New(nil)
	for _, call := range []session.ToolInvoked{
		{CallID: "toolu_1", Name: "Write", Status: event.ToolSuccess, Params: json.RawMessage(`{"file_path":"/work/cart.py","content":"total = 0"}`)},
		{CallID: "toolu_2", Name: "Edit", Status: event.ToolError, Params: json.RawMessage(`{"file_path":"/work/gone.py"}`)},
		{CallID: "toolu_3", Name: "TodoWrite", Status: event.ToolSuccess, Params: json.RawMessage(
			`{"todos":[{"content":"Read","status":"completed"},{"content":"Fix the cart","status":"in_progress"}]}`)},
	} {
		if _, err := s.RecordTool(ctx, call, catalogue.Tools()); err != nil {
			fmt.Println(err)
		}
	}
	for e := range s.Events() {
		if call, ok := e.Payload.(session.ToolInvoked); ok {
			fmt.Println("Tool used:", call.Name, call.Success())
		}
	}
	files, _ := session.Query[session.ModifiedFiles](s).Latest()
	for f := range files.All() {
		fmt.Println(f.Tool, f.Path)
	}
	plan, _ := session.Query[session.Plan](s).Latest()
	step, _ := plan.Current()
	fmt.Println("Now:", step.Description)
	// Output:
	// Tool used: Write true
	// Tool used: Edit false
	// Tool used: TodoWrite true
	// Write /work/cart.py
	// Now: Fix the cart
}

// What the session knows of the task goes before the message of the user.
func ExampleContextLines() {
	s := session.New(nil)
	for _, v := range []any{
		session.PlanUpdated{Steps: []session.PlanStep{{Description: "Fix the cart", Status: "in_progress"}}},
		session.Workspace{Root: "/work"},
	} {
		if _, err := s.Dispatch(context.Background(), v); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%s\n\n%s\n", strings.Join(session.ContextLines(s), "\n"), "Go on.")
	// Output:
	// [Context] Current task: Fix the cart
	// [Context] Working directory: /work
	//
	// Go on.
}
