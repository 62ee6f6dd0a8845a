// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/workspace"
)

func ExampleTree_Rollback() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("precious"), 0o600); err != nil {
		panic(err)
	}

	tree, err := workspace.OpenTree(dir, nil)
	if err != nil {
		panic(err)
	}
	defer tree.Close()
	before, err := tree.Checkpoint(context.Background())
	if err != nil {
		panic(err)
	}

	_ = os.WriteFile(notes, []byte("spoiled"), 0o600)
	_ = os.Mkdir(filepath.Join(dir, "junk"), 0o700)
	rolled, err := tree.Rollback(context.Background(), before, nil)
	if err != nil {
		panic(err)
	}
	text, _ := os.ReadFile(notes)
	fmt.Println(rolled.Restored, string(text))
	// Output: [junk notes.txt] precious
}
