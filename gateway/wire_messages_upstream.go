// SPDX-License-Identifier: Apache-2.0

package gateway

import "net/url"

// Anthropic is Anthropic's own API.
func Anthropic(c Credential) Upstream {
	base, err := url.Parse("https://api.anthropic.com")
	if err != nil {
		panic(err) // a constant
	}
	return newEndpoint("anthropic", WireAnthropic, base, c)
}

// Endpoint is an endpoint compatible with Anthropic's API, such as the caller's ANTHROPIC_BASE_URL; see [NewEndpoint].
func Endpoint(baseURL string, c Credential) (Upstream, error) {
	return NewEndpoint(WireAnthropic, baseURL, c)
}

// OAuthToken is a bearer token of a Claude account, such as CLAUDE_CODE_OAUTH_TOKEN.
func OAuthToken(token string) Credential {
	return Credential{kind: "OAuth token", secret: token, listed: [2]string{"Anthropic-Beta", "oauth-2025-04-20"}}
}
