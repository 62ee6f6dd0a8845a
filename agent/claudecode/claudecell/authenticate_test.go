// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/isolation"
)

// machine is a planted host: variables, and files of its claude.
type machine struct {
	env      []string
	settings string // .claude/settings.json; "" means none
	login    string // .claude/.credentials.json; "" means none
}

func (m machine) host(t *testing.T) isolation.Host {
	t.Helper()
	home := t.TempDir()
	for name, content := range map[string]string{"settings.json": m.settings, ".credentials.json": m.login} {
		if content != "" {
			plant(t, filepath.Join(home, ".claude", name), content)
		}
	}
	return isolation.Host{Environ: func() []string { return m.env }, Home: home}
}

func login(expires time.Time) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":"other","expiresAt":%d}}`, planted, expires.UnixMilli())
}

func TestAuthenticate_Finding(t *testing.T) {
	key, token, oauth := "ANTHROPIC_API_KEY="+planted, "ANTHROPIC_AUTH_TOKEN="+planted, "CLAUDE_CODE_OAUTH_TOKEN="+planted
	inSettings := func(name, value string) string { return fmt.Sprintf(`{"env":{%q:%q},"model":"opus"}`, name, value) }
	tests := []struct {
		name      string
		machine   machine
		isolation isolation.Isolation
		want      claudecell.Finding
	}{
		{
			"an explicit key beats everything",
			machine{env: []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-1", "CLAUDE_CODE_USE_VERTEX=1", "ANTHROPIC_BASE_URL=https://proxy.example"}},
			isolation.Isolation{APIKey: planted},
			claudecell.Finding{Mode: claudecell.ModeExplicitKey, Source: claudecell.SourceGiven, Name: "APIKey", BaseURL: "https://proxy.example"},
		},
		{
			"Bedrock beats a key",
			machine{env: []string{key, "CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_PROFILE=work", "ANTHROPIC_BEDROCK_BASE_URL=https://vpc.example"}},
			isolation.Isolation{},
			claudecell.Finding{
				Mode: claudecell.ModeBedrock, Source: claudecell.SourceShell, Name: "CLAUDE_CODE_USE_BEDROCK", BaseURL: "https://vpc.example",
				Bedrock: &claudecell.BedrockConfig{Region: "eu-west-1", Profile: "work", Source: claudecell.SourceShell},
				Notes:   []string{"ANTHROPIC_API_KEY is set too, and is not used"},
			},
		},
		{
			"Bedrock with the other region variable",
			machine{env: []string{"CLAUDE_CODE_USE_BEDROCK=true", "AWS_DEFAULT_REGION=us-east-1"}},
			isolation.Isolation{},
			claudecell.Finding{Mode: claudecell.ModeBedrock, Source: claudecell.SourceShell, Name: "CLAUDE_CODE_USE_BEDROCK", Bedrock: &claudecell.BedrockConfig{Region: "us-east-1", Source: claudecell.SourceShell}},
		},
		{
			"Bedrock of the settings",
			machine{settings: `{"env":{"CLAUDE_CODE_USE_BEDROCK":"1","AWS_REGION":"ap-south-1","AWS_PROFILE":"p"}}`},
			isolation.Isolation{},
			claudecell.Finding{Mode: claudecell.ModeBedrock, Source: claudecell.SourceHostSettings, Name: "CLAUDE_CODE_USE_BEDROCK", Bedrock: &claudecell.BedrockConfig{Region: "ap-south-1", Profile: "p", Source: claudecell.SourceHostSettings}},
		},
		{
			"the shell switches Bedrock of the settings off",
			machine{env: []string{"CLAUDE_CODE_USE_BEDROCK=0", key}, settings: `{"env":{"CLAUDE_CODE_USE_BEDROCK":"1","AWS_REGION":"ap-south-1"}}`},
			isolation.Isolation{},
			claudecell.Finding{Mode: claudecell.ModeAPIKey, Source: claudecell.SourceShell, Name: "ANTHROPIC_API_KEY"},
		},
		{
			"a key beats tokens",
			machine{env: []string{oauth, token, key, "ANTHROPIC_BASE_URL=http://127.0.0.1:4000/v"}},
			isolation.Isolation{},
			claudecell.Finding{
				Mode: claudecell.ModeAPIKey, Source: claudecell.SourceShell, Name: "ANTHROPIC_API_KEY", BaseURL: "http://127.0.0.1:4000/v",
				Notes: []string{"ANTHROPIC_AUTH_TOKEN is set too, and is not used", "CLAUDE_CODE_OAUTH_TOKEN is set too, and is not used"},
			},
		},
		{"an auth token", machine{env: []string{token}}, isolation.Isolation{}, claudecell.Finding{Mode: claudecell.ModeAuthToken, Source: claudecell.SourceShell, Name: "ANTHROPIC_AUTH_TOKEN"}},
		{"a login token", machine{env: []string{oauth}}, isolation.Isolation{}, claudecell.Finding{Mode: claudecell.ModeOAuthToken, Source: claudecell.SourceShell, Name: "CLAUDE_CODE_OAUTH_TOKEN"}},
		{"a key of the settings", machine{settings: inSettings("ANTHROPIC_API_KEY", planted)}, isolation.Isolation{}, claudecell.Finding{Mode: claudecell.ModeAPIKey, Source: claudecell.SourceHostSettings, Name: "ANTHROPIC_API_KEY"}},
		{"the shell beats the settings", machine{env: []string{key}, settings: inSettings("ANTHROPIC_API_KEY", "sk-other")}, isolation.Isolation{}, claudecell.Finding{Mode: claudecell.ModeAPIKey, Source: claudecell.SourceShell, Name: "ANTHROPIC_API_KEY"}},
		{"an empty variable is not set", machine{env: []string{"ANTHROPIC_API_KEY="}, settings: inSettings("ANTHROPIC_API_KEY", planted)}, isolation.Isolation{}, claudecell.Finding{Mode: claudecell.ModeAPIKey, Source: claudecell.SourceHostSettings, Name: "ANTHROPIC_API_KEY"}},
		{"a key helper", machine{settings: `{"apiKeyHelper":"/usr/bin/echo ` + planted + `"}`}, isolation.Isolation{}, claudecell.Finding{Mode: claudecell.ModeKeyHelper, Source: claudecell.SourceHostSettings, Name: "apiKeyHelper"}},
		{
			"only Bedrock",
			machine{env: []string{key, "CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=r"}},
			isolation.Isolation{Auth: isolation.Auth{Only: claudecell.ModeBedrock}},
			claudecell.Finding{
				Mode: claudecell.ModeBedrock, Source: claudecell.SourceShell, Name: "CLAUDE_CODE_USE_BEDROCK", Bedrock: &claudecell.BedrockConfig{Region: "r", Source: claudecell.SourceShell},
				Notes: []string{"ANTHROPIC_API_KEY is set too, and is not used"},
			},
		},
		{
			"only the API, with Bedrock and Vertex on",
			machine{env: []string{key, "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_USE_VERTEX=1"}},
			isolation.Isolation{Auth: isolation.Auth{Only: claudecell.ModeAPIKey}},
			claudecell.Finding{Mode: claudecell.ModeAPIKey, Source: claudecell.SourceShell, Name: "ANTHROPIC_API_KEY"},
		},
		{
			"invalid settings count as empty, and it is reported",
			machine{env: []string{key}, settings: `{"env":`},
			isolation.Isolation{},
			claudecell.Finding{Mode: claudecell.ModeAPIKey, Source: claudecell.SourceShell, Name: "ANTHROPIC_API_KEY", Notes: []string{"SETTINGS is not valid JSON, and counts as empty"}},
		},
		{
			"a stored login by its name",
			machine{login: login(time.Now().Add(time.Hour))},
			isolation.Isolation{Auth: isolation.Auth{UseStoredLogin: true}},
			claudecell.Finding{Mode: claudecell.ModeStoredLogin, Source: claudecell.SourceStoredLogin, Name: "LOGIN"},
		},
		{
			"a stored login is the last",
			machine{env: []string{oauth}, login: login(time.Now().Add(time.Hour))},
			isolation.Isolation{Auth: isolation.Auth{UseStoredLogin: true}},
			claudecell.Finding{Mode: claudecell.ModeOAuthToken, Source: claudecell.SourceShell, Name: "CLAUDE_CODE_OAUTH_TOKEN"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			i := test.isolation
			i.Host = test.machine.host(t)
			got, err := claudecell.Authenticate(&i)
			if err != nil {
				t.Fatal(err)
			}
			claudeDir := filepath.Join(i.Host.Home, ".claude")
			test.want.Name = strings.Replace(test.want.Name, "LOGIN", filepath.Join(claudeDir, ".credentials.json"), 1)
			for n, note := range test.want.Notes {
				test.want.Notes[n] = strings.Replace(note, "SETTINGS", filepath.Join(claudeDir, "settings.json"), 1)
			}
			if diff := cmp.Diff(&test.want, got, cmpopts.IgnoreUnexported(claudecell.Finding{})); diff != "" {
				t.Errorf("Authenticate (-want +got):\n%s", diff)
			}
			checkHidden(t, got)
		})
	}
}

// checkHidden prints a finding in every way, and looks for the secret.
func checkHidden(t *testing.T, f *claudecell.Finding) {
	t.Helper()
	asJSON, err := json.Marshal(f)
	if err != nil {
		t.Error(err)
	}
	for _, text := range []string{fmt.Sprint(f), fmt.Sprintf("%v %+v %#v", *f, *f, *f), fmt.Sprintf("%+v %#v", f, f), string(asJSON)} {
		if strings.Contains(text, "planted") {
			t.Errorf("the secret is in %s", text)
		}
	}
}

func TestAuthenticate_UnusableCredentialsAreRefused(t *testing.T) {
	tests := []struct {
		name      string
		machine   machine
		isolation isolation.Isolation
		want      []string
	}{
		{"nothing at all", machine{}, isolation.Isolation{}, []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION", "UseStoredLogin"}},
		{"invalid settings are reported", machine{settings: "no"}, isolation.Isolation{}, []string{"not valid JSON"}},
		{"Bedrock without a region", machine{env: []string{"CLAUDE_CODE_USE_BEDROCK=1"}}, isolation.Isolation{}, []string{"no region", "AWS_REGION", "ANTHROPIC_API_KEY"}},
		{"Bedrock without its switch", machine{env: []string{"AWS_REGION=us-east-1"}}, isolation.Isolation{Auth: isolation.Auth{Only: claudecell.ModeBedrock}}, []string{"CLAUDE_CODE_USE_BEDROCK is not 1", "ForAnthropicAPI"}},
		{"Vertex", machine{env: []string{"CLAUDE_CODE_USE_VERTEX=1", "ANTHROPIC_API_KEY=" + planted}}, isolation.Isolation{}, []string{"CLAUDE_CODE_USE_VERTEX is on (shell)", "Google Vertex AI"}},
		{"Foundry of the settings", machine{settings: `{"env":{"CLAUDE_CODE_USE_FOUNDRY":"1"}}`}, isolation.Isolation{}, []string{"CLAUDE_CODE_USE_FOUNDRY is on (host_settings)", "Microsoft Foundry"}},
		{"a key with a line break", machine{env: []string{"ANTHROPIC_API_KEY=" + planted + "\nX-Evil: 1"}}, isolation.Isolation{}, []string{"ANTHROPIC_API_KEY (shell) has characters"}},
		{"a given key with space", machine{}, isolation.Isolation{APIKey: planted + " "}, []string{"the APIKey begins or ends with space"}},
		{"a key and another mode", machine{}, isolation.Isolation{APIKey: planted, Auth: isolation.Auth{Only: claudecell.ModeBedrock}}, []string{"bedrock", "leave one of them out"}},
		{"a login that was not asked for", machine{login: login(time.Now().Add(time.Hour))}, isolation.Isolation{}, []string{"no authentication"}},
		{"a login that ran out", machine{login: login(time.Now().Add(-time.Hour))}, isolation.Isolation{Auth: isolation.Auth{UseStoredLogin: true}}, []string{"has run out", "run claude on the host"}},
		{"a file without a login", machine{login: `{"mcpOAuth":{}}`}, isolation.Isolation{Auth: isolation.Auth{UseStoredLogin: true}}, []string{"has no login in it"}},
		{"a login that is not JSON", machine{login: `x`}, isolation.Isolation{Auth: isolation.Auth{UseStoredLogin: true}}, []string{"is not valid JSON"}},
		{"a base URL with a password", machine{env: []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=https://u:" + planted + "@h"}}, isolation.Isolation{}, []string{"ANTHROPIC_BASE_URL (shell)"}},
		{"an invalid base URL", machine{env: []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=proxy"}}, isolation.Isolation{}, []string{"ANTHROPIC_BASE_URL (shell)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.isolation.Host = test.machine.host(t)
			got, err := claudecell.Authenticate(&test.isolation)
			checkAuthError(t, err, test.want...)
			if got != nil {
				t.Errorf("got %v besides the error", got)
			}
		})
	}
}

func TestAuthenticate_StoredLoginInAnotherFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "login.json")
	plant(t, path, login(time.Now().Add(time.Hour)))
	i := isolation.Isolation{Host: hostWith(), Auth: isolation.Auth{Only: claudecell.ModeStoredLogin, LoginPath: path}}
	if got, err := claudecell.Authenticate(&i); err != nil || got.Name != path {
		t.Errorf("got %v, %v, want the login of %s", got, err, path)
	}
}

func TestAuthenticate_HostConfigInAnotherFolder(t *testing.T) {
	dir := t.TempDir()
	plant(t, filepath.Join(dir, "settings.json"), `{"env":{"ANTHROPIC_API_KEY":"`+planted+`"}}`)
	i := isolation.Isolation{Host: hostWith("CLAUDE_CONFIG_DIR=" + dir)}
	if got, err := claudecell.Authenticate(&i); err != nil || got.Source != claudecell.SourceHostSettings {
		t.Errorf("got %v, %v, want the key of %s", got, err, dir)
	}
}
