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

// A PluginError says why a plugin could not be loaded.
type PluginError struct {
	Plugin      string
	Type        string
	Message     string
	Path        string
	ManagedLock bool
}

func (m *SystemInit) field(d *msgDecoder, key []byte) bool {
	return m.stringField(d, key) || m.listField(d, key)
}

func (m *SystemInit) stringField(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "claude_code_version":
		m.ClaudeCodeVersion = d.str()
	case "cwd":
		m.CWD = d.str()
	case "model":
		m.Model = d.str()
	case "permissionMode":
		m.PermissionMode = d.str()
	case "apiKeySource":
		m.APIKeySource = d.str()
	case "output_style":
		m.OutputStyle = d.str()
	case "fast_mode_state":
		m.FastModeState = d.str()
	case "fast_mode_disabled_reason":
		m.FastModeDisabledReason = d.str()
	case "effort":
		m.Effort = d.str()
	case "view_mode":
		m.ViewMode = d.str()
	case "original_cwd":
		m.OriginalCWD = d.str()
	case "messaging_socket_path":
		m.MessagingSocketPath = d.str()
	case "memory_paths":
		m.MemoryPaths = d.raw()
	default:
		return false
	}
	return true
}

func (m *SystemInit) listField(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "tools":
		m.Tools = d.strs()
	case "mcp_servers":
		m.MCPServers = objectList[InitMCPServer](d)
	case "slash_commands":
		m.SlashCommands = d.strs()
	case "terminal_slash_commands":
		m.TerminalSlashCommands = d.strs()
	case "agents":
		m.Agents = d.strs()
	case "skills":
		m.Skills = d.strs()
	case "betas":
		m.Betas = d.strs()
	case "plugins":
		m.Plugins = objectList[InitPlugin](d)
	case "plugin_errors":
		m.PluginErrors = objectList[PluginError](d)
	case "capabilities":
		m.Capabilities = d.strs()
	case "additional_directories":
		m.AdditionalDirectories = d.strs()
	default:
		return false
	}
	return true
}

func (s *InitMCPServer) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "name":
		s.Name = d.str()
	case "status":
		s.Status = d.str()
	case "source":
		s.Source = d.str()
	default:
		return false
	}
	return true
}

func (p *InitPlugin) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "name":
		p.Name = d.str()
	case "path":
		p.Path = d.str()
	case "version":
		p.Version = d.str()
	case "source":
		p.Source = d.str()
	default:
		return false
	}
	return true
}

func (e *PluginError) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "plugin":
		e.Plugin = d.str()
	case "type":
		e.Type = d.str()
	case "message":
		e.Message = d.str()
	case "path":
		e.Path = d.str()
	case "managed_lock":
		e.ManagedLock = d.bool()
	default:
		return false
	}
	return true
}

// States of a session.
const (
	StateIdle           = "idle"
	StateRunning        = "running"
	StateRequiresAction = "requires_action"
)

// A SessionStateChanged tells whether the session works, waits for us, or is done with everything.
type SessionStateChanged struct {
	MessageHeader
	State string // StateIdle, StateRunning or StateRequiresAction
	// SDKHostOnly is true for a message that was asked for by the client itself.
	SDKHostOnly bool
}

func (m *SessionStateChanged) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "state":
		m.State = d.str()
	case "sdk_host_only":
		m.SDKHostOnly = d.bool()
	default:
		return false
	}
	return true
}

// A StatusMessage tells what the CLI does right now, or that the permission mode changed.
type StatusMessage struct {
	MessageHeader
	Status           string // compacting, requesting, or empty when that is over
	PermissionMode   string
	CompactResult    string
	CompactError     string
	UserMessageUUIDs []string
}

func (m *StatusMessage) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "status":
		m.Status = d.str()
	case "permissionMode":
		m.PermissionMode = d.str()
	case "compact_result":
		m.CompactResult = d.str()
	case "compact_error":
		m.CompactError = d.str()
	case "user_message_uuids":
		m.UserMessageUUIDs = d.strs()
	default:
		return false
	}
	return true
}

// A CompactBoundary marks where the conversation was replaced by a summary.
type CompactBoundary struct {
	MessageHeader
	Trigger    string // manual or auto
	PreTokens  int
	PostTokens *int // nil if not told
	Duration   time.Duration
	// PreservedSegment and PreservedMessages tell what was kept; nil if nothing.
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
	d.object((*compactMetadata)(m))
	return true
}

type compactMetadata CompactBoundary

func (m *compactMetadata) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "trigger":
		m.Trigger = d.str()
	case "pre_tokens":
		m.PreTokens = d.int()
	case "post_tokens":
		m.PostTokens = d.intPtr()
	case "duration_ms":
		m.Duration = d.millis()
	case "preserved_segment":
		m.PreservedSegment = objectPtr[PreservedSegment](d)
	case "preserved_messages":
		m.PreservedMessages = objectPtr[PreservedMessages](d)
	default:
		return false
	}
	return true
}

func (s *PreservedSegment) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "head_uuid":
		s.HeadUUID = d.str()
	case "anchor_uuid":
		s.AnchorUUID = d.str()
	case "tail_uuid":
		s.TailUUID = d.str()
	default:
		return false
	}
	return true
}

func (s *PreservedMessages) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "anchor_uuid":
		s.AnchorUUID = d.str()
	case "uuids":
		s.UUIDs = d.strs()
	default:
		return false
	}
	return true
}
