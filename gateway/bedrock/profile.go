// SPDX-License-Identifier: Apache-2.0

package bedrock

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"

	"github.com/drover-agents/drover/advice"
)

const defaultProfile = "default"

func (o Options) env(name string) string {
	value, _ := o.Lookup(name)
	return value
}

func (o Options) profileName() string {
	return cmp.Or(o.Profile, o.env("AWS_PROFILE"), defaultProfile)
}

// configDir is the folder of the AWS tools; empty if it is not known.
func (o Options) configDir() string {
	home := cmp.Or(o.env("HOME"), o.env("USERPROFILE"))
	switch {
	case o.ConfigDir != "":
		return o.ConfigDir
	case home != "":
		return filepath.Join(home, ".aws")
	}
	return ""
}

// files lists the files to read, never nil: for the SDK that would mean those of the real home.
func (o Options) files(name, variable string) []string {
	if named := o.env(variable); named != "" && o.ConfigDir == "" {
		return []string{named}
	}
	if dir := o.configDir(); dir != "" {
		return []string{filepath.Join(dir, name)}
	}
	return []string{}
}

func (o Options) configFiles() []string { return o.files("config", "AWS_CONFIG_FILE") }

func (o Options) credentialsFiles() []string {
	return o.files("credentials", "AWS_SHARED_CREDENTIALS_FILE")
}

// loadProfile reads the profile. Only one that was named must be there.
func (o Options) loadProfile(ctx context.Context) (config.SharedConfig, error) {
	name := o.profileName()
	profile, err := config.LoadSharedConfigProfile(ctx, name, func(l *config.LoadSharedConfigOptions) {
		l.ConfigFiles, l.CredentialsFiles = o.configFiles(), o.credentialsFiles()
	})
	if missing, ok := errors.AsType[config.SharedConfigProfileNotExistError](err); ok && missing.Profile == name {
		if name == defaultProfile && o.Profile == "" {
			return config.SharedConfig{}, nil
		}
		return config.SharedConfig{}, advice.Wrap(fmt.Errorf("%w: profile %q is not in %s", ErrNoCredentials, name, strings.Join(append(o.configFiles(), o.credentialsFiles()...), " or ")),
			"correct AWS_PROFILE, or add it by: aws configure --profile %s", name)
	}
	if err != nil {
		return config.SharedConfig{}, advice.Wrap(fmt.Errorf("bedrock: reading profile %q: %w", name, err), "correct the file")
	}
	return profile, nil
}

// fromProfile lets the SDK follow a profile that has credentials.
func (u *Upstream) fromProfile(ctx context.Context) (aws.CredentialsProvider, error) {
	o := u.opts
	profile, err := o.loadProfile(ctx)
	if err != nil {
		return nil, err
	}
	if !hasCredentials(profile) {
		if o.Profile != "" {
			return nil, advice.Wrap(fmt.Errorf("%w: profile %q has none", ErrNoCredentials, o.Profile),
				"add them by: aws configure --profile %s", o.Profile)
		}
		return nil, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithSharedConfigProfile(o.profileName()),
		config.WithSharedConfigFiles(o.configFiles()),
		config.WithSharedCredentialsFiles(o.credentialsFiles()),
		config.WithRegion(u.region),
		config.WithHTTPClient(u.sdkClient()),
		config.WithCredentialsCacheOptions(renewEarly),
		config.WithSSOProviderOptions(func(s *ssocreds.Options) { s.CachedTokenFilepath = o.loginFile(profile.SSOStartURL) }),
		config.WithSSOTokenProviderOptions(func(s *ssocreds.SSOTokenProviderOptions) {
			s.CachedTokenFilepath = o.loginFile(profile.SSOSessionName)
		}),
	)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("bedrock: profile %q: %w", o.profileName(), err), "correct the profile")
	}
	return cfg.Credentials, nil
}

// hasCredentials reports whether a profile has a source of credentials; else the SDK would use the process environment.
func hasCredentials(p config.SharedConfig) bool {
	return p.Credentials.HasKeys() || p.Source != nil || p.CredentialSource != "" || p.WebIdentityTokenFile != "" ||
		p.SSOSessionName != "" || p.SSOStartURL != "" || p.LoginSession != "" || p.CredentialProcess != ""
}

// loginFile is where the AWS tools keep an SSO login.
func (o Options) loginFile(key string) string {
	name := sha1.Sum([]byte(key)) // their choice; it protects nothing
	return filepath.Join(o.configDir(), "sso", "cache", hex.EncodeToString(name[:])+".json")
}
