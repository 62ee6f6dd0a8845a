// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"os/exec"
	"testing"
)

// The modules of the page that need no browser are tested by Node: what they make of logs of real runs.
func TestPage_Modules(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed; it runs the tests of the page's modules")
	}
	out, err := exec.CommandContext(t.Context(), node, "--test", "testdata/").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
