// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDoctorTellsWhichCredentialCounts(t *testing.T) {
	const key, token, oauth = "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"
	homeLogin, ownLogin := "/home/dev/.claude/.credentials.json", "/config/.credentials.json"
	none := "no ANTHROPIC_API_KEY, no ANTHROPIC_AUTH_TOKEN, no login, no Bedrock, Vertex or Foundry"
	cases := []struct {
		name, goos string
		env        map[string]string
		login      string // the file that is there
		want       doctorCheck
	}{
		{"nothing", "linux", nil, "", doctorCheck{State: doctorMissing, Detail: none, Fix: authFixes()}},
		{"empty", "linux", map[string]string{key: ""}, "", doctorCheck{State: doctorMissing, Detail: none, Fix: authFixes()}},
		{"nothing on macOS", "darwin", nil, "", doctorCheck{State: doctorWarning, Detail: "no variable is set, a login may be in the keychain, which is not looked at", Fix: authFixes()}},
		{"key", "linux", map[string]string{key: "x"}, "", doctorCheck{State: doctorOK, Source: key, Detail: "ANTHROPIC_API_KEY is set"}},
		{"token before key", "linux", map[string]string{key: "x", token: "y"}, "", doctorCheck{State: doctorOK, Source: token, Detail: "ANTHROPIC_AUTH_TOKEN is set, and comes before ANTHROPIC_API_KEY"}},
		{"key before login", "darwin", map[string]string{key: "x", oauth: "y"}, homeLogin, doctorCheck{State: doctorOK, Source: key, Detail: "ANTHROPIC_API_KEY is set, and comes before CLAUDE_CODE_OAUTH_TOKEN and a login"}},
		{"token of a subscription", "linux", map[string]string{oauth: "y"}, "", doctorCheck{State: doctorOK, Source: oauth, Detail: "CLAUDE_CODE_OAUTH_TOKEN is set"}},
		{"login", "linux", nil, homeLogin, doctorCheck{State: doctorOK, Source: "login", Path: homeLogin, Detail: "login of the CLI, which was not opened"}},
		{"login elsewhere", "linux", map[string]string{"CLAUDE_CONFIG_DIR": "/config"}, ownLogin, doctorCheck{State: doctorOK, Source: "login", Path: ownLogin, Detail: "login of the CLI, which was not opened"}},
		{"login at home does not count elsewhere", "linux", map[string]string{"CLAUDE_CONFIG_DIR": "/config"}, homeLogin, doctorCheck{State: doctorMissing, Detail: none, Fix: authFixes()}},
		{"cloud before all", "linux", map[string]string{"CLAUDE_CODE_USE_VERTEX": "True", key: "x"}, homeLogin, doctorCheck{State: doctorOK, Source: "CLAUDE_CODE_USE_VERTEX", Detail: "Google Vertex AI (CLAUDE_CODE_USE_VERTEX), whose own credentials are not checked"}},
		{"cloud switched off", "linux", map[string]string{"CLAUDE_CODE_USE_BEDROCK": "0", key: "x"}, "", doctorCheck{State: doctorOK, Source: key, Detail: "ANTHROPIC_API_KEY is set"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			env := maps.Clone(c.env)
			d.getenv = func(name string) string { return env[name] }
			d.goos = c.goos
			d.stat = func(path string) error {
				if path == c.login {
					return nil
				}
				return fs.ErrNotExist
			}
			if diff := cmp.Diff(&c.want, d.examineAuth(t.Context())); diff != "" {
				t.Errorf("check (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDoctorWithoutAHomeFindsNoLogin(t *testing.T) {
	d := healthy(t)
	d.setenv("ANTHROPIC_API_KEY", "")
	d.home = func() (string, error) { return "", errors.New("no home") }
	d.stat = func(string) error { return nil }
	if got := d.examineAuth(t.Context()); got.State != doctorMissing {
		t.Errorf("got %+v, want missing", got)
	}
}
