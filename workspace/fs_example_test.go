// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/drover-agents/drover/workspace"
)

// A tool that takes its file system from the context works on the workspace in a run, and in a test on
// memory.
func ExampleFSFrom() {
	countFiles := func(ctx context.Context) (int, error) {
		fsys, ok := workspace.FSFrom(ctx)
		if !ok {
			return 0, errors.New("this tool needs a workspace")
		}
		names, err := workspace.Glob(fsys, "**/*.go")
		return len(names), err
	}

	fsys := workspace.NewMemFS(nil)
	_ = fsys.WriteFile("cmd/main.go", []byte("package main\n"), nil)
	_ = fsys.WriteFile("README", nil, nil)
	fmt.Println(countFiles(workspace.WithFS(context.Background(), fsys)))
	// Output: 1 <nil>
}

func ExampleGrep() {
	fsys := workspace.NewMemFS(nil)
	_ = fsys.WriteFile("a.go", []byte("package a\n\n// TODO: more\n"), nil)
	_ = fsys.WriteFile("b.txt", []byte("TODO\n"), nil)
	found, err := workspace.Grep(context.Background(), fsys, workspace.GrepOptions{Pattern: `\bTODO\b`, Files: "**/*.go"})
	fmt.Println(found.Hits, found.More, err)
	// Output: [{a.go 3 // TODO: more}] false <nil>
}

func ExampleNewRecorder() {
	fsys := workspace.NewMemFS(nil)
	view := workspace.NewRecorder(fsys)
	_ = view.WriteFile("notes/today.txt", []byte("hello\n"), nil)
	err := view.WriteFile("../escape", nil, nil)
	fmt.Println(view.Written(), errors.Is(err, workspace.ErrSecurity))
	// Output: [notes notes/today.txt] true
}

func ExampleWorkspace_Diff() {
	w, err := workspace.Open(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = w.Close() }()
	fsys, _ := w.FS()
	_ = fsys.WriteFile("hello.txt", []byte("hello\n"), nil)

	summary, err := w.Diff(context.Background(), os.Stdout, nil)
	fmt.Print(summary)
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// created file: hello.txt
	// --- /dev/null
	// +++ b/hello.txt
	// @@ -0,0 +1 @@
	// +hello
	// 1 created, 0 changed, 0 deleted
}
