// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"context"
	"fmt"

	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// A section is hidden until the model opens it; then its tool is there, in the same run.
func ExamplePrompt_Live() {
	deploy := tool.Must("deploy", "Deploys the release.", func(context.Context, tool.None) (string, error) { return "deployed", nil })
	p, err := prompt.NewPrompt[prompt.Text]("demo", "release",
		prompt.Markdown("task", "Task", "Bring the release out."),
		&prompt.Section{
			Key: "deploying", Title: "Deploying", Text: "Deploy on a Monday.", Summary: "How to deploy.",
			Visibility: prompt.Summary, Tools: []*tool.Tool{deploy},
		})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	live, err := p.Live(ctx, &prompt.LiveOptions{RenderOptions: prompt.RenderOptions{Session: session.New(nil)}})
	if err != nil {
		panic(err)
	}
	// An agent gets live.Rendered().Text, live.Registry(), live.Policies() and, as UnknownTools, live.ToolNames(), and calls:
	result := live.Registry().Execute(ctx, tool.Call{
		Name: prompt.OpenSections, Input: []byte(`{"section_keys":["deploying"],"reason":"The release is ready."}`),
	})
	fmt.Println(result.Render())
	_, there := live.Registry().Lookup("deploy")
	fmt.Println("the tool is there:", there)
	// Output:
	// ## 2. Deploying (deploying)
	//
	// Deploy on a Monday.
	//
	// ---
	// Opened: deploying. You can call these tools now: deploy.
	// the tool is there: true
}
