// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/schema"
)

// ordinary are the cases that an ordinary run hands to the real CLI; DROVER_SOAK=1 takes them all.
// Each is a start of the CLI.
var ordinary = map[string]bool{
	"dialect, id and unknown keywords go, values that look like them stay": true,
	"references follow a wrapped root":                                     true,
	"alternatives at the top are wrapped although they are objects":        true,
	"tuple":                                 true,
	"dependencies":                          true,
	"conditions without a counterpart":      true,
	"a property that a pattern matches too": true,
	"regular expressions":                   true,
	"old definitions":                       true,
	"every simple keyword":                  true,
	"report":                                true,
	"tree":                                  true,
	"anything":                              true,
}

// The real CLI accepts what ForCLI makes of every schema.
func TestForCLI_RealCLIAcceptsItsSchemas(t *testing.T) {
	cli := claudetest.CLI(t)
	all := testkit.Soak()
	taken := 0
	for _, tc := range cliCases(t) {
		if !all && !ordinary[tc.name] {
			continue
		}
		taken++
		t.Run(tc.name, func(t *testing.T) {
			text, _, err := schema.ForCLI(tc.schema)
			if err != nil {
				t.Fatal(err)
			}
			if status, stderr := startWithSchema(t, cli, string(text)); status != (claude.ExitStatus{}) {
				t.Errorf("%s: %s\nfor %s", status, stderr, text)
			}
		})
	}
	if !all && taken != len(ordinary) {
		t.Errorf("%d cases were taken, want the %d that are named", taken, len(ordinary))
	}
}

// What ForCLI takes away is what the real CLI refuses, so the test above can fail.
func TestForCLI_RealCLIRefusesRawSchemas(t *testing.T) {
	cli := claudetest.CLI(t)
	for name, text := range map[string]string{
		"dialect":         `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`,
		"unknown keyword": `{"type":"object","x-foo":1}`,
		"broken type":     `{"type":"objekt"}`,
	} {
		t.Run(name, func(t *testing.T) {
			status, stderr := startWithSchema(t, cli, text)
			if status.Code != 1 || !strings.Contains(stderr, "--json-schema is not a valid JSON Schema") {
				t.Errorf("%s: %q, want a refusal", status, stderr)
			}
		})
	}
}

// startWithSchema starts the CLI with a schema and an input that ends at once: it checks the schema,
// finds nothing to do and exits.
func startWithSchema(t *testing.T, cli *claudetest.RealCLI, text string) (claude.ExitStatus, string) {
	t.Helper()
	var env []string
	for name, value := range cli.Env("http://127.0.0.1:9") { // nothing is asked of a model
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	args := []string{"--output-format=stream-json", "--input-format=stream-json", "--verbose", "--setting-sources=", "--strict-mcp-config", "--json-schema=" + text}
	p, err := claude.HostSpawner{}.Spawn(t.Context(), claude.Command{Path: cli.Path, Args: args, Dir: cli.Work, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Kill() }()
	_ = p.Stdin().Close()
	stderr := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(p.Stderr())
		stderr <- string(b)
	}()
	_, _ = io.Copy(io.Discard, p.Stdout())
	return p.Wait(), strings.TrimSpace(<-stderr)
}

// The names of the ordinary cases are those of the table.
func TestCases_OrdinaryNamesExist(t *testing.T) {
	left := maps.Clone(ordinary)
	for _, tc := range cliCases(t) {
		delete(left, tc.name)
	}
	if len(left) > 0 {
		t.Errorf("no such cases: %v", left)
	}
}
