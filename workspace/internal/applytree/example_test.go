// SPDX-License-Identifier: Apache-2.0

package applytree_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/workspace/internal/applytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

func ExampleApply() {
	top, _ := os.MkdirTemp("", "example-")
	defer os.RemoveAll(top)
	dir, work := filepath.Join(top, "tree"), filepath.Join(top, "work")
	_ = os.Mkdir(dir, 0o755)
	_ = os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("overwritten"), 0o644)

	root, err := filetree.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	if _, _, err := applytree.Recover(root, work); err != nil { // from an earlier crash
		fmt.Println(err)
		return
	}
	now, err := root.Lstat("notes.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	want := now
	want.Size = 5
	res, err := applytree.Apply(context.Background(), root, []applytree.Step{{
		Path: "notes.txt", Expect: &now, Want: &want,
		Write: func(f *os.File) error { _, err := f.WriteString("hello"); return err },
	}}, applytree.Options{Work: work})
	if err != nil {
		fmt.Println(err)
		return
	}
	inTree, _ := os.ReadFile(filepath.Join(dir, "notes.txt"))
	aside, _ := os.ReadFile(filepath.Join(res.Aside, "notes.txt"))
	fmt.Printf("done: %s\nin the tree: %s\naside: %s\n", res.Done, inTree, aside)
	// Output:
	// done: [notes.txt]
	// in the tree: hello
	// aside: overwritten
}
