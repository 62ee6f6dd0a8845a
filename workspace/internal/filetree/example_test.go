// SPDX-License-Identifier: Apache-2.0

package filetree_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

func ExampleRoot_Walk() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r, err := filetree.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	err = errors.Join(r.MkdirAll("src/vendor/lib", 0o755), r.Symlink("../README", "src/link"))
	if err != nil {
		log.Fatal(err)
	}
	entries, err := r.Walk(context.Background(), &filetree.WalkOptions{
		Skip: func(e filetree.Entry) bool { return e.Path == "src/vendor" },
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Printf("%s %s\n", e.Kind, e.Path)
	}
	_, err = r.Lstat("src/link/secret")
	fmt.Println(err)
	// Output:
	// folder src
	// link src/link
	// lstat src/link/secret: a folder of the path is a link
}
