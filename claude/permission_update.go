// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A PermissionMode is the CLI's default treatment of tool calls.
type PermissionMode string

// The permission modes. The zero value leaves the choice to the CLI's settings.
const (
	ModeDefault           PermissionMode = "default"
	ModeAcceptEdits       PermissionMode = "acceptEdits"
	ModeBypassPermissions PermissionMode = "bypassPermissions"
	ModePlan              PermissionMode = "plan"
	ModeDontAsk           PermissionMode = "dontAsk"
	ModeAuto              PermissionMode = "auto"
)

// A PermissionUpdate changes the CLI's permission rules. An update of the CLI is sent back as it came,
// with its unknown fields; fields that were changed since are sent with their new value.
type PermissionUpdate struct {
	Type PermissionUpdateType
	// Rules and Behavior go with AddRules, ReplaceRules and RemoveRules.
	Rules    []PermissionRule
	Behavior PermissionBehavior
	// Mode goes with SetMode.
	Mode PermissionMode
	// Directories go with AddDirectories and RemoveDirectories.
	Directories []string
	Destination PermissionDestination
	// Raw is the update as the CLI sent it, nil for one made here.
	Raw json.RawMessage
}

// A PermissionRule names a tool, and with Content a part of its uses: "Bash" and "npm test:*".
type PermissionRule struct {
	ToolName string `json:"toolName"`
	Content  string `json:"ruleContent,omitzero"`
}

// A PermissionUpdateType is the kind of change of a [PermissionUpdate].
type PermissionUpdateType string

// The types of updates.
const (
	AddRules          PermissionUpdateType = "addRules"
	ReplaceRules      PermissionUpdateType = "replaceRules"
	RemoveRules       PermissionUpdateType = "removeRules"
	SetMode           PermissionUpdateType = "setMode"
	AddDirectories    PermissionUpdateType = "addDirectories"
	RemoveDirectories PermissionUpdateType = "removeDirectories"
)

// A PermissionBehavior is what a rule does.
type PermissionBehavior string

// The behaviours of rules.
const (
	RuleAllow PermissionBehavior = "allow"
	RuleDeny  PermissionBehavior = "deny"
	RuleAsk   PermissionBehavior = "ask"
)

// A PermissionDestination is where an update is kept.
type PermissionDestination string

// The destinations of updates.
const (
	ToUserSettings    PermissionDestination = "userSettings"
	ToProjectSettings PermissionDestination = "projectSettings"
	ToLocalSettings   PermissionDestination = "localSettings"
	ToSession         PermissionDestination = "session" // until the process ends
	ToCLIArg          PermissionDestination = "cliArg"
)

// maxPermissionItems is the CLI's own limit for every list of an update.
const maxPermissionItems = 4096

func checkUpdates(updates []PermissionUpdate) error {
	if len(updates) > maxPermissionItems {
		return fmt.Errorf("%d permission updates; the CLI takes at most %d", len(updates), maxPermissionItems)
	}
	for i, u := range updates {
		if n := max(len(u.Rules), len(u.Directories)); n > maxPermissionItems {
			return fmt.Errorf("permission update %d has %d items; the CLI takes at most %d", i, n, maxPermissionItems)
		}
	}
	return nil
}

// updateWire has the fields of an update in the CLI's spelling.
type updateWire struct {
	Type        PermissionUpdateType  `json:"type"`
	Rules       []PermissionRule      `json:"rules,omitzero"`
	Behavior    PermissionBehavior    `json:"behavior,omitzero"`
	Mode        PermissionMode        `json:"mode,omitzero"`
	Directories []string              `json:"directories,omitzero"`
	Destination PermissionDestination `json:"destination,omitzero"`
}

func (u PermissionUpdate) wire() updateWire {
	return updateWire{u.Type, u.Rules, u.Behavior, u.Mode, u.Directories, u.Destination}
}

// UnmarshalJSON keeps data in Raw. Fields of an unexpected kind are left zero and stay in Raw.
func (u *PermissionUpdate) UnmarshalJSON(data []byte) error {
	var w updateWire
	if err := decodeObject(data, &w); err != nil && !isFieldError(err) {
		return fmt.Errorf("permission update: %w", err)
	}
	*u = PermissionUpdate{w.Type, w.Rules, w.Behavior, w.Mode, w.Directories, w.Destination, bytes.Clone(data)}
	return nil
}

// MarshalJSON returns Raw as long as no field was changed.
func (u PermissionUpdate) MarshalJSON() ([]byte, error) {
	if u.Raw == nil {
		return plainjson.Marshal(u.wire())
	}
	var came PermissionUpdate
	if err := came.UnmarshalJSON(u.Raw); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(came.wire(), u.wire()) {
		return u.Raw, nil
	}
	return u.overlay(came.wire())
}

// overlay writes the fields that differ from what came over the raw object.
func (u PermissionUpdate) overlay(came updateWire) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(u.Raw, &members); err != nil {
		return nil, fmt.Errorf("permission update: %w", err)
	}
	now, before := reflect.ValueOf(u.wire()), reflect.ValueOf(came)
	for name, plan := range fieldsOf(reflect.TypeFor[updateWire]()) {
		value := now.FieldByIndex(plan.index)
		if reflect.DeepEqual(value.Interface(), before.FieldByIndex(plan.index).Interface()) {
			continue
		}
		if value.IsZero() {
			delete(members, name)
			continue
		}
		b, err := plainjson.Marshal(value.Interface())
		if err != nil {
			return nil, err
		}
		members[name] = b
	}
	return plainjson.Marshal(members)
}

// shadowWarnings returns the settings that keep [CanUseTool] from being asked at all, or for whole tools.
func shadowWarnings(mode PermissionMode, allowedTools []string, skillsAll bool) []string {
	var warnings []string
	switch mode {
	case ModeBypassPermissions:
		warnings = append(warnings, `CanUseTool is never asked: PermissionMode is "bypassPermissions"`)
	case ModeDontAsk:
		warnings = append(warnings, `CanUseTool is never asked: PermissionMode "dontAsk" denies what it would be asked about`)
	}
	whole := make(map[string]bool)
	for _, entry := range allowedTools {
		if tool, ok := wholeTool(entry); ok {
			whole[tool] = true
		}
	}
	if skillsAll {
		whole["Skill"] = true
	}
	for _, tool := range slices.Sorted(maps.Keys(whole)) {
		warnings = append(warnings, fmt.Sprintf("CanUseTool is not asked about %s: AllowedTools allows all its uses; use a PreToolUse hook to see every call", tool))
	}
	return warnings
}

// wholeTool returns the tool of an allow-list entry that covers all uses of it: "Read", "Read()" or "Read(*)".
func wholeTool(entry string) (string, bool) {
	tool := entry
	for _, suffix := range []string{"()", "(*)"} {
		if n := len(entry) - len(suffix); n > 0 && entry[n:] == suffix {
			tool = entry[:n]
		}
	}
	return tool, tool != "" && !bytes.ContainsAny([]byte(tool), "()")
}
