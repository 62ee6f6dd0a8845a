// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// Authenticate finds how a run with this isolation pays for the model, in this order: APIKey; Bedrock; a key, a token or
// a login token in the environment; the key helper of the host's claude; its stored login, if Auth allows
// so. A variable of this process counts before the same one in the host's settings. Vertex and Foundry
// are refused. The error is an [*isolation.AuthError].
//
// It makes no network request and runs no helper. It opens the stored login only if Auth allows so.
func Authenticate(i *isolation.Isolation) (*Finding, error) {
	if only := i.Auth.Only; i.APIKey != "" && only != "" && only != ModeExplicitKey {
		return nil, &isolation.AuthError{
			Reason: fmt.Sprintf("there is an APIKey, and Auth.Only asks for %s", only),
			Fixes:  []string{"leave one of them out"},
		}
	}
	s := newSearch(i)
	for _, way := range ways {
		if i.Auth.Only != "" && i.Auth.Only != way.mode {
			continue
		}
		found, err := way.find(s)
		if err != nil {
			return nil, err
		}
		if found != nil {
			found.Mode = way.mode
			found.Notes = s.notes
			return found, nil
		}
	}
	return nil, s.nothingFound()
}

// ways are all ways to pay, in order. A way that is not there finds nil.
var ways = []struct {
	mode isolation.Mode
	find func(*search) (*Finding, error)
}{
	{ModeExplicitKey, (*search).explicitKey},
	{ModeBedrock, (*search).bedrock},
	{"", (*search).unsupported},
	{ModeAPIKey, func(s *search) (*Finding, error) { return s.secretIn("ANTHROPIC_API_KEY") }},
	{ModeAuthToken, func(s *search) (*Finding, error) { return s.secretIn("ANTHROPIC_AUTH_TOKEN") }},
	{ModeOAuthToken, func(s *search) (*Finding, error) { return s.secretIn("CLAUDE_CODE_OAUTH_TOKEN") }},
	{ModeKeyHelper, (*search).keyHelper},
	{ModeStoredLogin, (*search).storedLogin},
}

type search struct {
	apiKey   string // Isolation.APIKey
	host     isolation.Host
	auth     isolation.Auth
	settings *claude.SettingsDocument
	path     string
	notes    []string
}

func newSearch(i *isolation.Isolation) *search {
	s := &search{apiKey: i.APIKey, host: i.Host, auth: i.Auth, settings: &claude.SettingsDocument{}}
	dir := hostConfigDir(s.host)
	if dir == "" {
		s.notes = append(s.notes, "the home of the host's user is not known, so that no settings were read")
		return s
	}
	s.path = settingsFile(dir)
	content, err := os.ReadFile(s.path)
	settings, malformed := claude.DecodeSettings(content)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.notes = append(s.notes, s.path+" cannot be read, and counts as empty")
	case malformed != nil:
		s.notes = append(s.notes, s.path+" is not valid JSON, and counts as empty")
	default:
		s.settings = settings
	}
	return s
}

// hostConfigDir is where the host's claude keeps its settings, or "" if that cannot be known.
func hostConfigDir(h isolation.Host) string {
	if dir := h.Getenv(claude.EnvConfigDir); dir != "" {
		return dir
	}
	home, err := h.HomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, configDir)
}

// variable looks at this process, then at the settings. A variable that is set to nothing is not set.
func (s *search) variable(name string) (string, Source) {
	if value := s.host.Getenv(name); value != "" {
		return value, SourceShell
	}
	return s.settings.Env[name], SourceHostSettings
}

// lookup finds a variable where the authentication was found, for those who look for further ones, such
// as the credentials of AWS: in this process, then in the host's settings. The home is that of the host.
func (f *Finding) lookup(name string) (value string, there bool) {
	if home, err := f.from.host.HomeDir(); name == "HOME" && err == nil {
		return home, true
	}
	value, _ = f.from.variable(name)
	return value, value != ""
}

