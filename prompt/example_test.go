// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// A template and its prompt, with a structured answer.
func ExampleMust() {
	type Hello struct {
		Greeting string `json:"greeting"`
	}
	template := prompt.Must[Hello]("demo", "hello", prompt.Markdown("task", "Task", "Say hello."))
	p, err := template.Bind()
	if err != nil {
		fmt.Println(err)
		return
	}
	rendered, err := p.Render(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rendered.Text)
	fmt.Println(string(rendered.OutputSchema))

	hello, err := p.Parse(json.RawMessage(`{"greeting":"Hello, world"}`))
	fmt.Println(hello.Greeting, err)
	_, err = p.Parse(json.RawMessage(`{"greeting":7}`))
	fmt.Println(errors.Is(err, prompt.ErrOutput))
	// Output:
	// ## 1. Task (task)
	//
	// Say hello.
	// {"type":"object","properties":{"greeting":{"type":"string"}},"required":["greeting"],"additionalProperties":false}
	// Hello, world <nil>
	// true
}

// The short form: a prompt in one call, and the value of its placeholder.
func ExampleNewPrompt() {
	type CodeReview struct {
		Issues []string `json:"issues"`
	}
	type Args struct {
		FilePath string `json:"file_path"`
	}
	p, err := prompt.NewPrompt[CodeReview]("review", "code",
		prompt.Markdown("task", "Task", "Review the code in $file_path"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	if p, err = p.Bind(Args{FilePath: "server/main.go"}); err != nil {
		fmt.Println(err)
		return
	}
	rendered, err := p.Render(&prompt.RenderOptions{Session: session.New(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Name())
	fmt.Println(rendered.Text)
	// Output:
	// review:code
	// ## 1. Task (task)
	//
	// Review the code in server/main.go
}

// A section brings its tool along.
func ExampleSection_With() {
	type AnalyzeParams struct {
		FilePath string `json:"file_path"`
	}
	type AnalysisReport struct {
		Issues int `json:"issues"`
	}
	analyze := tool.Must("analyze", "Analyze a source file for issues",
		func(_ context.Context, p AnalyzeParams) (tool.Result, error) {
			return tool.Text("Found 2 issues in " + p.FilePath), nil
		})
	p, err := prompt.NewPrompt[AnalysisReport]("analysis", "codebase",
		prompt.Markdown("task", "Task", "Analyze all Python files in the project").With(analyze),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	rendered, err := p.Render(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range rendered.Tools {
		fmt.Printf("%s: %s\n", t.Name, t.Description)
	}
	// Output:
	// analyze: Analyze a source file for issues
}

// Any section can stand beside one of plain text. This one describes a workspace, which lives
// elsewhere; what it mounts is known only when the prompt is bound.
func ExampleSection() {
	type ReviewResult struct {
		Approved bool `json:"approved"`
	}
	type Mounted struct{ Dir, Mounts string }
	workspace := &prompt.Section{
		Key: "workspace", Title: "Workspace", Params: prompt.ParamsOf[Mounted](),
		Text: `
			Your files are in $Dir:

			$Mounts
		`,
	}
	p, err := prompt.NewPrompt[ReviewResult]("review", "code",
		prompt.Markdown("task", "Task", "Review the code"),
		workspace,
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	if p, err = p.Bind(Mounted{Dir: "/tmp/ws", Mounts: "- src, from /home/user/myproject/src"}); err != nil {
		fmt.Println(err)
		return
	}
	rendered, err := p.Render(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rendered.Text)
	// Output:
	// ## 1. Task (task)
	//
	// Review the code
	//
	// ## 2. Workspace (workspace)
	//
	// Your files are in /tmp/ws:
	//
	// - src, from /home/user/myproject/src
}

// A section about the workspace is before the task, as soon as the session has one.
func ExampleSection_workspace() {
	type RefactorResult struct {
		Changed []string `json:"changed"`
	}
	known := func(v prompt.View) bool {
		return session.Query[session.Workspace](v.Session()).Len() > 0
	}
	p, err := prompt.NewPrompt[RefactorResult]("refactor", "codebase",
		&prompt.Section{Key: "workspace", Title: "Workspace", Text: "The project is in your working directory.", Enabled: known},
		prompt.Markdown("task", "Task", "Refactor the code in project/src to improve readability"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := session.New(nil)
	for range 2 {
		rendered, err := p.Render(&prompt.RenderOptions{Session: s})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rendered.Text)
		if _, err := s.Dispatch(context.Background(), session.Workspace{Root: "/tmp/ws"}); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// ## 2. Task (task)
	//
	// Refactor the code in project/src to improve readability
	// ## 1. Workspace (workspace)
	//
	// The project is in your working directory.
	//
	// ## 2. Task (task)
	//
	// Refactor the code in project/src to improve readability
}

// Everything that is wrong is reported at once, when the template is made.
func ExampleNew() {
	type Args struct{ Path string }
	_, err := prompt.New[prompt.Text]("demo", "review", &prompt.Section{
		Key: "task", Title: "Task", Params: prompt.ParamsOf[Args](),
		Text:    "Review $Path.\nStop after $Pages pages.",
		Summary: "About ${Path",
	})
	fmt.Println(err)
	// Output:
	// prompt: demo:review: section "task": text 2:12: unknown placeholder $Pages (known: Path)
	// prompt: demo:review: section "task": summary 1:7: ${ is not closed in its line: ${Path
}

// A section that is long, or rarely needed, shows its summary. The prompt explains how to get the rest.
func ExamplePrompt_RenderSection() {
	p, err := prompt.NewPrompt[prompt.Text]("demo", "deploy",
		prompt.Markdown("task", "Task", "Deploy the service."),
		&prompt.Section{
			Key: "rollback", Title: "Rolling back", Summary: "What to do when it fails.", Visibility: prompt.Summary,
			Text: "Deploy the version before.",
		},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	rendered, err := p.Render(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rendered.Text)
	opened, err := p.RenderSection(rendered.Hidden[0].Path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("\nopened:\n%s\n", opened.Text)
	// Output:
	// ## 1. Task (task)
	//
	// Deploy the service.
	//
	// ## 2. Rolling back (rollback)
	//
	// What to do when it fails.
	//
	// ---
	// This is a summary. Call `read_section` with section key "rollback" to read the full section.
	//
	// opened:
	// ## 2. Rolling back (rollback)
	//
	// Deploy the version before.
}

// An override is for one text. Where that has changed since, the override is reported, not applied.
func ExampleOverrides() {
	p, err := prompt.NewPrompt[prompt.Text]("demo", "review", prompt.Markdown("task", "Task", "Review the code."))
	if err != nil {
		fmt.Println(err)
		return
	}
	written := p.Descriptor().Sections[0].Hash
	for _, hash := range []string{written, "the hash of an older text"} {
		rendered, err := p.Render(&prompt.RenderOptions{Overrides: &prompt.Overrides{
			Sections: map[string]prompt.SectionOverride{"task": {Hash: hash, Text: new("Review it with care.")}},
		}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rendered.Text)
		for _, s := range rendered.Stale {
			fmt.Printf("not applied: %s of %s: %s\n", s.Target, s.Section, s.Reason)
		}
	}
	// Output:
	// ## 1. Task (task)
	//
	// Review it with care.
	// ## 1. Task (task)
	//
	// Review the code.
	// not applied: text of task: it has changed since the override was made
}
