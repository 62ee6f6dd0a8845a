// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

// hostWith is a machine with these variables and nothing else.
func hostWith(variables ...string) isolation.Host {
	return isolation.Host{Environ: func() []string { return variables }, Home: "/home/of/nobody/here"}
}

func TestBuildEnv_StartsEmpty(t *testing.T) {
	machine := []string{
		"PATH=/opt/bin:.:/usr/bin::bin", "HOME=/home/ada", "LANG=en_GB.UTF-8", "LC_TIME=C", "TZ=UTC", "TERM=xterm", "NO_COLOR=1", "COLORTERM=truecolor",
		"PROJECT=apollo", "ANTHROPIC_API_KEY=sk-ant-0123456789", "GITHUB_TOKEN=x", "BROKEN", "=C:=C:\\",
	}
	harmless := map[string]string{"LANG": "en_GB.UTF-8", "LC_TIME": "C", "TZ": "UTC", "TERM": "xterm", "NO_COLOR": "1", "COLORTERM": "truecolor"}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(harmless)
		maps.Copy(all, more)
		return all
	}
	tests := []struct {
		name      string
		isolation isolation.Isolation
		level     isolation.Level
		want      isolation.Environ
	}{
		{"by default", isolation.Isolation{}, cell, isolation.Environ{Vars: harmless, Path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
		{"where the host's programs are seen", isolation.Isolation{}, host, isolation.Environ{Vars: harmless, Path: "/opt/bin:/usr/bin"}},
		{
			"with the host's",
			isolation.Isolation{IncludeHostEnv: true},
			cell,
			isolation.Environ{Vars: with(map[string]string{"PROJECT": "apollo"}), Path: "/opt/bin:/usr/bin", LeftOut: []string{"ANTHROPIC_API_KEY", "GITHUB_TOKEN", "HOME"}},
		},
		{
			"with variables of its own",
			isolation.Isolation{IncludeHostEnv: true, Env: map[string]string{"PROJECT": "gemini", "LANG": "C", "PATH": "/only", "GITHUB_TOKEN": "given by name"}},
			cell,
			isolation.Environ{Vars: with(map[string]string{"PROJECT": "gemini", "LANG": "C", "GITHUB_TOKEN": "given by name"}), Path: "/only", LeftOut: []string{"ANTHROPIC_API_KEY", "GITHUB_TOKEN", "HOME"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.isolation.Host = hostWith(machine...)
			got, err := test.isolation.BuildEnv(test.level)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("BuildEnv (-want +got):\n%s", diff)
			}
		})
	}
}

// sensitiveNames must never pass, whatever their value.
var sensitiveNames = []string{
	"HOME", "HOMEDRIVE", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CONFIG_DIR", "CLAUDECODE", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE",
	"GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_ID", "OPENAI_ORG", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_TTY", "DOCKER_HOST", "KUBECONFIG", "KUBERNETES_SERVICE_HOST",
	"NPM_TOKEN", "NPM_CONFIG__AUTHTOKEN", "npm_config_registry", "GITHUB_TOKEN", "GH_TOKEN", "MY_SECRET", "client_secret", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "ROOT_PASSWD", "MY_CREDENTIALS",
	"STRIPE_KEY", "API_KEY", "APIKEY", "FOO_APIKEY", "KEY", "SIGNING_KEYS", "KEY2", "X_AUTH", "OAUTH_CLIENT", "SESSION_COOKIE", "DATABASE_URL", "REDIS_URL", "SENTRY_DSN", "MONGO_URI",
	"HTTP_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_ENDPOINT",
	"LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "NODE_PATH", "BASH_ENV", "ENV", "PROMPT_COMMAND", "BASH_FUNC_ls%%", "PYTHONSTARTUP", "PYTHONPATH", "PERL5OPT", "RUBYOPT",
	"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_SSH_COMMAND", "GIT_ASKPASS", "EDITOR", "PAGER", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS", "IS_SANDBOX", "PWD", "SHELLOPTS", "IFS",
}

// secretValues must never pass, whatever their name.
var secretValues = []string{
	"sk-ant-api03-abcdef", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "ghp_0123456789abcdefghij", "github_pat_0123456789abcdefghij", "glpat-abcdefghijklmnop", "xoxb-1234567890",
	"postgres://ada:lovelace@db.example/x", "https://token@github.example/r.git", "amqp://u:p@q", "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----",
	"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig_nature", "Bearer 0123456789abcdef01234567", "sk_live_abcdefgh", "npm_abcdefgh", "AIzaSyA1234567890abcdefghijklmnopqrstuv", "x=1 sk-ant-api03-abcdef", "a,https://u:p@h/,b", "API_KEY=abcdef",
}

func TestBuildEnv_DropsSensitiveVariables(t *testing.T) {
	for _, name := range sensitiveNames {
		checkLeftOut(t, name, "harmless")
	}
	for _, value := range secretValues {
		checkLeftOut(t, "PROJECT", value)
		checkLeftOut(t, "LC_TIME", value)
	}
}

func checkLeftOut(t *testing.T, name, value string) {
	t.Helper()
	i := isolation.Isolation{IncludeHostEnv: true, Host: hostWith(name + "=" + value)}
	got, err := i.BuildEnv(cell)
	if err != nil || len(got.Vars) > 0 || !slices.Equal(got.LeftOut, []string{name}) {
		t.Errorf("%s=%s: got %+v, %v, want it left out by name", name, value, got, err)
	}
}

func TestBuildEnv_PassesOrdinaryVariables(t *testing.T) {
	for _, entry := range []string{
		"PROJECT=apollo", "GOPATH=/go", "MONKEY=1", "PASSENGER=ada", "COLUMNS=80", "HOSTNAME=cell", "BUILD_NUMBER=7", "RUST_BACKTRACE=1", "DEBUG=*", "MANPATH=/usr/share/man",
		"DOCS=https://example.com/a@b", "TIME_FORMAT=15:04", "ADDRESS=ada@example.com", "SKIP=task-1",
	} {
		name, value, _ := strings.Cut(entry, "=")
		got, err := (&isolation.Isolation{IncludeHostEnv: true, Host: hostWith(entry)}).BuildEnv(cell)
		if err != nil || got.Vars[name] != value || len(got.LeftOut) > 0 {
			t.Errorf("%s: got %+v, %v, want it to pass", entry, got, err)
		}
	}
}

func TestBuildEnv_PassesNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SampledFrom(secretValues).Draw(t, "secret")
		before := rapid.StringMatching(`([a-zA-Z0-9/.]{1,8}[ ,;=])?`).Draw(t, "before")
		after := rapid.StringMatching(`([ ,;][a-z]{0,5})?`).Draw(t, "after")
		word := rapid.SampledFrom([]string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY", "AUTH", "COOKIE", "DATABASE_URL", "DSN"}).Draw(t, "word")
		head := rapid.StringMatching(`([A-Za-z][A-Za-z0-9]{0,5}_)?`).Draw(t, "head")
		tail := rapid.StringMatching(`(_[A-Za-z0-9]{0,5})?`).Draw(t, "tail")
		if rapid.Bool().Draw(t, "small") {
			word = strings.ToLower(word)
		}
		prefix := rapid.SampledFrom([]string{"HOME", "CLAUDE_", "ANTHROPIC_", "AWS_", "GOOGLE_", "AZURE_", "OPENAI_", "SSH_", "GPG_", "DOCKER_", "KUBE", "LD_", "GIT_"}).Draw(t, "prefix")
		machine := []string{
			"ORDINARY=" + before + secret + after,
			"LANG=" + before + secret + after,
			head + word + tail + "=planted",
			prefix + rapid.StringMatching(`[A-Z0-9_]{0,8}`).Draw(t, "rest") + "=planted",
		}
		include := rapid.Bool().Draw(t, "include")
		got, err := (&isolation.Isolation{IncludeHostEnv: include, Host: hostWith(machine...)}).BuildEnv(cell)
		if err != nil || len(got.Vars) > 0 {
			t.Fatalf("of %q passed %v, %v", machine, got.Vars, err)
		}
	})
}

