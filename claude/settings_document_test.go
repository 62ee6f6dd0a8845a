// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
)

func TestSettingsDocument_IsWrittenSortedAndIndented(t *testing.T) {
	doc := &claude.SettingsDocument{
		SkipWebFetchPreflight: true,
		Sandbox: &claude.Sandbox{
			Enabled: new(false), Network: &claude.SandboxNetwork{AllowedDomains: []string{}},
			Extra: map[string]any{"futureKey": "a<b"},
		},
		Permissions: &claude.SettingsPermissions{Allow: []string{"Bash"}, BlockReadsOutside: true},
	}
	got, err := doc.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "permissions": {
    "allow": [
      "Bash"
    ],
    "blockReadsOutsideWorkingDirectories": true
  },
  "sandbox": {
    "enabled": false,
    "futureKey": "a<b",
    "network": {
      "allowedDomains": []
    }
  },
  "skipWebFetchPreflight": true
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("Encode (-want +got):\n%s", diff)
	}
}

func TestSettingsDocument_FieldsOfAWrongTypeAreSkipped(t *testing.T) {
	tests := []struct {
		name, text string
		want       *claude.SettingsDocument
		wantError  bool
	}{
		{"all of it", `{"env":{"A":"1"},"apiKeyHelper":"/bin/key"}`, &claude.SettingsDocument{Env: map[string]string{"A": "1"}, APIKeyHelper: "/bin/key"}, false},
		{"a number among the variables", `{"env":{"A":"1","B":2},"apiKeyHelper":"/bin/key"}`, &claude.SettingsDocument{Env: map[string]string{"A": "1", "B": ""}, APIKeyHelper: "/bin/key"}, false},
		{"a wrong type", `{"env":[1],"apiKeyHelper":"/bin/key"}`, &claude.SettingsDocument{APIKeyHelper: "/bin/key"}, false},
		{"unknown keys", `{"model":"opus"}`, &claude.SettingsDocument{}, false},
		{"no object", `[]`, nil, true},
		{"cut off", `{"env":`, nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := claude.DecodeSettings([]byte(test.text))
			if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.wantError {
				t.Errorf("DecodeSettings = %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
