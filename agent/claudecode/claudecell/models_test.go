// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/isolation"
)

func TestToBedrockModelID_Cases(t *testing.T) {
	tests := []struct{ name, region, id string }{
		{"claude-opus-4-6", "", "us.anthropic.claude-opus-4-6-v1"},
		{"claude-opus-4-5-20251101", "", "us.anthropic.claude-opus-4-5-20251101-v1:0"},
		{"claude-sonnet-4-5-20250929", "", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{"claude-sonnet-4-20250514", "", "us.anthropic.claude-sonnet-4-20250514-v1:0"},
		{"claude-3-5-sonnet-20241022", "", "us.anthropic.claude-3-5-sonnet-20241022-v2:0"},
		{"claude-opus-5-5", "us-west-2", "us.anthropic.claude-opus-5-5"},
		{"claude-opus-4-6", "eu-central-1", "eu.anthropic.claude-opus-4-6-v1"},
		{"claude-opus-4-6", "ap-southeast-2", "apac.anthropic.claude-opus-4-6-v1"},
		{"claude-opus-4-6", "us-gov-west-1", "us-gov.anthropic.claude-opus-4-6-v1"},
		{"claude-opus-4-6", "mars-north-1", "us.anthropic.claude-opus-4-6-v1"},
	}
	for _, test := range tests {
		if got := claudecell.ToBedrockModelID(test.name, test.region); got != test.id {
			t.Errorf("ToBedrockModelID(%s, %q) = %s, want %s", test.name, test.region, got, test.id)
		}
		if got := claudecell.ToAnthropicModelName(test.id); got != test.name {
			t.Errorf("ToAnthropicModelName(%s) = %s, want %s", test.id, got, test.name)
		}
	}
}

func TestModelID_UnknownIsUnchanged(t *testing.T) {
	for _, name := range []string{
		"us.anthropic.claude-opus-4-6-v1", "anthropic.claude-opus-4-6-v1", "global.anthropic.claude-opus-4-6-v1",
		"claude-of-tomorrow", "opus", "", "arn:aws:bedrock:us-east-1:1:inference-profile/x",
	} {
		if got := claudecell.ToBedrockModelID(name, "eu-west-1"); got != name {
			t.Errorf("ToBedrockModelID(%q) = %q, want it unchanged", name, got)
		}
	}
	for _, id := range []string{"claude-opus-4-6", "us.anthropic.claude-of-tomorrow-v1", "us.", "", "mistral.large"} {
		if got := claudecell.ToAnthropicModelName(id); got != id {
			t.Errorf("ToAnthropicModelName(%q) = %q, want it unchanged", id, got)
		}
	}
}

func TestModelName_EveryPrefixIsRemoved(t *testing.T) {
	for _, prefix := range []string{"", "us.", "eu.", "apac.", "jp.", "au.", "global.", "us-gov."} {
		id := prefix + "anthropic.claude-sonnet-4-5-20250929-v1:0"
		if got := claudecell.ToAnthropicModelName(id); got != "claude-sonnet-4-5-20250929" {
			t.Errorf("ToAnthropicModelName(%s) = %s", id, got)
		}
	}
}

func TestSupportedModels_ReturnsACopy(t *testing.T) {
	models := claudecell.SupportedBedrockModels()
	if got := models[claudecell.DefaultModel]; got != claudecell.DefaultBedrockModel {
		t.Errorf("the default model has the id %q, want %q", got, claudecell.DefaultBedrockModel)
	}
	for name, id := range models {
		if claudecell.ToBedrockModelID(name, "") != id || claudecell.ToAnthropicModelName(id) != name {
			t.Errorf("%s and %s do not lead to each other", name, id)
		}
	}
	models[claudecell.DefaultModel] = "changed"
	if claudecell.SupportedBedrockModels()[claudecell.DefaultModel] == "changed" {
		t.Error("the table can be changed from outside")
	}
}

func TestDefaultModel_FollowsTheAuthentication(t *testing.T) {
	tests := []struct {
		name      string
		isolation isolation.Isolation
		want      string
	}{
		{"nothing", isolation.Isolation{Host: hostWith()}, "claude-opus-4-6"},
		{"a key", isolation.Isolation{Host: hostWith("ANTHROPIC_API_KEY=k")}, "claude-opus-4-6"},
		{"Bedrock", isolation.Isolation{Host: hostWith("CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=us-east-1")}, "us.anthropic.claude-opus-4-6-v1"},
		{"Bedrock in Europe", isolation.Isolation{Host: hostWith("CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-3")}, "eu.anthropic.claude-opus-4-6-v1"},
		{"an explicit key", isolation.Isolation{APIKey: "k", Host: hostWith("CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=us-east-1")}, "claude-opus-4-6"},
	}
	for _, test := range tests {
		if got := claudecell.ModelFor(&test.isolation); got != test.want {
			t.Errorf("%s: ModelFor = %s, want %s", test.name, got, test.want)
		}
	}
}
