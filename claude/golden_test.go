// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"flag"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite what the files in testdata expect")

// readGolden reads a file of testdata. Its comment must say why it exists.
func readGolden(t testing.TB, path string) *txtar.Archive {
	t.Helper()
	golden, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(golden.Comment)) == "" {
		t.Errorf("%s does not say why it exists", path)
	}
	return golden
}

// writeGolden rewrites a file if that was asked for.
func writeGolden(t testing.TB, path string, golden *txtar.Archive) {
	t.Helper()
	if !*update {
		return
	}
	if err := os.WriteFile(path, txtar.Format(golden), 0o644); err != nil {
		t.Fatal(err)
	}
}
