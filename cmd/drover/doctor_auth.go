// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"strings"
)

// credentialNames are the variables that hold a secret. Doctor tells which are set, never to what.
var credentialNames = []string{"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}

// clouds are the switches to somebody else's service with credentials of its own.
var clouds = []struct{ variable, name string }{
	{"CLAUDE_CODE_USE_BEDROCK", "Amazon Bedrock"},
	{"CLAUDE_CODE_USE_VERTEX", "Google Vertex AI"},
	{"CLAUDE_CODE_USE_FOUNDRY", "Microsoft Foundry"},
}

// cloud is the service that is switched on, or "".
func (d *doctor) cloud() (variable, name string) {
	for _, c := range clouds {
		if isOn(d.getenv(c.variable)) {
			return c.variable, c.name
		}
	}
	return "", ""
}

// isOn reads a switch as the CLI does.
func isOn(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// examineAuth tells which credential a run would use: the first there is, in the CLI's own order.
func (d *doctor) examineAuth(context.Context) *doctorCheck {
	if variable, name := d.cloud(); variable != "" {
		return &doctorCheck{State: doctorOK, Source: variable, Detail: name + " (" + variable + "), whose own credentials are not checked"}
	}
	var set []string
	for _, name := range credentialNames {
		if d.getenv(name) != "" {
			set = append(set, name)
		}
	}
	login, path := d.login()
	switch {
	case len(set) > 0:
		return credentialInUse(set, login)
	case login:
		return &doctorCheck{State: doctorOK, Source: "login", Path: path, Detail: "login of the CLI, which was not opened"}
	case d.goos == "darwin":
		return &doctorCheck{State: doctorWarning, Detail: "no variable is set, a login may be in the keychain, which is not looked at", Fix: authFixes()}
	}
	return &doctorCheck{State: doctorMissing, Detail: "no ANTHROPIC_API_KEY, no ANTHROPIC_AUTH_TOKEN, no login, no Bedrock, Vertex or Foundry", Fix: authFixes()}
}

// credentialInUse names the variable that counts, and what stands behind it.
func credentialInUse(set []string, login bool) *doctorCheck {
	others := set[1:]
	if login {
		others = append(others[:len(others):len(others)], "a login")
	}
	c := &doctorCheck{State: doctorOK, Source: set[0], Detail: set[0] + " is set"}
	if len(others) > 0 {
		c.Detail += ", and comes before " + strings.Join(others, " and ")
	}
	return c
}

// login reports whether the CLI keeps a login in a file. The file is not opened.
func (d *doctor) login() (there bool, path string) {
	dir := d.getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		home, err := d.home()
		if err != nil {
			return false, ""
		}
		dir = filepath.Join(home, ".claude")
	}
	path = filepath.Join(dir, ".credentials.json")
	return d.stat(path) == nil, path
}

func authFixes() []string {
	return []string{
		"export ANTHROPIC_API_KEY=…",
		"claude auth login",
		`drover run --model-script file.yaml "prompt"   to try without a key`,
	}
}
