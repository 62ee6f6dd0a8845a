// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"regexp"
	"strings"
	"sync"
)

// A pattern is one shape of secret. The group "s" is what goes; without it, the whole match does.
//
// The words tell where it can match at all: each match has one of them, of three bytes at least, and beside it what alone, then and
// least say. A text without any is not given to the expression, which is slow.
type pattern struct {
	re    func() *regexp.Regexp
	words []string
	fold  bool      // the words are in lower case, and found in any
	alone bool      // no letter, digit or underscore is before a word
	then  following // what is behind a word
	least int       // of tokenBehind
	// secret, if set, decides whether the match is one.
	secret func(string) bool
}

// following is what is behind a word.
type following int

const (
	anyBehind    following = iota
	tokenBehind            // as many letters, digits, - and _ as least says
	spaceBehind            // white space
	assignBehind           // : or =, perhaps after a quote
	memberBehind           // a quote and :
	userBehind             // a user and a password, up to @
)

// kelvin is the sign that regular expressions take for a k. There is another one for s, which no text has by chance either.
const kelvin = "\u212a"

var patterns = []pattern{
	{re: lazyRegexp(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`), words: []string{"PRIVATE KEY-----"}},
	{re: lazyRegexp(`sk-ant-[A-Za-z0-9_-]{6,}`), words: []string{"sk-ant-"}, then: tokenBehind, least: 6},
	{re: lazyRegexp(`\bdrover-run-[A-Z2-7]{16,}`), words: []string{"drover-run-"}, alone: true, then: tokenBehind, least: 16}, // of the gateway
	{re: lazyRegexp(`\bsk-[A-Za-z0-9_-]{20,}`), words: []string{"sk-"}, alone: true, then: tokenBehind, least: 20},
	{re: lazyRegexp(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), words: []string{"eyJ"}, alone: true, then: tokenBehind, least: 8},
	{re: lazyRegexp(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), words: []string{"AKIA", "ASIA"}, alone: true, then: tokenBehind, least: 16},
	{re: lazyRegexp(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{35})`), words: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "AIza"}, alone: true, then: tokenBehind, least: 12},
	{re: lazyRegexp(`(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/=-]{8,})`), words: []string{"bearer"}, fold: true, alone: true, then: spaceBehind, secret: looksRandom},
	{re: lazyRegexp(`(?i)\b(?:x-api-key|api-key|proxy-authorization|authorization|cookie|set-cookie)\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic|digest)\s+)?(?P<s>[^\s"'\\,]{4,}[^\r\n"'\\]*)`), words: []string{"api-key", "authorization", "cookie"}, fold: true, alone: true, then: assignBehind},
	{re: lazyRegexp(`\b[A-Z0-9_]*(?:API_KEY|_TOKEN|SECRET|SECRET_KEY|ACCESS_KEY|PASSWORD|PASSWD|PRIVATE_KEY)\\?["']?\s*[:=]\s*\\?["']?(?P<s>[^\s"'\\,;]{4,})`), words: []string{"API_KEY", "_TOKEN", "SECRET", "SECRET_KEY", "ACCESS_KEY", "PASSWORD", "PASSWD", "PRIVATE_KEY"}, then: assignBehind, secret: notReference},
	{re: lazyRegexp(`(?i)\b(?:api_?key|access_?token|refresh_?token|auth_?token|client_?secret|secret_?(?:access_?)?key|aws_secret_access_key|password)\\?["']\s*:\s*\\?["'](?P<s>[^"'\\]{4,})`), words: []string{"apikey", "api_key", "accesstoken", "access_token", "refreshtoken", "refresh_token", "authtoken", "auth_token", "clientsecret", "client_secret", "secretkey", "secret_key", "secretaccesskey", "secretaccess_key", "secret_accesskey", "secret_access_key", "aws_secret_access_key", "password"}, fold: true, alone: true, then: memberBehind},
	{re: lazyRegexp(`(?i)\baws_?(?:secret_?access_?key|session_?token)\s*[:=]\s*(?P<s>[A-Za-z0-9/+=]{16,})`), words: []string{"awss", "aws_s"}, fold: true, alone: true},
	{re: lazyRegexp(`://[^\s/:@"']+:(?P<s>[^\s/@"']+)@`), words: []string{"://"}, then: userBehind, secret: notReference},
}

// looksRandom keeps ordinary words after "bearer" in the text.
func looksRandom(s string) bool { return len(s) >= 24 || strings.ContainsAny(s, "0123456789") }

// notReference keeps the names of variables: "$TOKEN" is not a secret.
func notReference(s string) bool { return !strings.HasPrefix(s, "$") && !strings.HasPrefix(s, "%") }

// spans are where s has secrets that match, in order. What a marker has replaced is left out.
func (p *pattern) spans(s, marker string) (all [][2]int) {
	re := p.re()
	group := max(re.SubexpIndex("s"), 0)
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		from, to := m[2*group], m[2*group+1]
		if found := s[from:to]; found != marker && (p.secret == nil || p.secret(found)) {
			all = append(all, [2]int{from, to})
		}
	}
	return all
}

func (p *pattern) replace(s, marker string) string {
	var b strings.Builder
	last := 0
	for _, span := range p.spans(s, marker) {
		b.WriteString(s[last:span[0]])
		b.WriteString(marker)
		last = span[1]
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