func TestBuildEnv_RefusesVariablesOfTheIsolation(t *testing.T) {
	tests := []struct{ name, instead string }{
		{"HOME", "Isolation.Populate"},
		{"TMPDIR", "Isolation.TempDir"},
		{"AWS_SECRET_ACCESS_KEY", "Isolation.AWSConfigPath"},
		{"HTTP_PROXY", "Isolation.Network"},
		{"https_proxy", "Isolation.Network"},
		{"no_proxy", "Isolation.Network"},
		{"LD_PRELOAD", "script"},
		{"NODE_OPTIONS", "script"},
		{"A=B", "without ="},
		{"", "without ="},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := (&isolation.Isolation{Env: map[string]string{test.name: "x"}, Host: hostWith()}).BuildEnv(cell)
			checkRefused(t, err, fmt.Sprintf("Env[%q]", test.name), test.instead)
		})
	}
	ok := map[string]string{"PATH": "/bin", "MY_KEY": "given by name", "LANG": "C"}
	if _, err := (&isolation.Isolation{Env: ok, Host: hostWith()}).BuildEnv(cell); err != nil {
		t.Errorf("got %v, want these accepted", err)
	}
}

func TestProgram_RefusesItsVariables(t *testing.T) {
	p := isolation.Program{Refused: []isolation.RefusedVariable{{Name: "AGENT_*", Instead: "Isolation.Auth"}, {Name: "*_MODE", Instead: "a flag"}}}
	for name, instead := range map[string]string{"AGENT_KEY": "Isolation.Auth", "agent_key": "Isolation.Auth", "ANY_MODE": "a flag", "HOME": "Isolation.Populate"} {
		checkRefused(t, p.ValidateEnv(map[string]string{name: "x"}), fmt.Sprintf("Env[%q]", name), instead)
		i := &isolation.Isolation{Env: map[string]string{name: "x"}, Host: hostWith()}
		_, err := i.Open(t.Context(), p, isolation.OpenOptions{})
		checkRefused(t, err, fmt.Sprintf("Env[%q]", name), instead)
	}
	if err := p.ValidateEnv(map[string]string{"AGENT": "x", "MODE": "x"}); err != nil {
		t.Errorf("got %v, want these accepted", err)
	}
}
