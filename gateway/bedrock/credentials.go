// SPDX-License-Identifier: Apache-2.0

package bedrock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-agents/drover/advice"
)

const (
	// findTimeout is how long finding credentials may take; a host that is not an instance lets the
	// question for an instance profile time out.
	findTimeout = 10 * time.Second
	// instanceTimeout bounds that question, which is answered on the same machine.
	instanceTimeout = 2 * time.Second
	renewBefore     = time.Minute
)

// ErrNoCredentials is returned by [New] when no source has any.
var ErrNoCredentials = errors.New("bedrock: no AWS credentials")

const howToGetCredentials = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK; with SSO, log in by: aws sso login"

func (u *Upstream) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	provider, err := u.find(ctx)
	if err != nil {
		return err
	}
	cache, ok := provider.(*aws.CredentialsCache)
	if !ok {
		cache = aws.NewCredentialsCache(provider, renewEarly)
	}
	if _, err := cache.Retrieve(ctx); err != nil {
		return u.opts.explain(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.credentials = cache
	return nil
}

func renewEarly(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore }

// explain adds advice to the error of a source that should have had credentials.
func (o Options) explain(err error) error {
	if _, ok := errors.AsType[*ssocreds.InvalidTokenError](err); ok || strings.Contains(err.Error(), "SSO") {
		login := "aws sso login"
		if name := o.profileName(); name != defaultProfile {
			login += " --profile " + name
		}
		return advice.Wrap(fmt.Errorf("bedrock: the SSO login is missing or has expired: %w", err), "%s", login)
	}
	return advice.Wrap(fmt.Errorf("%w: %w", ErrNoCredentials, err), howToGetCredentials)
}

// find goes through the sources in order and takes the first that is configured.
func (u *Upstream) find(ctx context.Context) (aws.CredentialsProvider, error) {
	sources := []func(context.Context) (aws.CredentialsProvider, error){
		u.fromEnvironment, u.fromWebIdentity, u.fromProfile, u.fromContainer, u.fromInstance,
	}
	if u.opts.Profile != "" {
		sources = sources[2:3]
	}
	for _, source := range sources {
		if provider, err := source(ctx); provider != nil || err != nil {
			return provider, err
		}
	}
	return nil, advice.Wrap(ErrNoCredentials, howToGetCredentials)
}

func (u *Upstream) fromEnvironment(context.Context) (aws.CredentialsProvider, error) {
	creds := aws.Credentials{
		AccessKeyID: u.opts.env("AWS_ACCESS_KEY_ID"), SecretAccessKey: u.opts.env("AWS_SECRET_ACCESS_KEY"),
		SessionToken: u.opts.env("AWS_SESSION_TOKEN"), Source: "environment",
	}
	switch {
	case creds.AccessKeyID == "" && creds.SecretAccessKey == "":
		return nil, nil
	case creds.AccessKeyID == "" || creds.SecretAccessKey == "":
		return nil, advice.Wrap(fmt.Errorf("%w: of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set", ErrNoCredentials),
			"set both or none")
	}
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return creds, nil }), nil
}

// fromWebIdentity exchanges a token, which may be replaced while a run goes on, for credentials.
func (u *Upstream) fromWebIdentity(context.Context) (aws.CredentialsProvider, error) {
	token, role := u.opts.env("AWS_WEB_IDENTITY_TOKEN_FILE"), u.opts.env("AWS_ROLE_ARN")
	switch {
	case token == "":
		return nil, nil
	case role == "":
		return nil, advice.Wrap(fmt.Errorf("%w: AWS_WEB_IDENTITY_TOKEN_FILE is set, AWS_ROLE_ARN is not", ErrNoCredentials),
			"set the role to assume")
	}
	client := sts.New(sts.Options{Region: u.region, HTTPClient: u.sdkClient()}, func(o *sts.Options) {
		if at := u.opts.env("AWS_ENDPOINT_URL_STS"); at != "" {
			o.BaseEndpoint = &at
		}
	})
	return stscreds.NewWebIdentityRoleProvider(client, role, stscreds.IdentityTokenFile(token), func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName = u.opts.env("AWS_ROLE_SESSION_NAME")
	}), nil
}

// sdkClient is a client for the SDK, which takes none but its own kind.
func (u *Upstream) sdkClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.DisableKeepAlives = true
		if ours, ok := u.transport.(*http.Transport); ok {
			t.Proxy, t.DialContext, t.TLSClientConfig = ours.Proxy, ours.DialContext, ours.TLSClientConfig.Clone()
		}
	})
}

// direct reaches what answers on this machine, where no proxy may stand between.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: findTimeout}

const containerHost = "http://169.254.170.2"

// fromContainer asks the endpoint that a container has for its role.
func (u *Upstream) fromContainer(context.Context) (aws.CredentialsProvider, error) {
	address := u.opts.env("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := u.opts.env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		address = containerHost + path
	}
	if address == "" {
		return nil, nil
	}
	if err := checkContainer(address); err != nil {
		return nil, err
	}
	return endpointcreds.New(address, func(o *endpointcreds.Options) {
		o.HTTPClient = direct
		o.AuthorizationToken = u.opts.env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
		if file := u.opts.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
			o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
				token, err := os.ReadFile(file)
				return strings.TrimSpace(string(token)), err
			})
		}
	}), nil
}

// checkContainer refuses to send a token over a network without encryption.
func checkContainer(address string) error {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "https" {
		return nil
	}
	if err == nil {
		switch ip := net.ParseIP(u.Hostname()); {
		case u.Hostname() == "localhost", ip.IsLoopback(), ip.IsLinkLocalUnicast(), ip.Equal(net.ParseIP("fd00:ec2::23")):
			return nil
		}
	}
	return advice.Wrap(fmt.Errorf("%w: AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor of this machine", ErrNoCredentials),
		"correct it")
}

// fromInstance asks for the instance profile. It is the last source, and most machines have none.
func (u *Upstream) fromInstance(ctx context.Context) (aws.CredentialsProvider, error) {
	if strings.EqualFold(u.opts.env("AWS_EC2_METADATA_DISABLED"), "true") {
		return nil, nil
	}
	endpoint := u.opts.env("AWS_EC2_METADATA_SERVICE_ENDPOINT")
	if endpoint == "" {
		endpoint = "http://169.254.169.254"
	}
	provider := ec2rolecreds.New(func(o *ec2rolecreds.Options) {
		o.Client = imds.New(imds.Options{Endpoint: endpoint, ClientEnableState: imds.ClientEnabled, HTTPClient: direct})
	})
	ctx, cancel := context.WithTimeout(ctx, instanceTimeout)
	defer cancel()
	if _, err := provider.Retrieve(ctx); err != nil {
		return nil, advice.Wrap(fmt.Errorf("%w, and no instance profile", ErrNoCredentials), howToGetCredentials)
	}
	return provider, nil
}
