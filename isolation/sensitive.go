// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
)

// sensitivePrefixes begin names, in capitals, of variables that never come from the host: credentials and private locations.
var sensitivePrefixes = []string{
	"HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_", "TMPDIR", "TEMP", "TMP",
	"CLAUDE", "ANTHROPIC_", "AWS_", "GOOGLE_", "GCLOUD_", "GCP_", "CLOUDSDK_", "CLOUD_ML_", "VERTEX_",
	"AZURE_", "ARM_", "MSI_", "IDENTITY_", "OPENAI_", "GEMINI_", "MISTRAL_", "HF_", "HUGGING",
	"SSH_", "GPG_", "GNUPG", "DOCKER_", "CONTAINER_HOST", "PODMAN_", "KUBE", "HELM_", "VAULT_", "CONSUL_", "NOMAD_",
	"GITHUB_", "GH_", "GITLAB_", "CI_", "ACTIONS_", "RUNNER_", "BUILDKITE_", "CIRCLE_", "JENKINS_",
	"NPM_", "YARN_", "PIP_", "UV_", "POETRY_", "TWINE_", "CARGO_REGISTR", "GEM_HOST_", "BUNDLE_", "GOAUTH", "NETRC",
	"PG", "MYSQL_", "REDIS", "MONGO", "DATABASE_", "DB_", "SENTRY_", "SLACK_", "STRIPE_", "TWILIO_", "SENDGRID_", "DD_", "DATADOG_",
	"DBUS_", "XAUTH", "DISPLAY", "WAYLAND_", "KRB5", "SYSTEMD_", "NOTIFY_SOCKET", "LISTEN_", "INVOCATION_",
	"OTEL_EXPORTER_", "DROVER_",
}

// commandPrefixes begin names of variables that make a program run something, or look elsewhere for its parts.
var commandPrefixes = []string{
	"LD_", "DYLD_", "GLIBC_TUNABLES", "GCONV_PATH", "MALLOC_", "BASH_ENV", "BASH_FUNC", "BASHOPTS", "SHELLOPTS", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "IFS", "CDPATH", "ZDOTDIR", "FPATH", "INPUTRC",
	"NODE_", "BUN_", "DENO_", "ELECTRON_", "PYTHON", "PERL", "RUBY", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "LUA_", "PHP",
	"GIT_", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "BROWSER", "SUDO_", "MAKEFLAGS", "MFLAGS", "RUSTC_WRAPPER", "RUSTFLAGS", "GOFLAGS", "GOENV", "CC", "CXX", "CPP", "OPENSSL_CONF", "OPENSSL_ENGINES", "SSLKEYLOGFILE", "CURL_HOME", "TERMINFO", "TERMCAP", "HISTFILE", "MAIL", "TMUX", "STY",
}

// exactNames are sensitive as a whole only: more would be hit by prefixes.
var exactNames = []string{"ENV", "PWD", "OLDPWD", "USER", "LOGNAME", "USERNAME", "SHELL", "_", "PS", "IS_SANDBOX"}

// sensitiveWords are parts of names, between underscores or as a syllable, that speak of secrets.
// Proxies of the host are not the agent's way out, and their addresses often contain a password.
var sensitiveWords = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE", "SESSION", "PRIVATE", "SIGNATURE", "WEBHOOK", "BEARER", "JWT", "DSN", "_URL", "_URI", "CONNECTION_STRING", "CONNSTR", "PROXY", "SOCK", "CERT", "LICENSE",
}

// keyWords end in a word that is too short to look for anywhere: MONKEY is not a KEY, PASSENGER not a PASS.
var keyWords = []string{"KEY", "KEYS", "APIKEY", "APIKEYS", "PASS", "PWD", "PW", "PAT", "PIN", "SALT", "OTP", "CREDS", "CRED", "SAS"}

func sensitiveName(name string) bool {
	upper := strings.ToUpper(name)
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
	contains := func(word string) bool { return strings.Contains(upper, word) }
	return !plainName(upper) || slices.Contains(exactNames, upper) ||
		slices.ContainsFunc(sensitivePrefixes, hasPrefix) || slices.ContainsFunc(commandPrefixes, hasPrefix) ||
		slices.ContainsFunc(sensitiveWords, contains) || hasKeyWord(upper)
}

// plainName reports whether a name has only letters, digits and underscores, which excludes exported functions of shells.
func plainName(upper string) bool {
	return upper != "" && !strings.ContainsFunc(upper, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z')
	})
}

func hasKeyWord(upper string) bool {
	for word := range strings.SplitSeq(upper, "_") {
		word = strings.TrimRight(word, "0123456789")
		if slices.Contains(keyWords, word) || strings.HasSuffix(word, "APIKEY") || strings.HasSuffix(word, "ACCESSKEY") {
			return true
		}
	}
	return false
}

func sensitiveValue(value string) bool {
	var shapes *safetext.Redactor
	return shapes.String(value) != value || hasSecretPrefix(value) || hasUserinfo(value)
}

// secretPrefixes begin keys of well-known makers. In a variable they count even when they are too short to be real.
var secretPrefixes = []string{"sk-", "sk_", "pk_live", "rk_live", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxa-", "xoxb-", "xoxp-", "xapp-", "AIza", "ya29.", "npm_", "pypi-", "hf_", "dckr_pat_", "dop_v1_", "-----BEGIN", "eyJ"}

func hasSecretPrefix(value string) bool {
	separator := func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'=:,;@/?&", r) }
	for part := range strings.FieldsFuncSeq(value, separator) {
		for _, prefix := range secretPrefixes {
			if strings.HasPrefix(part, prefix) {
				return true
			}
		}
	}
	return false
}

// hasUserinfo reports whether there is an address with a user or a password in it.
func hasUserinfo(value string) bool {
	for rest, found := value, true; found; {
		if _, rest, found = strings.Cut(rest, "://"); !found {
			return false
		}
		authority, _, _ := strings.Cut(rest, "/")
		if strings.Contains(authority, "@") {
			return true
		}
	}
	return false
}
