// SPDX-License-Identifier: Apache-2.0

// Command greet is what the example review.yaml reviews.
package main

import (
	"fmt"
	"io"
	"os"
)

func greet(w io.Writer, name string) {
	_, _ = fmt.Fprintf(w, "Hello, %s!\n", name)
}

func main() {
	for _, name := range os.Args[1:] {
		greet(os.Stdout, name)
	}
}
