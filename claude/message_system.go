// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"time"
)

// A SystemInit describes the session. The CLI sends it at the start of every turn.
type SystemInit struct {
	MessageHeader
	ClaudeCodeVersion      string
	CWD                    string
	Model                  string
	PermissionMode         string
	APIKeySource           string
	OutputStyle            string
	Tools                  []string
	MCPServers             []InitMCPServer
	SlashCommands          []string
	TerminalSlashCommands  []string
	Agents                 []string
	Skills                 []string
	Betas                  []string
	Plugins                []InitPlugin
	PluginErrors           []PluginError
	Capabilities           []string
	FastModeState          string
	FastModeDisabledReason string
	Effort                 string
	ViewMode               string
	// MemoryPaths, AdditionalDirectories, OriginalCWD and MessagingSocketPath are undocumented.
	MemoryPaths           json.RawMessage
	AdditionalDirectories []string
	OriginalCWD           string
	MessagingSocketPath   string
}

// An InitMCPServer is an MCP server as [SystemInit] lists it.
type InitMCPServer struct {
	Name   string
	Status string // connected, failed, needs-auth, pending or disabled
	Source string
}

// An InitPlugin is a plugin as [SystemInit] lists it.
type InitPlugin struct {
	Name    string
	Path    string
	Version string
	Source  string
}

// A PluginError reports why a plugin could not be loaded.
type PluginError struct {
	Plugin      string
	Type        string
	Message     string
	Path        string
	ManagedLock bool
}

// States of a session.
const (
	StateIdle           = "idle"
	StateRunning        = "running"
	StateRequiresAction = "requires_action"
)

// A SessionStateChanged reports whether the session works, waits for the host, or is idle.
type SessionStateChanged struct {
	MessageHeader
	State string // StateIdle, StateRunning or StateRequiresAction
	// SDKHostOnly is true for a message that the client itself asked for.
	SDKHostOnly bool
}

// A StatusMessage reports what the CLI does right now, or that the permission mode changed.
type StatusMessage struct {
	MessageHeader
	Status           string // compacting, requesting, or empty when that is over
	PermissionMode   string
	CompactResult    string
	CompactError     string
	UserMessageUUIDs []string
}

// A CompactBoundary marks where the conversation was replaced by a summary.
type CompactBoundary struct {
	MessageHeader
	Trigger    string // manual or auto
	PreTokens  int
	PostTokens *int // nil if not sent
	Duration   time.Duration
	// PreservedSegment and PreservedMessages are the kept parts, or nil.
	PreservedSegment  *PreservedSegment
	PreservedMessages *PreservedMessages
}

// A PreservedSegment is a part of the conversation that was kept as it was.
type PreservedSegment struct{ HeadUUID, AnchorUUID, TailUUID string }

// PreservedMessages are messages that were kept as they were.
type PreservedMessages struct {
	AnchorUUID string
	UUIDs      []string
}

func (m *CompactBoundary) field(d *msgDecoder, key []byte) bool {
	if string(key) != "compact_metadata" {
		return false
	}
	d.fill((*compactMetadata)(m))
	return true
}

type compactMetadata CompactBoundary
