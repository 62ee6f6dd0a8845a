// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
)

// simpleVariable puts the CLI into its bare mode, in which it takes hooks of the host and never calls
// them. It counts also when a settings file sets it, and while the CLI runs.
const simpleVariable = "CLAUDE_CODE_SIMPLE"

// RequireHooks ensures that the CLI calls the hooks of these options, for hooks that enforce a policy. It refuses options
// that keep the CLI from calling them, with an [OptionError] for each. It adds a setting that overrides the environment and
// the settings files, also if those change later. After an error the options are unchanged.
//
// It cannot override settings that an administrator made on the machine itself.
func (o *Options) RequireHooks() error {
	v := &validator{}
	for i, arg := range o.ExtraArgs {
		v.refuse(longFlag(arg) == "--bare", fmt.Sprintf("ExtraArgs[%d]", i), "in bare mode the CLI calls no hooks")
	}
	v.refuse(o.SettingsFile != "", "SettingsFile", "a setting must be added so that the CLI calls the hooks: read the file and pass Settings")
	v.refuse(disablesHooks(o.ManagedSettings), "ManagedSettings", "disableAllHooks contradicts the hooks of these options")
	v.refuse(disablesHooks(o.Settings), "Settings", "disableAllHooks contradicts the hooks of these options")
	settings, err := withoutBareMode(o.Settings)
	v.refuse(err != nil, "Settings", "%v", err)
	if len(v.errs) == 0 {
		o.Settings = settings
	}
	return errors.Join(v.errs...)
}

func disablesHooks(settings json.RawMessage) bool {
	var s struct {
		DisableAllHooks any `json:"disableAllHooks"`
	}
	return len(settings) > 0 && json.Unmarshal(settings, &s) == nil && s.DisableAllHooks == true
}

func withoutBareMode(settings json.RawMessage) (json.RawMessage, error) {
	all, env := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &all); err != nil || all == nil {
			return nil, errNotObject
		}
	}
	if raw, ok := all["env"]; ok {
		if err := json.Unmarshal(raw, &env); err != nil || env == nil {
			return nil, fmt.Errorf("env: %w", errNotObject)
		}
	}
	if value, ok := env[simpleVariable]; ok && !isOff(value) {
		return nil, fmt.Errorf("env: with %s the CLI calls no hooks", simpleVariable)
	}
	env[simpleVariable] = json.RawMessage(`"0"`)
	var err error
	if all["env"], err = plainjson.Marshal(env); err != nil {
		return nil, err
	}
	return plainjson.Marshal(all)
}

// isOff reports whether the CLI takes the value of a variable for false.
func isOff(value json.RawMessage) bool {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "0", "false", "no", "off":
		return true
	}
	return false
}
