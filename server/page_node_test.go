// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/server"
)

// The modules of the page that need no browser are tested by Node: what they make of logs of real runs.
func TestPage_Modules(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed; it runs the tests of the page's modules")
	}
	dir := t.TempDir()
	tests := os.DirFS("testdata")
	logs, err := fs.Sub(tests, "logs")
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(tests, "model.test.mjs")
	err = errors.Join(err, os.CopyFS(filepath.Join(dir, "page"), server.Page()), // as it is served
		os.CopyFS(filepath.Join(dir, "testdata", "logs"), logs), os.WriteFile(filepath.Join(dir, "testdata", "model.test.mjs"), text, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), node, "--test", "testdata/")
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
