// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/isolation"
)

func TestFactory_FailsBeforeTheRun(t *testing.T) {
	key := []string{"ANTHROPIC_API_KEY=" + planted}
	bedrock := []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-1"}
	both := append(key, bedrock...)
	factories := map[string]func(isolation.Isolation) (*isolation.Isolation, error){
		"InheritHostAuth": claudecell.InheritHostAuth,
		"WithAPIKey":      func(i isolation.Isolation) (*isolation.Isolation, error) { return claudecell.WithAPIKey(planted, i) },
		"WithAPIKey none": func(i isolation.Isolation) (*isolation.Isolation, error) { return claudecell.WithAPIKey("", i) },
		"ForAnthropicAPI": claudecell.ForAnthropicAPI,
		"ForBedrock":      func(i isolation.Isolation) (*isolation.Isolation, error) { return claudecell.ForBedrock("/mnt/aws", i) },
	}
	tests := []struct {
		factory string
		env     []string
		want    isolation.Mode // "" means an error
	}{
		{"InheritHostAuth", nil, ""},
		{"InheritHostAuth", key, claudecell.ModeAPIKey},
		{"InheritHostAuth", bedrock, claudecell.ModeBedrock},
		{"InheritHostAuth", both, claudecell.ModeBedrock},
		{"WithAPIKey", nil, claudecell.ModeExplicitKey},
		{"WithAPIKey", both, claudecell.ModeExplicitKey},
		{"WithAPIKey none", both, ""},
		{"ForAnthropicAPI", nil, ""},
		{"ForAnthropicAPI", bedrock, ""},
		{"ForAnthropicAPI", both, claudecell.ModeAPIKey},
		{"ForBedrock", key, ""},
		{"ForBedrock", both, claudecell.ModeBedrock},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.factory, len(test.env)), func(t *testing.T) {
			base := isolation.Isolation{Host: hostWith(test.env...), Network: claudecell.APIOnly(), IncludeHostEnv: true}
			got, err := factories[test.factory](base)
			if test.want == "" {
				checkAuthError(t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			found, err := claudecell.Authenticate(got)
			if err != nil || found.Mode != test.want {
				t.Errorf("got %v, %v, want %s", found, err, test.want)
			}
			if got.Network == nil || !got.IncludeHostEnv {
				t.Error("the rest of the isolation was lost")
			}
			if test.factory == "ForBedrock" && got.AWSConfigPath != "/mnt/aws" {
				t.Errorf("AWSConfigPath = %q", got.AWSConfigPath)
			}
		})
	}
}

func TestFactory_ErrorNamesBothCredentials(t *testing.T) {
	_, err := claudecell.InheritHostAuth(isolation.Isolation{Host: hostWith()})
	checkAuthError(t, err, "set ANTHROPIC_API_KEY", "or set CLAUDE_CODE_USE_BEDROCK=1 and AWS_REGION")
}

func TestFactory_RefusesVariablesThatIsolationDependsOn(t *testing.T) {
	_, err := claudecell.WithAPIKey("k", isolation.Isolation{Host: hostWith(), Env: map[string]string{"HOME": "/root"}})
	if _, ok := errors.AsType[*isolation.RefusedError](err); !ok {
		t.Errorf("got %v, want a RefusedError", err)
	}
}

func TestRecipe_Isolation(t *testing.T) {
	production, err := claudecell.Production(planted)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name      string
		got, want *isolation.Isolation
		level     isolation.Level
	}{
		{"production", production, &isolation.Isolation{APIKey: planted, Network: claudecell.APIOnly(), Sandbox: &isolation.Sandbox{}}, cell},
		{"autonomous", isolation.Autonomous(), &isolation.Isolation{Network: isolation.NoNetwork(), Sandbox: &isolation.Sandbox{}}, cell},
		{"development", isolation.Development(), &isolation.Isolation{
			Network: &isolation.NetworkPolicy{AllowedDomains: []string{"*"}, AllowLocalhost: true, AllowLocalBinding: true},
			Sandbox: &isolation.Sandbox{Disabled: true}, IncludeHostEnv: true, Weakest: host,
		}, host},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, test.got, cmpopts.IgnoreFields(isolation.Isolation{}, "Populate", "Host")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if err := test.got.Validate(test.level, "linux"); err != nil {
			t.Errorf("%s at its level: %v", test.name, err)
		}
	}
	if err := isolation.Autonomous().Validate(landlock, "linux"); err == nil {
		t.Error("an autonomous agent runs without a cell")
	}
	if _, err := claudecell.Production(""); err == nil {
		t.Error("production runs without a key")
	}
}

func TestAPIOnly_ReachesTheAPI(t *testing.T) {
	if diff := cmp.Diff(isolation.NetworkPolicy{AllowedDomains: []string{"api.anthropic.com"}}, *claudecell.APIOnly()); diff != "" {
		t.Errorf("APIOnly (-want +got):\n%s", diff)
	}
}
