// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/isolation"
)

// What signs for Bedrock outside of the cell finds its variables in the shell, then in the settings.
func TestAWSVariables_AreFoundOutsideOfTheCell(t *testing.T) {
	home := t.TempDir()
	settings := `{"env":{"AWS_REGION":"eu-west-1","AWS_PROFILE":"settings","AWS_ROLE_ARN":"arn:settings"}}`
	if err := os.Mkdir(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude", "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := []string{
		"CLAUDE_CODE_USE_BEDROCK=1", "AWS_PROFILE=shell", "AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIAPLANTED", "AWS_SECRET_ACCESS_KEY=planted",
		"AWS_SESSION_TOKEN=session", "AWS_WEB_IDENTITY_TOKEN_FILE=/token", "AWS_CONFIG_FILE=",
	}
	i := &isolation.Isolation{IncludeHostEnv: true, Host: isolation.Host{Home: home, Environ: func() []string { return shell }}}
	found, err := Authenticate(i)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "shell", "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ROLE_ARN": "arn:settings",
		"AWS_ACCESS_KEY_ID": "AKIAPLANTED", "AWS_SECRET_ACCESS_KEY": "planted", "AWS_SESSION_TOKEN": "session", "AWS_WEB_IDENTITY_TOKEN_FILE": "/token",
		"AWS_CONFIG_FILE": "", "AWS_ENDPOINT_URL": "",
	} {
		if got, there := found.lookup(name); got != want || there != (want != "") {
			t.Errorf("lookup(%s) = %q, %t, want %q", name, got, there, want)
		}
	}
	env, err := i.BuildEnv(isolation.LevelCell)
	if err != nil || len(env.Vars) > 0 {
		t.Errorf("the cell would get %v, %v, want none of them", env.Vars, err)
	}
}
