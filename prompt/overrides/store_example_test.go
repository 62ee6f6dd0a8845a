// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"context"
	"fmt"
	"os"

	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/prompt/overrides"
)

// An edit is kept on disk and applies to the text that it was made for. When the program comes with
// another text, the edit is reported and the new text is shown.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "overrides") // in a project: .drover/overrides
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store := &overrides.Store{Dir: dir}
	show := func(template *prompt.Template[prompt.Text]) error {
		file, err := store.File(template, overrides.DefaultTag)
		if err != nil {
			return err
		}
		found, stale, err := file.Resolve()
		if err != nil {
			return err
		}
		p, err := template.Bind()
		if err != nil {
			return err
		}
		rendered, err := p.Render(&prompt.RenderOptions{Overrides: found})
		if err != nil {
			return err
		}
		fmt.Println(rendered.Text)
		for _, s := range stale {
			fmt.Printf("stale: %s of section %s: %s\n", s.Target, s.Section, s.Reason)
		}
		return nil
	}

	first := prompt.Must[prompt.Text]("demo", "review", prompt.Markdown("task", "Task", "Review the code."))
	file, err := store.File(first, overrides.DefaultTag)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.SetText(context.Background(), "task", "Review the code with care."))
	fmt.Println(show(first))

	second := prompt.Must[prompt.Text]("demo", "review", prompt.Markdown("task", "Task", "Review the code and its tests."))
	fmt.Println(show(second))
	// Output:
	// <nil>
	// ## 1. Task (task)
	//
	// Review the code with care.
	// <nil>
	// ## 1. Task (task)
	//
	// Review the code and its tests.
	// stale: text of section task: it has changed since the override was made
	// <nil>
}
