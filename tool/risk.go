// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Risk is a set of statements about what a tool may do. It is also an [Option].
type Risk uint8

// The risks. The zero value states nothing.
const (
	// ReadOnly is for tools that change nothing.
	ReadOnly Risk = 1 << iota
	// Mutates is for tools that change something. It beats ReadOnly.
	Mutates
	// Dangerous is for tools that can do lasting harm, whether or not they mutate.
	Dangerous
)

// Has reports whether all risks of q are in r.
func (r Risk) Has(q Risk) bool { return r&q == q }

// Names are the names of the risks: "readOnly", "mutates", "dangerous"; nil without risks.
func (r Risk) Names() []string { return flagNames(r, riskNames) }

// String gives "mutates, dangerous".
func (r Risk) String() string {
	return joinFlags(r.Names())
}

// A Capability is a set of things that a tool needs to be permitted. It is also an [Option].
type Capability uint8

// The capabilities. The zero value needs none.
const (
	FileWrite Capability = 1 << iota
	ShellExecute
	NetworkAccess
)

// Has reports whether all capabilities of q are in c.
func (c Capability) Has(q Capability) bool { return c&q == q }

// Names are the names of the capabilities: "fileWrite", "shellExecute", "networkAccess"; nil without capabilities.
func (c Capability) Names() []string { return flagNames(c, capabilityNames) }

// String gives "fileWrite, networkAccess".
func (c Capability) String() string {
	return joinFlags(c.Names())
}

// The names of the flags, from the lowest bit on.
var (
	riskNames       = []string{"readOnly", "mutates", "dangerous"}
	capabilityNames = []string{"fileWrite", "shellExecute", "networkAccess"}
)

// flagNames gives those of the names whose flags are set; nil if none is.
func flagNames[F ~uint8](set F, names []string) []string {
	var out []string
	for i, name := range names {
		if set&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

func joinFlags(names []string) string {
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// The keys of Metadata and the tags for risks and capabilities.
const (
	metaMutates      = "mutates"
	metaReadOnly     = "readOnly"
	metaDangerous    = "dangerous"
	metaCapabilities = "capabilities" // a list of names as Capability.String gives them

	tagMutating       = "mutating"
	tagReadOnly       = "readonly"
	tagReadOnlyDashed = "read-only" // understood, never written
	tagDangerous      = "dangerous"
	tagFiles          = "file-write"
	tagShell          = "shell-execute"
	tagNetwork        = "network-access"
)

// Risks are the risks of the tool, from all its declarations, in this order: Mutates as an option or in the metadata makes
// it mutating; otherwise ReadOnly there makes it read-only, whatever the tags say; otherwise the tag "mutating" makes it
// mutating, and the tag "readonly" read-only. It is dangerous if an option, the metadata or a tag declares it. A tool
// without declarations has no risk.
func (t *Tool) Risks() Risk {
	var r Risk
	switch {
	case t.Risk.Has(Mutates) || t.Metadata[metaMutates] == true:
		r = Mutates
	case t.Risk.Has(ReadOnly) || t.Metadata[metaReadOnly] == true:
		r = ReadOnly
	case t.HasTag(tagMutating):
		r = Mutates
	case t.HasTag(tagReadOnly) || t.HasTag(tagReadOnlyDashed):
		r = ReadOnly
	}
	if t.Risk.Has(Dangerous) || t.Metadata[metaDangerous] == true || t.HasTag(tagDangerous) {
		r |= Dangerous
	}
	return r
}

// SetRisk makes [Tool.Risks] exactly this: Risk, the tags and the metadata then say the same. Like any
// field, the risk must not change while the tool is in use.
func (t *Tool) SetRisk(risk Risk) {
	t.Risk = risk
	for key, r := range map[string]Risk{metaMutates: Mutates, metaReadOnly: ReadOnly, metaDangerous: Dangerous} {
		if _, ok := t.Metadata[key]; ok {
			t.Metadata[key] = risk.Has(r)
		}
	}
	t.Tags = slices.DeleteFunc(t.Tags, func(tag string) bool {
		return slices.Contains([]string{tagMutating, tagReadOnly, tagReadOnlyDashed, tagDangerous}, strings.ToLower(tag))
	})
	t.settle()
}

// checkRiskKeys refuses metadata about risks and capabilities that would mean nothing: a value of
// another type, a name that is not known, a key in other letters.
func checkRiskKeys(metadata map[string]any) error {
	var errs []error
	for key, value := range metadata {
		switch known := knownKey(key); {
		case known == "":
		case key != known:
			errs = append(errs, fmt.Errorf("metadata %q means nothing; write %q", key, known))
		case key == metaCapabilities:
			errs = append(errs, checkCapabilityNames(value))
		default:
			if _, ok := value.(bool); !ok {
				errs = append(errs, fmt.Errorf("metadata %q must be true or false, and is %#v", key, value))
			}
		}
	}
	return errors.Join(errs...)
}

// knownKey is the key about risks or capabilities that a key is nearly, or "".
func knownKey(key string) string {
	plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(key))
	switch plain {
	case "mutate", "mutating":
		return metaMutates
	case "danger":
		return metaDangerous
	case "capability":
		return metaCapabilities
	}
	for _, known := range []string{metaMutates, metaReadOnly, metaDangerous, metaCapabilities} {
		if plain == strings.ToLower(known) {
			return known
		}
	}
	return ""
}

func checkCapabilityNames(list any) error {
	var names []any
	switch list := list.(type) {
	case []string:
		for _, name := range list {
			names = append(names, name)
		}
	case []any:
		names = list
	default:
		return fmt.Errorf("metadata %q must be a list of names, and is %#v", metaCapabilities, list)
	}
	for _, name := range names {
		if text, ok := name.(string); !ok || !slices.Contains(capabilityNames, text) {
			return fmt.Errorf("metadata %q has %#v; known are %s", metaCapabilities, name, strings.Join(capabilityNames, ", "))
		}
	}
	return nil
}

// Needs are the capabilities that the tool needs: those of its options, its metadata and its tags together.
func (t *Tool) Needs() Capability {
	c, inMetadata := t.Capabilities, t.Metadata[metaCapabilities]
	for i, name := range capabilityNames {
		if listed(inMetadata, name) || t.HasTag([]string{tagFiles, tagShell, tagNetwork}[i]) {
			c |= 1 << i
		}
	}
	return c
}

// listed reports whether a list from metadata, made in Go or read from JSON, has the name.
func listed(list any, name string) bool {
	switch list := list.(type) {
	case []string:
		return slices.Contains(list, name)
	case []any:
		return slices.Contains(list, any(name))
	}
	return false
}

// HasTag reports whether the tool has the tag, in any case of letters.
func (t *Tool) HasTag(tag string) bool {
	for _, have := range t.Tags {
		if strings.EqualFold(have, tag) {
			return true
		}
	}
	return false
}
