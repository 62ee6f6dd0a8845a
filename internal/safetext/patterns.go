// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A pattern is one shape of secret. The group "s" is what goes; without it, the whole match does.
type pattern struct {
	re func() *regexp.Regexp
	// hints are words of which one must occur, in lower case, before the expression is tried.
	hints []string
	// secret, if set, decides whether the match is one.
	secret func(string) bool
}

var patterns = []pattern{
	{re: lazyRegexp(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`), hints: []string{"private key"}},
	{re: lazyRegexp(`sk-ant-[A-Za-z0-9_-]{6,}`), hints: []string{"sk-ant-"}},
	{re: lazyRegexp(`\bdrover-run-[A-Z2-7]{16,}`), hints: []string{"drover-run-"}}, // of the gateway
	{re: lazyRegexp(`\bsk-[A-Za-z0-9_-]{20,}`), hints: []string{"sk-"}},
	{re: lazyRegexp(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), hints: []string{"eyj"}},
	{re: lazyRegexp(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), hints: []string{"akia", "asia"}},
	{re: lazyRegexp(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{35})`), hints: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "aiza"}},
	{re: lazyRegexp(`(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/=-]{8,})`), hints: []string{"bearer"}, secret: looksRandom},
	{re: lazyRegexp(`(?i)\b(?:x-api-key|api-key|proxy-authorization|authorization|cookie|set-cookie)\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic|digest)\s+)?(?P<s>[^\s"'\\,]{4,}[^\r\n"'\\]*)`), hints: []string{"api-key", "authorization", "cookie"}},
	{re: lazyRegexp(`\b[A-Z0-9_]*(?:API_KEY|_TOKEN|SECRET|SECRET_KEY|ACCESS_KEY|PASSWORD|PASSWD|PRIVATE_KEY)\\?["']?\s*[:=]\s*\\?["']?(?P<s>[^\s"'\\,;]{4,})`), hints: []string{"api_key", "_token", "secret", "access_key", "passw", "private_key"}, secret: notReference},
	{re: lazyRegexp(`(?i)\b(?:api_?key|access_?token|refresh_?token|auth_?token|client_?secret|secret_?(?:access_?)?key|aws_secret_access_key|password)\\?["']\s*:\s*\\?["'](?P<s>[^"'\\]{4,})`), hints: []string{"apikey", "api_key", "accesstoken", "access_token", "refreshtoken", "refresh_token", "authtoken", "auth_token", "clientsecret", "client_secret", "secretkey", "secret_key", "secretaccess", "secret_access", "password"}},
	{re: lazyRegexp(`(?i)\baws_?(?:secret_?access_?key|session_?token)\s*[:=]\s*(?P<s>[A-Za-z0-9/+=]{16,})`), hints: []string{"awss", "aws_s"}},
	{re: lazyRegexp(`://[^\s/:@"']+:(?P<s>[^\s/@"']+)@`), hints: []string{"://"}, secret: notReference},
}

// looksRandom keeps ordinary words after "bearer" in the text.
func looksRandom(s string) bool { return len(s) >= 24 || strings.ContainsAny(s, "0123456789") }

// notReference keeps the names of variables: "$TOKEN" is not a secret.
func notReference(s string) bool { return !strings.HasPrefix(s, "$") && !strings.HasPrefix(s, "%") }

func redactPatterns(s, marker string) string {
	lower := ""
	for i := range patterns {
		p := &patterns[i]
		if lower == "" {
			lower = strings.ToLower(s)
		}
		if p.hinted(lower) {
			if out := p.replace(s, marker); out != s {
				s, lower = out, ""
			}
		}
	}
	return s
}

func (p *pattern) hinted(lower string) bool {
	return slices.ContainsFunc(p.hints, func(hint string) bool { return strings.Contains(lower, hint) })
}

func (p *pattern) replace(s, marker string) string {
	re := p.re()
	group := max(re.SubexpIndex("s"), 0)
	var b strings.Builder
	last := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		from, to := m[2*group], m[2*group+1]
		if found := s[from:to]; found == marker || p.secret != nil && !p.secret(found) {
			continue
		}
		b.WriteString(s[last:from])
		b.WriteString(marker)
		last = to
	}
	if last == 0 {
		return s
	}
	return b.String() + s[last:]
}

// lazyRegexp returns a function that compiles an expression at its first call: most programs use few of them.
func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
