// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-agents/drover/internal/plainjson"
)

// mergeSettings puts the sandbox into the settings and returns both as one JSON object. Settings
// may also be the path of a file, which goes on unread; that cannot be combined with a sandbox.
//
// Where both set a key, the sandbox wins, except that restrictions add up: lists of denials are
// united, and a switch of one side that would turn off restrictions of the other is dropped.
func mergeSettings(settings json.RawMessage, sandbox *Sandbox) (json.RawMessage, error) {
	if sandbox == nil {
		return settings, nil
	}
	all := make(map[string]any)
	if trimmed := bytes.TrimSpace(settings); len(trimmed) > 0 {
		if trimmed[0] != '{' {
			return nil, &OptionError{"Settings", "the path of a settings file cannot be combined with Sandbox; give the settings as JSON, or put the sandbox into the file"}
		}
		if err := decodeNumbers(trimmed, &all); err != nil {
			return nil, &OptionError{"Settings", fmt.Sprintf("not valid JSON: %v", err)}
		}
	}
	ours, err := sandbox.object()
	if err != nil {
		return nil, &OptionError{"Sandbox", err.Error()}
	}
	theirs, _ := all["sandbox"].(map[string]any)
	all["sandbox"] = mergeSandbox(theirs, ours)
	return plainjson.Marshal(all)
}

// decodeNumbers keeps numbers as they are written.
func decodeNumbers(data []byte, dst any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(dst); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("more than one value")
	}
	return nil
}

func mergeSandbox(theirs, ours map[string]any) map[string]any {
	dropSwitches(theirs, ours)
	dropSwitches(ours, theirs)
	merged := mergeObjects("", theirs, ours)
	if _, set := merged["failIfUnavailable"]; !set && merged["enabled"] == true {
		merged["failIfUnavailable"] = true
	}
	return merged
}

// united are the lists in which both sides' entries count; replaced are the objects that make sense only as a whole.
var (
	united   = []string{"filesystem.denyRead", "filesystem.denyWrite", "network.deniedDomains", "credentials.files", "credentials.envVars"}
	replaced = []string{"ripgrep", "network.tlsTerminate"}
)

func mergeObjects(path string, base, over map[string]any) map[string]any {
	merged := make(map[string]any, len(base)+len(over))
	for k, v := range base {
		merged[k] = v
	}
	for k, v := range over {
		merged[k] = mergeValues(strings.TrimPrefix(path+"."+k, "."), merged[k], v)
	}
	return merged
}

func mergeValues(path string, base, over any) any {
	switch over := over.(type) {
	case map[string]any:
		if base, ok := base.(map[string]any); ok && !slices.Contains(replaced, path) {
			return mergeObjects(path, base, over)
		}
	case []any:
		if base, ok := base.([]any); ok && slices.Contains(united, path) {
			return unite(base, over)
		}
	}
	return over
}

func unite(base, over []any) []any {
	all := slices.Clone(base)
	for _, v := range over {
		if !slices.ContainsFunc(all, func(x any) bool { return reflect.DeepEqual(x, v) }) {
			all = append(all, v)
		}
	}
	return all
}

// dropSwitches removes from one side what would make the other side's restrictions void: a
// switched-off file system layer, and a proxy that does not know the list of domains.
func dropSwitches(from, other map[string]any) {
	if fs, ok := from["filesystem"].(map[string]any); ok && fs["disabled"] == true && restricts(other, "filesystem", "denyRead", "denyWrite", "allowWrite", "allowManagedReadPathsOnly") {
		delete(fs, "disabled")
	}
	if net, ok := from["network"].(map[string]any); ok && restricts(other, "network", "allowedDomains", "deniedDomains", "strictAllowlist", "allowManagedDomainsOnly") {
		delete(net, "httpProxyPort")
		delete(net, "socksProxyPort")
	}
}

// restricts reports whether one of the keys is set in the section. An empty list of what is allowed restricts too.
func restricts(sandbox map[string]any, section string, keys ...string) bool {
	object, _ := sandbox[section].(map[string]any)
	return slices.ContainsFunc(keys, func(key string) bool {
		switch v := object[key].(type) {
		case []any:
			return len(v) > 0 || strings.HasPrefix(key, "allow")
		case bool:
			return v
		}
		return false
	})
}

// validateSkillName refuses names with another meaning in the CLI's list of allowed tools, where they are Skill(name).
func validateSkillName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "it is empty"
	case !utf8.ValidString(name):
		reason = "it is not valid UTF-8"
	case strings.TrimSpace(name) != name:
		reason = "it begins or ends with space"
	case strings.ContainsAny(name, "(),"):
		reason = "it contains ( ) or ,"
	case strings.ContainsFunc(name, forbiddenInSkill):
		reason = "it contains a control character"
	case name == "*", strings.HasSuffix(name, ":*"), strings.HasSuffix(name, " *"):
		reason = "it is a wildcard"
	case strings.HasPrefix(name, "/"):
		reason = "it begins with /; give the name alone"
	case strings.Contains(name, `\\`), strings.HasSuffix(name, `\`):
		reason = "it contains a backslash that would escape"
	}
	if reason == "" {
		return nil
	}
	return fmt.Errorf("skill name %q cannot be used: %s", name, reason)
}

func forbiddenInSkill(r rune) bool {
	return unicode.IsControl(r) || r == '\uFEFF' || r == utf8.RuneError
}

// validateWindowsArgument refuses, in an id that becomes an argument, the characters that a Windows
// command interpreter between us and the CLI would act on.
func validateWindowsArgument(option, value string) error {
	if i := strings.IndexAny(value, "&|<>^%!\"\r\n"); i >= 0 {
		return &OptionError{option, fmt.Sprintf("%q contains %q, which a Windows command line may interpret", value, value[i])}
	}
	return nil
}
