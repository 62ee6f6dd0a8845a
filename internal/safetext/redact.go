// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// minValue is the shortest known value that is looked for; shorter ones would shred every text.
const minValue = 4

// A Redactor replaces secrets in text.
type Redactor struct {
	forms    []string // every spelling of the known values, longest first
	quoted   bool     // one of them has a quote
	marker   string
	replacer *strings.Replacer // nil without known values
	finder   *finder
}

const defaultMarker = "[redacted]"

// NewRedactor returns a redactor that knows values. Values of fewer than four bytes are ignored.
func NewRedactor(values ...string) *Redactor {
	r := &Redactor{marker: defaultMarker, finder: patternFinder()}
	for _, v := range values {
		r.forms = append(r.forms, Spellings(v)...)
	}
	if len(r.forms) == 0 {
		return r
	}
	slices.SortFunc(r.forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.forms = slices.Compact(r.forms)
	r.marker = harmlessMarker(r.forms)
	pairs := make([]string, 0, 2*len(r.forms))
	for _, form := range r.forms {
		pairs = append(pairs, form, r.marker)
	}
	r.replacer = strings.NewReplacer(pairs...)
	r.quoted = slices.ContainsFunc(r.forms, func(form string) bool { return strings.Contains(form, `"`) })
	r.finder = newFinder(r.forms)
	return r
}

// harmlessMarker returns a marker that contains no secret, for the case that a secret is "redacted".
func harmlessMarker(forms []string) string {
	for _, m := range []string{defaultMarker, "***", "#"} {
		if !slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(m, form) }) {
			return m
		}
	}
	return ""
}

// Spellings lists the ways in which a value may appear in a text, none for one that is too short.
func Spellings(v string) []string {
	if len(v) < minValue {
		return nil
	}
	once, onceHTML := jsonText(v, false), jsonText(v, true)
	forms := []string{v, once, onceHTML, url.QueryEscape(v), url.PathEscape(v)}
	// JSON inside a JSON string, as tool results and recordings have it.
	forms = append(forms, jsonText(once, false), jsonText(once, true), jsonText(onceHTML, false))
	return append(forms, base64Forms(v)...)
}

// jsonText is v as the inside of a JSON string.
func jsonText(v string, escapeHTML bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	if err := enc.Encode(v); err != nil {
		return v
	}
	s := strings.TrimSuffix(b.String(), "\n")
	return s[1 : len(s)-1]
}

// base64Forms gives the encodings of v alone, and the part that stays the same when v is inside
// a longer text, at each of the three alignments ("user:password" in an Authorization header).
func base64Forms(v string) []string {
	var forms []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, enc.EncodeToString([]byte(v)))
	}
	const shortest = 8 // fewer characters would match by chance
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for lead := range 3 {
			whole := enc.EncodeToString(append(make([]byte, lead), v...))
			first := (lead*8 + 5) / 6
			last := (lead + len(v)) * 8 / 6
			if core := whole[first:last]; len(core) >= shortest {
				forms = append(forms, core)
			}
		}
	}
	return forms
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	s, may := r.withoutKnown(s)
	for i := range patterns {
		if may>>i&1 == 0 {
			continue
		}
		if out := patterns[i].replace(s, r.Mark()); out != s {
			s, may = r.withoutKnown(out)
		}
	}
	if strings.IndexByte(s, '\\') >= 0 && r.mayNest([]byte(s)) {
		return r.nested(s)
	}
	return s
}

// withoutKnown returns s without known values, and the patterns that may match then.
func (r *Redactor) withoutKnown(s string) (string, uint32) {
	known, may := find(r.find(), s)
	if known {
		s = r.known(s)
		_, may = find(r.find(), s)
	}
	return s, may
}

// Bytes returns b without secrets. It returns b itself if b has no secrets.
func (r *Redactor) Bytes(b []byte) []byte {
	if r.MayHide(b) {
		s := string(b)
		if out := r.String(s); out != s {
			return []byte(out)
		}
	}
	return b
}

// MayHide reports whether b may have a secret. It is faster than [Redactor.Bytes], and finds more.
func (r *Redactor) MayHide(b []byte) bool {
	known, may := find(r.find(), b)
	return known || may != 0 || r.mayNest(b)
}

// HidesPair reports whether a name and its text, as members of a JSON object have them, form a secret together. The text
// alone must have none: a form that begins in it is not looked for again.
func (r *Redactor) HidesPair(name, text []byte) bool {
	pair := append(append(append(make([]byte, 0, 64), '"'), name...), `":"`...)
	known, may := find(r.find(), pair)
	if known {
		return true
	}
	if r != nil && r.quoted { // a value that is in neither alone has a quote between them or behind them, and is near it
		both := len(pair)
		if longest := len(r.forms[0]); len(text) > 2*longest {
			pair = append(append(append(pair, text[:longest]...), 0), text[len(text)-longest:]...)
		} else {
			pair = append(pair, text...)
		}
		if known, _ := find(r.find(), append(pair, '"')); known {
			return true
		}
		pair = pair[:both]
	}
	if may == 0 {
		return false
	}
	whole := string(pair) + string(text) + `"`
	for i := range patterns {
		if may>>i&1 != 0 && patterns[i].replace(whole, r.Mark()) != whole {
			return true
		}
	}
	return false
}

func (r *Redactor) find() *finder {
	if r == nil {
		return patternFinder()
	}
	return r.finder
}

// Mark is what takes the place of a secret.
func (r *Redactor) Mark() string {
	if r == nil {
		return defaultMarker
	}
	return r.marker
}

// known replaces the known values. A replacement can form a new occurrence with the text beside it;
// after a few rounds the text is given up rather than the secret.
func (r *Redactor) known(s string) string {
	if r == nil || r.replacer == nil {
		return s
	}
	for range 4 {
		out := r.replacer.Replace(s)
		if out == s {
			return s
		}
		s = out
	}
	if slices.ContainsFunc(r.forms, func(form string) bool { return strings.Contains(s, form) }) {
		return r.marker
	}
	return s
}

// jsonOf renders a value as a JSON log handler would; empty where it cannot.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
