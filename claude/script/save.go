// SPDX-License-Identifier: Apache-2.0

package script

import (
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-yaml"
)

// ErrNotData is returned by [Script.YAML] for a script that calls Go functions.
var ErrNotData = errors.New("a turn with a Go function cannot be written to a file")

// YAML writes s in the form that [Read] reads. A script with functions gives [ErrNotData].
func (s Script) YAML() ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	f := file{
		Version: fileVersion, Strict: s.Strict, StrictRoles: s.StrictRoles, CountTokens: s.CountTokens,
		IDPrefix: s.IDPrefix, KeepRequests: s.KeepRequests, Turns: []fileTurn{},
	}
	for i, t := range s.Turns {
		ft, err := newFileTurn(t)
		if err != nil {
			return nil, &Problem{fmt.Sprintf("turns[%d]", i), err}
		}
		f.Turns = append(f.Turns, ft)
	}
	if s.Default != nil {
		ft, err := newFileTurn(*s.Default)
		if err != nil {
			return nil, &Problem{"default", err}
		}
		f.Default = &ft
	}
	return yaml.Marshal(f)
}

func newFileTurn(t Turn) (fileTurn, error) {
	if t.Func != nil || t.Match.hasFunc() {
		return fileTurn{}, ErrNotData
	}
	ft := fileTurn{
		Name: t.Name, Always: t.Repeat == Forever, StopReason: t.StopReason, StopSequence: t.StopSequence,
		Model: t.Model, Headers: t.Headers, Chunk: t.ChunkSize, Error: t.Error,
		Delay: delayText(t.Delay), DeltaDelay: delayText(t.DeltaDelay),
	}
	if t.Repeat > 0 {
		ft.Repeat = &t.Repeat
	}
	if !t.Match.isZero() {
		ft.When = &t.Match
	}
	if t.Usage != (Usage{}) {
		ft.Usage = &t.Usage
	}
	if t.Fault != nil {
		ft.Fault = &fileFault{Kind: t.Fault.Kind, After: t.Fault.After, Error: t.Fault.Error}
	}
	return ft, ft.setContent(t)
}

func (ft *fileTurn) setContent(t Turn) error {
	if len(t.Content) == 0 && t.Error == nil && t.Fault == nil {
		ft.StopReason = t.stopReason() // a turn of a file must not be empty
	}
	if len(t.Content) == 1 {
		if text, ok := t.Content[0].(TextBlock); ok {
			ft.Text = &text.Text
			return nil
		}
	}
	for _, b := range t.Content {
		fb, err := newFileBlock(b)
		if err != nil {
			return err
		}
		ft.Content = append(ft.Content, fb)
	}
	return nil
}

func newFileBlock(b Block) (fileBlock, error) {
	switch b := b.(type) {
	case TextBlock:
		return fileBlock{Text: &b.Text}, nil
	case ThinkingBlock:
		return fileBlock{Thinking: &b.Thinking, Signature: b.Signature}, nil
	case RedactedThinkingBlock:
		return fileBlock{RedactedThinking: &b.Data}, nil
	case ToolCall:
		fb := fileBlock{Tool: &b.Name, ID: b.ID, RawInput: b.RawInput}
		if b.Input == nil {
			return fb, nil
		}
		input, err := encodeInput(b.Input)
		fb.Input = jsonValue(input)
		return fb, err
	}
	return fileBlock{}, fmt.Errorf("unknown block %T", b)
}

func (m Match) hasFunc() bool {
	if m.Func != nil || (m.Not != nil && m.Not.hasFunc()) {
		return true
	}
	for _, one := range append(m.All[:len(m.All):len(m.All)], m.Any...) {
		if one.hasFunc() {
			return true
		}
	}
	return false
}

func delayText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
