// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// refusedVariables are variables that no program may be given, and what to use instead. The first match counts. Names are
// compared in capitals: proxies are spelled both ways.
var refusedVariables = []RefusedVariable{
	{Name: "HOME", Instead: "the home is private to each run; put files into it with Isolation.Populate"},
	{Name: "TMPDIR", Instead: "temporary files are private to each run; Isolation.TempDir is where homes are made"},
	{Name: "AWS_*", Instead: "use Isolation.Auth with the host's environment, and Isolation.AWSConfigPath: credentials stay outside of the cell"},
	{Name: "*_PROXY", Instead: "use Isolation.Network: tools reach its AllowedDomains through Drover's proxy"},
	{Name: "LD_*", Instead: "it loads code into every program of the cell; put a program that needs it behind a script of its own"},
	{Name: "NODE_OPTIONS", Instead: "it loads code into programs of the cell; put a program that needs it behind a script of its own"},
	{Name: "BUN_OPTIONS", Instead: "it loads code into programs of the cell; put a program that needs it behind a script of its own"},
}

// ValidateEnv refuses variables that the isolation of this program depends on.
func (p Program) ValidateEnv(env map[string]string) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if reason, next := p.refusedVariable(name, env[name]); reason != "" {
			problems = append(problems, &RefusedError{Field: fmt.Sprintf("Env[%q]", name), Reason: reason, Next: next})
		}
	}
	return errors.Join(problems...)
}

func (p Program) refusedVariable(name, value string) (reason, next string) {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
		return "it is not a valid variable", "use a name without = and a value without zero bytes"
	}
	upper := strings.ToUpper(name)
	for _, refused := range slices.Concat(p.Refused, refusedVariables) {
		if matchesVariable(refused.Name, upper) {
			return "the isolation depends on it", refused.Instead
		}
	}
	return "", ""
}

func matchesVariable(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(name, suffix)
	}
	return name == pattern
}
