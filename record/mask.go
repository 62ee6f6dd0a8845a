// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
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
	if bytes.IndexByte(raw, '\\') < 0 && bytes.Equal(m.known.Bytes(raw), raw) {
		return raw
	}
	if !oddlySpelled(raw) && !m.known.MayHide(string(raw)) {
		return raw
	}
	var (
		out    []byte
		copied int
		name   string // the last name
		before byte   // the last byte that is neither white space nor in a string
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
		end, text := stringAt(raw, at)
		isName := nextByte(raw, end) == ':'
		masked := text
		switch {
		case isName:
			if name = text; !fieldName.MatchString(text) {
				masked = m.known.String(text)
			}
		case before != ':':
			masked = m.known.String(text)
		case name != "type" || !kindForm.MatchString(text):
			masked = m.value(name, text)
		}
		if masked != text {
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

// oddlySpelled reports whether a value can be in JSON in another spelling than encoding/json gives it, which the masker knows: JSON in
// JSON at most. Each further level doubles the backslashes.
func oddlySpelled(raw json.RawMessage) bool {
	return slices.ContainsFunc([]string{`\u`, `\/`, `\\\\`, "\u2028", "\u2029"}, func(s string) bool { return bytes.Contains(raw, []byte(s)) })
}

// value is the value of a name. The name alone may tell that it is a secret.
func (m *masker) value(name, text string) string {
	if masked := m.known.String(text); masked != text {
		return masked
	}
	if m.known.HidesPair(name, text) {
		return m.known.Mark()
	}
	return text
}

// stringAt is the string that begins at a position, and the position behind it.
func stringAt(raw []byte, at int) (end int, text string) {
	plain := true
	for end = at + 1; end < len(raw) && raw[end] != '"'; end++ {
		if raw[end] == '\\' {
			plain = false
			end++
		}
	}
	end = min(end+1, len(raw))
	if plain {
		return end, string(raw[at+1 : end-1])
	}
	if json.Unmarshal(raw[at:end], &text) != nil {
		return end, string(raw[at+1 : end-1])
	}
	return end, text
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
