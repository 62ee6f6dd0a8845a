// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
)

// A tool that takes its file system from the context works on the workspace in a run, and in a test on
// memory.
func ExampleFrom() {
	countFiles := func(ctx context.Context) (int, error) {
		fsys, ok := files.From(ctx)
		if !ok {
			return 0, errors.New("this tool needs a workspace")
		}
		names, err := files.Glob(fsys, "**/*.go")
		return len(names), err
	}

	fsys := files.NewMemFS(nil)
	_ = fsys.WriteFile("cmd/main.go", []byte("package main\n"), nil)
	_ = fsys.WriteFile("README", nil, nil)
	fmt.Println(countFiles(files.With(context.Background(), fsys)))
	// Output: 1 <nil>
}

func ExampleGrep() {
	fsys := files.NewMemFS(nil)
	_ = fsys.WriteFile("a.go", []byte("package a\n\n// TODO: more\n"), nil)
	_ = fsys.WriteFile("b.txt", []byte("TODO\n"), nil)
	found, err := files.Grep(context.Background(), fsys, files.GrepOptions{Pattern: `\bTODO\b`, Files: "**/*.go"})
	fmt.Println(found.Hits, found.More, err)
	// Output: [{a.go 3 // TODO: more}] false <nil>
}

func ExampleNewRecorder() {
	fsys := files.NewMemFS(nil)
	view := files.NewRecorder(fsys)
	_ = view.WriteFile("notes/today.txt", []byte("hello\n"), nil)
	err := view.WriteFile("../escape", nil, nil)
	fmt.Println(view.Written(), errors.Is(err, workspace.ErrSecurity))
	// Output: [notes notes/today.txt] true
}
