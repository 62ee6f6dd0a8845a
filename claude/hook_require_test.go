// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequireHooks_AddsASetting(t *testing.T) {
	for _, tt := range []struct{ name, settings, want string }{
		{"to none", ``, `{"env":{"CLAUDE_CODE_SIMPLE":"0"}}`},
		{"to others", `{"model":"x","n":12345678901234567890}`, `{"env":{"CLAUDE_CODE_SIMPLE":"0"},"model":"x","n":12345678901234567890}`},
		{"beside other variables", `{"env":{"A":"<b>"}}`, `{"env":{"A":"<b>","CLAUDE_CODE_SIMPLE":"0"}}`},
		{"again", `{"env":{"CLAUDE_CODE_SIMPLE":"false"}}`, `{"env":{"CLAUDE_CODE_SIMPLE":"0"}}`},
		{"hooks that are not disabled", `{"disableAllHooks":false}`, `{"disableAllHooks":false,"env":{"CLAUDE_CODE_SIMPLE":"0"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Settings: json.RawMessage(tt.settings)}
			if err := o.RequireHooks(); err != nil || string(o.Settings) != tt.want {
				t.Errorf("settings %s, %v; want %s", o.Settings, err, tt.want)
			}
			if err := o.Validate(); err != nil {
				t.Errorf("the options cannot be used: %v", err)
			}
		})
	}
}

func TestRequireHooks_RefusesOptionsThatDisableHooks(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts Options
		want string
	}{
		{"bare mode", Options{ExtraArgs: []string{"--bare"}}, "ExtraArgs[0]"},
		{"settings in a file", Options{SettingsFile: "x.json"}, "SettingsFile"},
		{"no hooks", Options{Settings: json.RawMessage(`{"disableAllHooks":true}`)}, "Settings"},
		{"no hooks, managed", Options{ManagedSettings: json.RawMessage(`{"disableAllHooks":true}`)}, "ManagedSettings"},
		{"bare mode by a variable", Options{Settings: json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`)}, "Settings"},
		{"a variable of another kind", Options{Settings: json.RawMessage(`{"env":{"CLAUDE_CODE_SIMPLE":true}}`)}, "Settings"},
		{"invalid variables", Options{Settings: json.RawMessage(`{"env":[]}`)}, "Settings"},
		{"invalid settings", Options{Settings: json.RawMessage(`null`)}, "Settings"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := string(tt.opts.Settings)
			err := tt.opts.RequireHooks()
			e, ok := errors.AsType[*OptionError](err)
			if !ok || e.Option != tt.want {
				t.Errorf("got %v, want %s refused", err, tt.want)
			}
			if diff := cmp.Diff(before, string(tt.opts.Settings)); diff != "" {
				t.Errorf("the settings were changed (-before +after):\n%s", diff)
			}
		})
	}
}
