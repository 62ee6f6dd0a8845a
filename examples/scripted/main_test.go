// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

// The environment has credentials and an endpoint, which fails the test if it is asked.
func TestScripted_UsesTheScriptAlone(t *testing.T) {
	cli, paid := claudetest.CLI(t), claudetest.NewModel(t)
	opts := cli.Options(paid)
	cli.SetEnv(opts, paid, map[string]string{"ANTHROPIC_AUTH_TOKEN": "a-real-one", "CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "us-east-1"})
	cli.WriteFile(t, "cart.go", "package shop")
	cli.WriteFile(t, "api.go", "package shop")
	var out strings.Builder
	if err := run(t.Context(), &out, opts); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "2 files, written by a script; the tool counted 2\n"; got != want {
		t.Errorf("scripted printed %q, want %q", got, want)
	}
}
