// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// FromSettings converts settings of the CLI's own sandbox to those of package isolation. Missing settings have
// its defaults: the sandbox is on. Settings that only the CLI's own sandbox has are refused.
func FromSettings(s claude.Sandbox) (*isolation.Sandbox, *isolation.NetworkPolicy, error) {
	sandbox := &isolation.Sandbox{
		Disabled:                 !value(s.Enabled, true),
		AskBeforeBash:            !value(s.AutoAllowBashIfSandboxed, true),
		AllowUnsandboxedCommands: value(s.AllowUnsandboxedCommands, false),
		ExcludedCommands:         s.ExcludedCommands,
		WeakerNested:             value(s.EnableWeakerNestedSandbox, false),
	}
	for _, ignored := range s.IgnoreViolations[everyCommand] {
		if strings.ContainsAny(ignored, `/\`) {
			sandbox.IgnoreFileViolations = append(sandbox.IgnoreFileViolations, ignored)
		} else {
			sandbox.IgnoreNetworkViolations = append(sandbox.IgnoreNetworkViolations, ignored)
		}
	}
	if files := s.Filesystem; files != nil {
		sandbox.WritablePaths, sandbox.ReadablePaths = files.AllowWrite, files.AllowRead
	}
	network := &isolation.NetworkPolicy{}
	if n := s.Network; n != nil {
		*network = isolation.NetworkPolicy{
			AllowedDomains: n.AllowedDomains, UnixSockets: n.AllowUnixSockets,
			AllowAllUnixSockets: value(n.AllowAllUnixSockets, false), AllowLocalBinding: value(n.AllowLocalBinding, false),
			HTTPProxyPort: value(n.HTTPProxyPort, 0), SOCKSProxyPort: value(n.SOCKSProxyPort, 0),
		}
	}
	if field := leftOver(s); field != "" {
		return nil, nil, &isolation.RefusedError{Field: "Sandbox settings", Reason: field + " has a meaning for the CLI's own sandbox alone", Next: "leave it out, or run at LevelSandbox with claude.Options.Sandbox"}
	}
	return sandbox, network, nil
}

func value[T any](pointer *T, byDefault T) T {
	if pointer == nil {
		return byDefault
	}
	return *pointer
}

// leftOver is the name of a setting that FromSettings cannot map, or "".
func leftOver(s claude.Sandbox) string {
	s.Enabled, s.AutoAllowBashIfSandboxed, s.AllowUnsandboxedCommands, s.ExcludedCommands = nil, nil, nil, nil
	s.EnableWeakerNestedSandbox = nil
	if _, all := s.IgnoreViolations[everyCommand]; all && len(s.IgnoreViolations) == 1 {
		s.IgnoreViolations = nil
	}
	s.FailIfUnavailable = nil // a run never starts below its required isolation level
	var files claude.SandboxFilesystem
	if s.Filesystem != nil {
		files = *s.Filesystem
		files.AllowRead, files.AllowWrite = nil, nil
	}
	var network claude.SandboxNetwork
	if s.Network != nil {
		network = *s.Network
		network.AllowedDomains, network.AllowUnixSockets, network.AllowAllUnixSockets, network.AllowLocalBinding = nil, nil, nil, nil
		network.HTTPProxyPort, network.SOCKSProxyPort = nil, nil
		network.StrictAllowlist = nil // the list is always strict
	}
	s.Filesystem, s.Network = nil, nil
	return cmp.Or(setField(s), setField(files), setField(network))
}

// setField is the name of a field that is not zero.
func setField(v any) string {
	fields := reflect.ValueOf(v)
	for i := range fields.NumField() {
		if !fields.Field(i).IsZero() {
			return fields.Type().Field(i).Name
		}
	}
	return ""
}
