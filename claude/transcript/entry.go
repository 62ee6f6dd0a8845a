// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// An Entry is one line of a transcript: the fields that this package understands, and the line
// itself. The CLI defines the types; an entry of an unknown type has Type and Raw.
type Entry struct {
	Type              string          `json:"type"`
	Subtype           string          `json:"subtype"`
	UUID              string          `json:"uuid"`
	ParentUUID        string          `json:"parentUuid"`
	LogicalParentUUID string          `json:"logicalParentUuid"`
	SessionID         string          `json:"sessionId"`
	AgentID           string          `json:"agentId"`
	Time              string          `json:"timestamp"`
	CWD               string          `json:"cwd"`
	GitBranch         string          `json:"gitBranch"`
	Version           string          `json:"version"`
	Entrypoint        string          `json:"entrypoint"`
	TeamName          string          `json:"teamName"`
	IsSidechain       bool            `json:"isSidechain"`
	IsMeta            bool            `json:"isMeta"`
	IsCompactSummary  bool            `json:"isCompactSummary"`
	Message           json.RawMessage `json:"message"`

	// ParentToolUseID and ParentAgentID are set for the messages of a subagent, from its sidecar: the tool call that started
	// it, and the subagent that made this call if it was not the main conversation.
	ParentToolUseID string `json:"-"`
	ParentAgentID   string `json:"-"`
	// Raw is the whole line, without its newline.
	Raw json.RawMessage `json:"-"`
}

// ParseEntry reads one line. A field of an unexpected type is left zero; only text that is not a JSON object is an error.
func ParseEntry(line []byte) (Entry, error) {
	line = bytes.TrimSpace(line)
	var e Entry
	var mistyped *json.UnmarshalTypeError
	if err := json.Unmarshal(line, &e); err != nil && !errors.As(err, &mistyped) {
		return Entry{}, err
	}
	if line[0] != '{' {
		return Entry{}, errors.New("transcript: line is not a JSON object")
	}
	e.Raw = bytes.Clone(line)
	return e, nil
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// isChain reports whether e is a link of the conversation.
func (e Entry) isChain() bool {
	if e.UUID == "" {
		return false
	}
	switch e.Type {
	case "user", "assistant", "progress", "system", "attachment":
		return true
	}
	return false
}

func (e Entry) isTurn() bool { return e.Type == "user" || e.Type == "assistant" }

// splitLines returns the lines of data that are not empty. They share data's memory.
func splitLines(data []byte) [][]byte {
	var lines [][]byte
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// parseEntries reads every line that is a JSON object. Like the CLI it skips others, left by a crash or another program.
func parseEntries[Line ~[]byte](lines []Line) []Entry {
	var entries []Entry
	for _, line := range lines {
		if e, err := ParseEntry(line); err == nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// readAll reads a file below the root. It checks the context between reads.
func (p *projects) readAll(ctx context.Context, name string) ([]byte, error) {
	f, err := p.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(contextReader{ctx, f})
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