// isOn reads a switch as the CLI does. A switch of this process with any other value is off, in spite of the settings.
func (s *search) isOn(name string) (bool, Source) {
	value, source := s.variable(name)
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "yes", "on":
		return true, source
	}
	return false, source
}

// explicitKey pays with a key that was given. It goes to the host's base URL, if that has one.
func (s *search) explicitKey() (*Finding, error) {
	if s.apiKey == "" {
		return nil, nil
	}
	if reason := badSecret(s.apiKey); reason != "" {
		return nil, &isolation.AuthError{Reason: "the APIKey " + reason, Fixes: []string{"give the key as it is, without anything around it"}}
	}
	return s.found("ANTHROPIC_BASE_URL", &Finding{Source: SourceGiven, Name: "APIKey", credential: &credential{secret: s.apiKey}})
}

func (s *search) bedrock() (*Finding, error) {
	on, source := s.isOn("CLAUDE_CODE_USE_BEDROCK")
	if !on {
		return nil, nil
	}
	region, _ := s.variable("AWS_REGION")
	byDefault, _ := s.variable("AWS_DEFAULT_REGION")
	profile, _ := s.variable("AWS_PROFILE")
	config := &BedrockConfig{Region: cmp.Or(region, byDefault), Profile: profile, Source: source}
	if config.Region == "" {
		return nil, &isolation.AuthError{
			Reason: "CLAUDE_CODE_USE_BEDROCK is on, and no region is set",
			Fixes:  []string{"set AWS_REGION (or AWS_DEFAULT_REGION) in the environment or in the env section of " + cmp.Or(s.path, "~/.claude/settings.json"), "or unset CLAUDE_CODE_USE_BEDROCK and set ANTHROPIC_API_KEY"},
		}
	}
	return s.found("ANTHROPIC_BEDROCK_BASE_URL", &Finding{Source: config.Source, Name: "CLAUDE_CODE_USE_BEDROCK", Bedrock: config})
}

// unsupported refuses, by name, the services that the gateway does not support.
func (s *search) unsupported() (*Finding, error) {
	for _, cloud := range []struct{ variable, name string }{
		{"CLAUDE_CODE_USE_VERTEX", "Google Vertex AI"},
		{"CLAUDE_CODE_USE_FOUNDRY", "Microsoft Foundry"},
	} {
		if on, source := s.isOn(cloud.variable); on {
			return nil, &isolation.AuthError{
				Reason: fmt.Sprintf("%s is on (%s), and the gateway does not support %s", cloud.variable, source, cloud.name),
				Fixes: []string{
					fmt.Sprintf("set %s=0 and ANTHROPIC_API_KEY, or CLAUDE_CODE_USE_BEDROCK=1 with AWS_REGION", cloud.variable),
					"or set Isolation.APIKey, or an Isolation.Upstream of your own",
				},
			}
		}
	}
	return nil, nil
}

func (s *search) secretIn(name string) (*Finding, error) {
	value, source := s.variable(name)
	if value == "" {
		return nil, nil
	}
	if reason := badSecret(value); reason != "" {
		return nil, &isolation.AuthError{Reason: fmt.Sprintf("%s (%s) %s", name, source, reason), Fixes: []string{"set it to the secret as it is, without anything around it"}}
	}
	return s.found("ANTHROPIC_BASE_URL", &Finding{Source: source, Name: name, credential: &credential{secret: value}})
}

// found adds the address that a variable gives, and which other secrets are set and not used. An address
// with a password in it is refused: addresses are shown.
func (s *search) found(addressVariable string, f *Finding) (*Finding, error) {
	address, source := s.variable(addressVariable)
	if address != "" {
		parsed, err := url.Parse(address)
		if err != nil || parsed.User != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return nil, &isolation.AuthError{
				Reason: fmt.Sprintf("%s (%s) is not the address of a service", addressVariable, source),
				Fixes:  []string{"set it to one such as https://gateway.example.com, without a user and a password in it"},
			}
		}
	}
	f.BaseURL, f.from = address, s
	for _, name := range secretVariables {
		if value, _ := s.variable(name); value != "" && name != f.Name {
			s.notes = append(s.notes, name+" is set too, and is not used")
		}
	}
	return f, nil
}

