// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"fmt"
	"io"
	"os"

	"github.com/drover-agents/drover/workspace/internal/objects"
)

func ExampleStore() {
	dir, err := os.MkdirTemp("", "store-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := objects.Open(dir, &objects.Options{MaxBytes: 1 << 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	first, _ := store.PutBytes([]byte("package main\n"))
	again, _ := store.PutBytes([]byte("package main\n"))
	fmt.Println(first == again)

	content, err := store.Open(first)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer content.Close()
	text, _ := io.ReadAll(content)
	contents, disk := store.Usage()
	fmt.Printf("%q takes %d of %d bytes\n", text, contents, disk)

	store.Release(first)
	store.Release(again)
	_, err = store.Open(first)
	fmt.Println(err != nil)
	// Output:
	// true
	// "package main\n" takes 13 of 13 bytes
	// true
}
