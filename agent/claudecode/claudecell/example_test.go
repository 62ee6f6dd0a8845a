// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// plantedHost stands for the machine in the examples; leave Host out to mean this one.
func plantedHost(variables ...string) isolation.Host {
	return isolation.Host{Environ: func() []string { return variables }, Home: "/home/of/nobody/here"}
}

func ExampleInheritHostAuth() {
	_, err := claudecell.InheritHostAuth(isolation.Isolation{Host: plantedHost()})
	if problem, ok := errors.AsType[*isolation.AuthError](err); ok {
		fmt.Println(problem.Reason)
		for _, fix := range problem.Fixes {
			fmt.Println("-", fix)
		}
	}
	// Output:
	// the host has no authentication for the model
	// - set ANTHROPIC_API_KEY, or give a key with claudecell.WithAPIKey
	// - or set CLAUDE_CODE_USE_BEDROCK=1 and AWS_REGION, with credentials that AWS finds
	// - or set Auth.UseStoredLogin to use the login of the host's claude
}

func ExampleWithAPIKey() {
	i, err := claudecell.WithAPIKey("sk-ant-of-a-vault", isolation.Isolation{
		Network: isolation.WithDomains("docs.example.com", "*.example.com"),
		Sandbox: &isolation.Sandbox{ReadablePaths: []string{"../shared"}},
		Host:    plantedHost("CLAUDE_CODE_USE_BEDROCK=1"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := claudecell.Authenticate(i)
	fmt.Println(found.Mode, found.Bedrock == nil, err)
	fmt.Println(i.Sandbox.Readable("/work/project"))
	// Output:
	// explicit_api_key true <nil>
	// [/work/shared]
}

func ExampleForAnthropicAPI() {
	i, err := claudecell.ForAnthropicAPI(isolation.Isolation{Host: plantedHost("ANTHROPIC_API_KEY=sk-ant-of-the-shell")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(claudecell.ModelFor(i))
	// Output: claude-opus-4-6
}

func ExampleForBedrock() {
	machine := plantedHost("CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-1", "AWS_PROFILE=agents")
	i, err := claudecell.ForBedrock("/mnt/aws", isolation.Isolation{Host: machine})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := claudecell.Authenticate(i)
	fmt.Println(found.Bedrock.Region, found.Bedrock.Profile, err)
	fmt.Println(claudecell.ModelFor(i))
	// Output:
	// eu-west-1 agents <nil>
	// eu.anthropic.claude-opus-4-6-v1
}

func ExampleProduction() {
	i, err := claudecell.Production("sk-ant-of-a-vault")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(i.Weakest, i.Network.AllowedDomains, i.IncludeHostEnv)
	// Output: cell [api.anthropic.com] false
}

func ExampleNewHome() {
	home, err := claudecell.NewHome("", claudecell.HomeOptions{Network: isolation.NoNetwork()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer home.Close()
	fmt.Println(claudecell.SkillsDir(home) == home.ConfigDir()+"/skills")
	// Output: true
}

// Existing settings of the CLI's own sandbox can be kept: a cell enforces the same.
func ExampleFromSettings() {
	var settings struct {
		Sandbox claude.Sandbox `json:"sandbox"`
	}
	if err := json.Unmarshal([]byte(`{"sandbox": {"enabled": true, "network": {"allowedDomains": []}}}`), &settings); err != nil {
		panic(err)
	}
	sandbox, network, err := claudecell.FromSettings(settings.Sandbox)
	fmt.Println(!sandbox.Disabled, network.AllowedDomains, err)
	// Output: true [] <nil>
}
