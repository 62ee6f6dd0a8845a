// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/json"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A SettingsDocument is a settings file of the CLI, as far as a program has reason to write or read
// one: settings.json in the CLI's configuration folder. Keys without a field are not kept.
type SettingsDocument struct {
	// Env are variables for the CLI and its tools.
	Env map[string]string `json:"env,omitzero"`
	// APIKeyHelper is a command that prints a key.
	APIKeyHelper string `json:"apiKeyHelper,omitzero"`
	// Permissions are the rules of the tools.
	Permissions *SettingsPermissions `json:"permissions,omitzero"`
	// Sandbox is the CLI's own sandbox.
	Sandbox *Sandbox `json:"sandbox,omitzero"`
	// SkipWebFetchPreflight lets WebFetch do without asking Anthropic's service about the host first,
	// which a CLI behind a proxy cannot reach.
	SkipWebFetchPreflight bool `json:"skipWebFetchPreflight,omitzero"`
}

// SettingsPermissions are permission rules in a settings file: "Bash", "Read(//etc/**)".
type SettingsPermissions struct {
	Allow []string `json:"allow,omitzero"`
	Deny  []string `json:"deny,omitzero"`
	// AdditionalDirectories are folders that the file tools may use besides the working directory.
	AdditionalDirectories []string `json:"additionalDirectories,omitzero"`
	// BlockWritesOutside and BlockReadsOutside keep the file tools in those folders, in every
	// permission mode. CLIs before 2.1.325 do not know them.
	BlockWritesOutside bool `json:"blockWritesOutsideWorkingDirectories,omitzero"`
	BlockReadsOutside  bool `json:"blockReadsOutsideWorkingDirectories,omitzero"`
}

// Encode is the document as a file: sorted keys, two spaces, a last newline.
func (d *SettingsDocument) Encode() ([]byte, error) {
	raw, err := plainjson.Marshal(d)
	if err != nil {
		return nil, err
	}
	if d.Sandbox != nil {
		if raw, err = d.withSandbox(raw); err != nil {
			return nil, err
		}
	}
	if raw, err = plainjson.Sorted(raw); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// withSandbox adds the keys of Sandbox.Extra.
func (d *SettingsDocument) withSandbox(raw json.RawMessage) (json.RawMessage, error) {
	sandbox, err := d.Sandbox.object()
	if err != nil {
		return nil, err
	}
	all := make(map[string]any)
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	all["sandbox"] = sandbox
	return plainjson.Marshal(all)
}

// DecodeSettings reads a settings file. It must be a JSON object; like the CLI it leaves out values of an unexpected type.
func DecodeSettings(data []byte) (*SettingsDocument, error) {
	parts := make(map[string]json.RawMessage)
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, err
	}
	d := &SettingsDocument{}
	for key, field := range map[string]any{
		"env": &d.Env, "apiKeyHelper": &d.APIKeyHelper, "permissions": &d.Permissions,
		"sandbox": &d.Sandbox, "skipWebFetchPreflight": &d.SkipWebFetchPreflight,
	} {
		if part, ok := parts[key]; ok {
			_ = json.Unmarshal(part, field) // what fits is filled in
		}
	}
	return d, nil
}
