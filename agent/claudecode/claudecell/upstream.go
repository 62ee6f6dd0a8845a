// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

// OpenUpstream is where model calls go: what was given, or what the host pays for. It is for who wants to
// put something around it, such as a recording, and back into the field Upstream.
func OpenUpstream(ctx context.Context, i *isolation.Isolation) (gateway.Upstream, error) {
	if i.Upstream != nil {
		return i.Upstream, nil
	}
	found, err := Authenticate(i)
	if err != nil {
		return nil, err
	}
	return found.upstream(ctx, i)
}

// scriptedKey is the key in requests to a scripted model. It gives no access.
const scriptedKey = "sk-ant-script-opens-nothing"

// Scripted returns the upstream for a scripted model on this machine, by the URL of its script.Server. Requests have a made-up
// key: no credential and no endpoint of the environment is used. An address of another machine is an error.
func Scripted(address string) (gateway.Upstream, error) {
	if to, err := url.Parse(address); err != nil || !onLoopback(to.Hostname()) {
		return nil, advice.Wrap(fmt.Errorf("claudecell: the scripted model %q is not on this machine", address), "give the URL of a script.Server")
	}
	return gateway.Endpoint(address, gateway.APIKey(scriptedKey))
}

func onLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func (f *Finding) upstream(ctx context.Context, i *isolation.Isolation) (gateway.Upstream, error) {
	if f.Mode == ModeBedrock {
		if err := checkAWSConfigPath(i); err != nil {
			return nil, err
		}
		upstream, err := gateway.OpenUpstream(ctx, "bedrock", gateway.UpstreamConfig{
			Region: f.Bedrock.Region, ConfigDir: i.AWSConfigPath, // the profile is AWS's own to find: a key comes before it
			Lookup: f.lookup, BaseURL: f.BaseURL,
		})
		if err != nil && ctx.Err() == nil {
			return nil, &isolation.AuthError{Reason: err.Error(), Fixes: []string{advice.Of(err)}, Err: err}
		}
		return upstream, err
	}
	credential := f.gatewayCredential()
	if f.BaseURL == "" {
		return gateway.Anthropic(credential), nil
	}
	return gateway.Endpoint(f.BaseURL, credential)
}

func (f *Finding) gatewayCredential() gateway.Credential {
	switch f.Mode {
	case ModeAuthToken:
		return gateway.BearerToken(f.credential.secret)
	case ModeOAuthToken, ModeStoredLogin:
		return gateway.OAuthToken(f.credential.secret)
	case ModeKeyHelper:
		return gateway.KeyCommand(f.credential.command)
	}
	return gateway.APIKey(f.credential.secret)
}
