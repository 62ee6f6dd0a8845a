// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"cmp"
	"encoding/json"
	"time"
)

// A Summary is the part of a session that a listing needs, updated entry by entry, so that a store can
// list sessions without loading them. It can be kept as JSON.
type Summary struct {
	SessionID string `json:"sessionId"`
	// Modified is set by the store at each append; Fold leaves it alone.
	Modified time.Time `json:"modified"`
	// Started is true after the first entry: IsSidechain is final.
	Started     bool `json:"started,omitempty"`
	IsSidechain bool `json:"isSidechain,omitempty"`

	// Set once, by the first entry that has them.
	CreatedAt   time.Time `json:"createdAt,omitzero"`
	CWD         string    `json:"cwd,omitempty"`
	Entrypoint  string    `json:"entrypoint,omitempty"`
	FirstPrompt string    `json:"firstPrompt,omitempty"`
	// Command is the first slash command; it is shown while there is no FirstPrompt.
	Command string `json:"command,omitempty"`

	// The last one wins.
	CustomTitle string    `json:"customTitle,omitempty"`
	AITitle     string    `json:"aiTitle,omitempty"`
	LastPrompt  string    `json:"lastPrompt,omitempty"`
	Text        string    `json:"summary,omitempty"`
	GitBranch   string    `json:"gitBranch,omitempty"`
	Tag         string    `json:"tag,omitempty"`
	PromptedAt  time.Time `json:"promptedAt,omitzero"` // when a person last wrote
}

// Fold returns s updated with entries, which follow those that s has seen.
func (s Summary) Fold(entries []json.RawMessage) Summary {
	for _, e := range entries {
		s.fold(e)
	}
	return s
}

// Info returns the summary as a listing shows it.
func (s Summary) Info() Info {
	title := cmp.Or(s.CustomTitle, s.AITitle)
	first := cmp.Or(s.FirstPrompt, s.Command)
	return Info{
		SessionID: s.SessionID, LastModified: s.Modified, CreatedAt: s.CreatedAt,
		Summary: cmp.Or(title, s.LastPrompt, s.Text, first), Title: title, FirstPrompt: first,
		GitBranch: s.GitBranch, CWD: s.CWD, Tag: s.Tag, Entrypoint: s.Entrypoint,
	}
}

// A foldLine holds the fields of one entry that a summary uses.
type foldLine struct {
	kind, timestamp, cwd, entrypoint, branch string
	title, aiTitle, lastPrompt, text         string
	tag                                      *string
	sidechain, hidden, toolResult            bool
	message                                  []byte
}

// fold adds one line, which may be cut off at its end.
func (s *Summary) fold(line []byte) {
	l := readFoldLine(line)
	if !s.Started {
		s.Started, s.IsSidechain = true, l.sidechain
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = parseTime(l.timestamp)
	}
	s.CWD = cmp.Or(s.CWD, l.cwd)
	s.Entrypoint = cmp.Or(s.Entrypoint, l.entrypoint)
	s.foldPrompt(l)
	s.foldLast(l)
}

// isPrompt reports whether a person wrote the line.
func (l foldLine) isPrompt() bool { return l.kind == "user" && !l.hidden && !l.toolResult }

func (s *Summary) foldPrompt(l foldLine) {
	if !l.isPrompt() || s.FirstPrompt != "" {
		return
	}
	switch text, command := promptOf(l.message); {
	case command:
		s.Command = cmp.Or(s.Command, text)
	default:
		s.FirstPrompt = text
	}
}

func (s *Summary) foldLast(l foldLine) {
	s.CustomTitle = cmp.Or(l.title, s.CustomTitle)
	s.AITitle = cmp.Or(l.aiTitle, s.AITitle)
	s.LastPrompt = cmp.Or(l.lastPrompt, s.LastPrompt)
	s.GitBranch = cmp.Or(l.branch, s.GitBranch)
	if t := parseTime(l.timestamp); l.isPrompt() && t.After(s.PromptedAt) {
		s.PromptedAt = t
	}
	if l.kind == "summary" {
		s.Text = cmp.Or(l.text, s.Text)
	}
	if l.kind == "tag" && l.tag != nil {
		s.Tag = *l.tag // an empty tag removes the old one
	}
}

func readFoldLine(line []byte) (l foldLine) {
	eachField(line, func(key string, value []byte, whole bool) {
		switch key {
		case "message":
			l.message = value
		case "isSidechain":
			l.sidechain = string(value) == "true"
		case "isMeta", "isCompactSummary":
			l.hidden = l.hidden || string(value) == "true"
		case "toolUseResult", "sourceToolAssistantUUID":
			l.toolResult = true
		case "tag":
			tag := unquote(value)
			l.tag = &tag
		default:
			if field := l.field(key); field != nil && whole {
				*field = unquote(value)
			}
		}
	})
	return l
}

// field returns the field for the value of key, or nil.
func (l *foldLine) field(key string) *string {
	switch key {
	case "type":
		return &l.kind
	case "timestamp":
		return &l.timestamp
	case "cwd":
		return &l.cwd
	case "entrypoint":
		return &l.entrypoint
	case "gitBranch":
		return &l.branch
	case "customTitle":
		return &l.title
	case "aiTitle":
		return &l.aiTitle
	case "lastPrompt":
		return &l.lastPrompt
	case "summary":
		return &l.text
	}
	return nil
}
