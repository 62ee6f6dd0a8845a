// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Which credential counts is decided by package isolation. Here is how it is reported.
func TestExamine_Credentials(t *testing.T) {
	const key, token, oauth = "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"
	const none = "the host has no authentication for the model"
	const login = "; a login of the CLI is there, and is only used if asked for"
	withLogin := append([]string{`drover run --stored-login "prompt"   to use it`}, authFixes()...)
	cases := []struct {
		name     string
		env      map[string]string
		settings string // of the user's claude
		login    string // the file that is there, below the home
		want     Check
	}{
		{name: "nothing", want: Check{State: stateMissing, Detail: none, Fix: authFixes()}},
		{name: "empty", env: map[string]string{key: ""}, want: Check{State: stateMissing, Detail: none, Fix: authFixes()}},
		{name: "key", env: map[string]string{key: "x"}, want: Check{State: stateOK, Source: key, Detail: "ANTHROPIC_API_KEY is set"}},
		{name: "key before token", env: map[string]string{key: "x", token: "y"}, want: Check{State: stateOK, Source: key, Detail: "ANTHROPIC_API_KEY is set; ANTHROPIC_AUTH_TOKEN is set too, and is not used"}},
		{name: "token of a subscription", env: map[string]string{oauth: "y"}, want: Check{State: stateOK, Source: oauth, Detail: "CLAUDE_CODE_OAUTH_TOKEN is set"}},
		{name: "key in the settings", settings: `{"env": {"ANTHROPIC_API_KEY": "x"}}`, want: Check{State: stateOK, Source: key, Detail: "ANTHROPIC_API_KEY is set in the settings of the CLI"}},
		{name: "helper", settings: `{"apiKeyHelper": "echo x"}`, want: Check{State: stateOK, Source: "apiKeyHelper", Detail: "apiKeyHelper in the settings of the CLI, which was not run"}},
		{name: "an invalid key", env: map[string]string{key: "x y"}, want: Check{
			State: stateBroken, Detail: "ANTHROPIC_API_KEY (shell) has characters in it that no key has", Fix: []string{"set it to the secret as it is, without anything around it"},
		}},
		{name: "login", login: ".claude/.credentials.json", want: Check{State: stateMissing, Path: ".claude/.credentials.json", Detail: none + login, Fix: withLogin}},
		{name: "login elsewhere", env: map[string]string{"CLAUDE_CONFIG_DIR": "HOME/config"}, login: "config/.credentials.json", want: Check{State: stateMissing, Path: "config/.credentials.json", Detail: none + login, Fix: withLogin}},
		{name: "login at home does not count elsewhere", env: map[string]string{"CLAUDE_CONFIG_DIR": "HOME/config"}, login: ".claude/.credentials.json", want: Check{State: stateMissing, Detail: none, Fix: authFixes()}},
		{name: "Bedrock before all", env: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-central-1"}, want: Check{
			State: stateOK, Source: "CLAUDE_CODE_USE_BEDROCK", Detail: "Amazon Bedrock in eu-central-1 (CLAUDE_CODE_USE_BEDROCK), whose own credentials are not checked",
		}},
		{name: "a cloud that the gateway does not speak with", env: map[string]string{"CLAUDE_CODE_USE_VERTEX": "True", key: "x"}, want: Check{
			State: stateBroken, Detail: "CLAUDE_CODE_USE_VERTEX is on (shell), and the gateway does not support Google Vertex AI",
			Fix: []string{"set CLAUDE_CODE_USE_VERTEX=0 and ANTHROPIC_API_KEY, or CLAUDE_CODE_USE_BEDROCK=1 with AWS_REGION"},
		}},
		{name: "cloud switched off", env: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "0", key: "x"}, want: Check{State: stateOK, Source: key, Detail: "ANTHROPIC_API_KEY is set"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			d.environ = func() []string { return nil }
			for name, value := range c.env {
				if value == "HOME/config" {
					value = filepath.Join(d.home, "config")
				}
				d.setenv(name, value)
			}
			if c.settings != "" {
				dir := filepath.Join(d.home, ".claude")
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, "settings.json"), []byte(c.settings))
			}
			d.stat = func(path string) error {
				if path == filepath.Join(d.home, c.login) {
					return nil
				}
				return fs.ErrNotExist
			}
			if c.want.Path != "" {
				c.want.Path = filepath.Join(d.home, c.want.Path)
			}
			if diff := cmp.Diff(&c.want, d.examineAuth(t.Context())); diff != "" {
				t.Errorf("check (-want +got):\n%s", diff)
			}
		})
	}
}
