// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
)

// minSecret is the shortest value that is looked for. Shorter ones are in every text.
const minSecret = 6

// minLine is the shortest line of a value of several lines that is looked for by itself, as in a listing with numbers.
const minLine = 16

// A masker replaces secrets in what is kept.
type masker struct{ known *safetext.Redactor }

func newMasker(secrets []string) *masker {
	var values []string
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		values = append(values, s)
		if strings.Contains(s, "\n") {
			for line := range strings.Lines(s) {
				if line = strings.TrimSpace(line); len(line) >= minLine {
					values = append(values, line)
				}
			}
		}
	}
	return &masker{safetext.NewRedactor(values...)}
}

// text returns a text without secrets.
func (m *masker) text(text []byte) []byte { return m.known.Bytes(text) }

// json returns valid JSON without secrets in its strings and names, however they are escaped. The kinds of events stay: without
// them a log cannot be read.
func (m *masker) json(raw json.RawMessage) json.RawMessage {
	var (
		out, scratch []byte
		copied       int
		name         []byte // the last name
		before       byte   // the last byte that is neither white space nor in a string
	)
	for at := 0; at < len(raw); at++ {
		switch c := raw[at]; c {
		case '"':
		case ' ', '\t', '\n', '\r':
			continue
		default:
			before = c
			continue
		}
		var text []byte
		end := 0
		end, text, scratch = stringAt(raw, at, scratch)
		masked, found := "", false
		switch {
		case nextByte(raw, end) == ':':
			name = append(name[:0], text...)
			if found = m.known.MayHide(text) && !fieldName.Match(text); found {
				masked = m.known.String(string(text))
			}
		case before != ':':
			if found = m.known.MayHide(text); found {
				masked = m.known.String(string(text))
			}
		case string(name) != "type" || !kindForm.Match(text):
			masked, found = m.value(name, text)
		}
		if found && masked != string(text) {
			quoted, err := plainjson.Marshal(masked)
			if err != nil {
				quoted = json.RawMessage(`""`)
			}
			out = append(append(out, raw[copied:at]...), quoted...)
			copied = end
		}
		at = end - 1
	}
	if copied == 0 {
		return raw
	}
	return append(out, raw[copied:]...)
}

// value is the value of a name, if it may have a secret. The name alone may tell that it is one.
func (m *masker) value(name, text []byte) (masked string, found bool) {
	if m.known.MayHide(text) {
		if masked = m.known.String(string(text)); masked != string(text) {
			return masked, true
		}
	}
	return m.known.Mark(), m.known.HidesPair(name, text)
}

// stringAt is the string that begins at a position, and the position behind it. The text is a part of raw or of scratch, which is
// returned for the next call.
func stringAt(raw []byte, at int, scratch []byte) (end int, text, grown []byte) {
	var s plainjson.Scanner
	s.ResetTrusted(raw[at:])
	text, grown, ok := s.Decode(scratch)
	if ok {
		return at + len(s.Since(0)), text, grown
	}
	for end = at + 1; end < len(raw) && raw[end] != '"'; end++ { // it is no JSON
		if raw[end] == '\\' {
			end++
		}
	}
	end = min(end+1, len(raw))
	return end, raw[at+1 : max(at+1, end-1)], grown
}

// fieldName is a name that our own JSON may have. It is no secret, whatever values were named.
var fieldName = regexp.MustCompile(`^[a-z][A-Za-z_]{0,23}$`)

// kindForm is that of the kind of an event.
var kindForm = regexp.MustCompile(`^[a-z][a-z-]*(:[a-z_]+)?$|^[a-z_]+$`)

// nextByte is the first byte that is not white space, or 0.
func nextByte(raw []byte, at int) byte {
	for ; at < len(raw); at++ {
		if c := raw[at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}