// secretVariables are the variables with a credential for Anthropic's API, in order.
var secretVariables = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}

// badSecret is the fault of a secret that has to go into a header, or "". It does not contain the secret.
func badSecret(secret string) string {
	switch {
	case strings.TrimSpace(secret) == "":
		return "is empty"
	case strings.TrimSpace(secret) != secret:
		return "begins or ends with space"
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "has characters in it that no key has"
	}
	return ""
}

func (s *search) keyHelper() (*Finding, error) {
	command := strings.TrimSpace(s.settings.APIKeyHelper)
	if command == "" {
		return nil, nil
	}
	return s.found("ANTHROPIC_BASE_URL", &Finding{Source: SourceHostSettings, Name: "apiKeyHelper", credential: &credential{command: command}})
}

// storedLogin opens the login of the host's claude, only if it was asked for by name.
func (s *search) storedLogin() (*Finding, error) {
	if !s.auth.UseStoredLogin && s.auth.Only != ModeStoredLogin {
		return nil, nil
	}
	path := s.auth.LoginPath
	if path == "" {
		path = filepath.Join(hostConfigDir(s.host), ".credentials.json")
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	login, reason := decodeLogin(content, err, time.Now())
	if reason != "" {
		return nil, &isolation.AuthError{
			Reason: fmt.Sprintf("the stored login %s %s", path, reason),
			Fixes:  []string{"run claude on the host once, or claude auth login", "or set ANTHROPIC_API_KEY"},
		}
	}
	return s.found("ANTHROPIC_BASE_URL", &Finding{Source: SourceStoredLogin, Name: path, credential: &credential{secret: login}})
}

// decodeLogin is the token in a login file, or what is wrong with it. Only the CLI renews a login that
// ran out: a token that two programs renew is lost to one of them.
func decodeLogin(content []byte, readErr error, now time.Time) (token, reason string) {
	var file struct {
		Login struct {
			Token   string `json:"accessToken"`
			Expires int64  `json:"expiresAt"` // milliseconds
		} `json:"claudeAiOauth"`
	}
	switch {
	case readErr != nil:
		return "", "cannot be read"
	case json.Unmarshal(content, &file) != nil:
		return "", "is not valid JSON"
	case badSecret(file.Login.Token) != "":
		return "", "has no login in it"
	case file.Login.Expires != 0 && now.After(time.UnixMilli(file.Login.Expires)):
		return "", "has run out"
	}
	return file.Login.Token, ""
}

// nothingFound names the credentials that were looked for, and the ways to set one.
func (s *search) nothingFound() error {
	const (
		byKey     = "set ANTHROPIC_API_KEY, or give a key with claudecell.WithAPIKey"
		byBedrock = "set CLAUDE_CODE_USE_BEDROCK=1 and AWS_REGION, with credentials that AWS finds"
	)
	e := &isolation.AuthError{}
	switch s.auth.Only {
	case ModeAPIKey:
		e.Reason, e.Fixes = "ANTHROPIC_API_KEY is not set", []string{byKey, "or " + byBedrock + ", and use claudecell.ForBedrock"}
	case ModeBedrock:
		e.Reason, e.Fixes = "CLAUDE_CODE_USE_BEDROCK is not 1", []string{byBedrock, "or " + byKey + ", and use claudecell.ForAnthropicAPI"}
	case "":
		e.Reason, e.Fixes = "the host has no authentication for the model", []string{byKey, "or " + byBedrock, "or set Auth.UseStoredLogin to use the login of the host's claude"}
		if s.auth.UseStoredLogin {
			e.Fixes[2] = "or log in with claude /login"
		}
	default:
		e.Reason, e.Fixes = fmt.Sprintf("the host has no authentication of the kind %s, which Auth.Only asks for", s.auth.Only), []string{byKey, "or " + byBedrock, "or leave Auth.Only out"}
	}
	if len(s.notes) > 0 {
		e.Reason += " (" + strings.Join(s.notes, "; ") + ")"
	}
	return e
}
