// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
)

// authentication finds the credentials of a run, by the rules of the run itself. The stored login is not opened.
func (m *machine) authentication() (*claudecell.Finding, error) {
	in := isolation.Isolation{Host: isolation.Host{Environ: m.environ, Home: m.home}}
	return claudecell.Authenticate(&in)
}

func (m *machine) examineAuth(context.Context) *Check {
	found, err := m.authentication()
	if err == nil {
		return &Check{State: stateOK, Source: found.Name, Detail: strings.Join(append([]string{describeCredentials(found)}, found.Notes...), "; ")}
	}
	c := &Check{State: stateMissing, Detail: safetext.FirstLine(wording.Error(err)), Fix: authFixes()}
	if m.anySet(slices.Concat(m.options.Credentials, m.options.Clouds)) {
		c.State, c.Fix = stateBroken, repairs(err)
	}
	if path := m.login(); path != "" {
		c.Path, c.Detail = path, c.Detail+"; a login of the CLI is there, and is only used if asked for"
		c.Fix = append([]string{`drover run --stored-login "prompt"   to use it`}, c.Fix...)
	}
	return c
}

func describeCredentials(found *claudecell.Finding) string {
	where := ""
	if found.Source == claudecell.SourceHostSettings {
		where = " in the settings of the CLI"
	}
	switch found.Mode {
	case claudecell.ModeBedrock:
		return "Amazon Bedrock in " + found.Bedrock.Region + " (" + found.Name + where + "), whose own credentials are not checked"
	case claudecell.ModeKeyHelper:
		return found.Name + where + ", which was not run"
	}
	return found.Name + " is set" + where
}

func (m *machine) anySet(names []string) bool {
	for _, name := range names {
		if m.getenv(name) != "" {
			return true
		}
	}
	return false
}

var orAtFirst = regexp.MustCompile(`^or `)

// repairs is the advice of the error, in words for people.
func repairs(err error) []string {
	var fixes []string
	if auth, ok := errors.AsType[*isolation.AuthError](err); ok {
		for _, fix := range auth.Fixes {
			if fix = orAtFirst.ReplaceAllString(wording.Flags(fix), ""); fix != "" && !strings.Contains(fix, "Isolation.") {
				fixes = append(fixes, fix)
			}
		}
	}
	return fixes
}

// login is the file in which the CLI keeps a login, or "" if it is not there. It is not opened.
func (m *machine) login() string {
	dir := m.getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		dir = filepath.Join(m.home, ".claude")
	}
	path := filepath.Join(dir, ".credentials.json")
	if m.stat(path) != nil {
		return ""
	}
	return path
}

func authFixes() []string {
	return []string{
		"export ANTHROPIC_API_KEY=…",
		"export CLAUDE_CODE_USE_BEDROCK=1 AWS_REGION=…   with credentials that AWS finds",
		`drover run --model-script file.yaml "prompt"   to try without a key`,
	}
}
