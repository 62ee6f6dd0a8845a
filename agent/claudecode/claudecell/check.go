// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// checkOptions refuses options that would bypass the isolation.
func checkOptions(level isolation.Level, o *claude.Options) error {
	var errs []error
	refuse := func(field, why, next string) {
		errs = append(errs, advice.Wrap(fmt.Errorf("isolation: Options.%s %s", field, why), "%s", next))
	}
	if level != isolation.LevelHost {
		if o.User != "" {
			refuse("User", "is chosen by the "+level.String(), "leave it out")
		}
		for _, field := range sandboxSettings(o) {
			refuse(field, "has settings of the CLI's own sandbox, which would replace those of the cell", "use isolation.Sandbox and isolation.NetworkPolicy")
		}
		if o.Sandbox != nil {
			refuse("Sandbox", "is the CLI's own, which breaks inside of a cell", "use isolation.Sandbox, whose field Nested asks for it")
		}
	}
	for _, source := range []string{"project", "local"} {
		if slices.Contains(o.SettingSources, source) {
			refuse("SettingSources", "has "+source+", which the agent can write", "leave it out; put settings into Options.Settings")
		}
	}
	return errors.Join(errs...)
}

// sandboxSettings are the fields of options with settings of the CLI's own sandbox. The CLI itself reports unreadable ones.
func sandboxSettings(o *claude.Options) (fields []string) {
	file := func(path string) []byte {
		text, _ := os.ReadFile(path)
		return text
	}
	settings := bytes.TrimSpace(o.Settings)
	if !bytes.HasPrefix(settings, []byte("{")) {
		settings = file(string(settings)) // it may be a path, too
	}
	for _, given := range []struct {
		field string
		text  []byte
	}{{"Settings", settings}, {"SettingsFile", file(o.SettingsFile)}, {"ManagedSettings", o.ManagedSettings}} {
		if read, err := claude.DecodeSettings(given.text); err == nil && read.Sandbox != nil {
			fields = append(fields, given.field)
		}
	}
	return fields
}
