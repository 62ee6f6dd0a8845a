// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/prompt"
)

// fileFormat is the version of the form of files.
const fileFormat = 1

type writtenEntry struct {
	Section string     `json:"section,omitzero"`
	Tool    string     `json:"tool,omitzero"`
	Target  string     `json:"target"`
	Hash    string     `json:"hash"`
	Value   entryValue `json:"value"`
}

// encode writes entries in a form that depends on nothing else.
func (all entries) encode() ([]byte, error) {
	file := struct {
		Version   int            `json:"version"`
		Overrides []writtenEntry `json:"overrides"`
	}{fileFormat, []writtenEntry{}}
	for _, k := range all.sorted() {
		file.Overrides = append(file.Overrides, writtenEntry{k.Section, k.Tool, k.Target, k.Hash, all[k]})
	}
	raw, err := plainjson.Marshal(file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, raw, "", "  ")
	b.WriteByte('\n')
	return b.Bytes(), err
}

type flawInFile struct {
	offset int
	reason string
}

func (e *flawInFile) Error() string { return e.reason }

func flawAt(offset int, format string, args ...any) error {
	return &flawInFile{offset, fmt.Sprintf(format, args...)}
}

// An entryReader reads entries of a text that is known to be JSON.
type entryReader struct {
	plainjson.Scanner
	data []byte
	all  entries
}

// decodeEntries reads a file. The error is a [*flawInFile].
func decodeEntries(data []byte) (entries, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	if err := checkFormat(data); err != nil {
		return nil, err
	}
	r := entryReader{data: data, all: entries{}}
	r.ResetTrusted(data)
	err := r.object(map[string]func() error{"version": r.skip, "overrides": r.list})
	return r.all, err
}

func checkJSON(data []byte) error {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return flawAt(at, "a character is not UTF-8")
		}
		at += size
	}
	var s plainjson.Scanner
	s.Reset(data)
	s.Skip()
	err := s.End()
	if syntax, ok := errors.AsType[*plainjson.SyntaxError](err); ok {
		return flawAt(syntax.Offset, "%v", err)
	}
	return err
}

// checkFormat comes before all else: a later version may have anything.
func checkFormat(data []byte) error {
	from, to, ok := plainjson.Member(data, 0, "version")
	if !ok {
		return flawAt(0, "there is no version; it must be an object like {\"version\": %d, \"overrides\": []}", fileFormat)
	}
	var version int
	if err := json.Unmarshal(data[from:to], &version); err != nil || version < 1 {
		return flawAt(from, "the version must be a number from 1")
	}
	if version > fileFormat {
		return flawAt(from, "it has version %d, but this program knows versions up to %d; a later Drover reads it", version, fileFormat)
	}
	return nil
}

func (r *entryReader) skip() error { r.Skip(); return nil }

// object reads an object of which all names are known, and each is there once at most.
func (r *entryReader) object(fields map[string]func() error) error {
	start := r.Pos()
	if r.Kind() != plainjson.Object || !r.Object() {
		return flawAt(start, "there must be an object here")
	}
	seen := map[string]bool{}
	for {
		key, ok := r.Field()
		if !ok {
			return r.Err()
		}
		name, at := string(key), r.Pos()
		read, known := fields[name]
		switch {
		case !known:
			return flawAt(at, "unknown name %q", name)
		case seen[name]:
			return flawAt(at, "%q is there twice", name)
		}
		seen[name] = true
		if err := read(); err != nil {
			return err
		}
	}
}

func (r *entryReader) list() error {
	start := r.Pos()
	if r.Kind() != plainjson.Array || !r.Array() {
		return flawAt(start, "overrides must be a list")
	}
	for r.Elem() {
		if err := r.entry(); err != nil {
			return err
		}
	}
	return r.Err()
}

// entry reads one entry, which must fit its target even if it is stale.
func (r *entryReader) entry() error {
	var k entryKey
	var value entryValue
	start, valueAt := r.Pos(), 0
	err := r.object(map[string]func() error{
		"section": r.word(&k.Section), "tool": r.word(&k.Tool), "target": r.word(&k.Target), "hash": r.word(&k.Hash),
		"value": func() error { valueAt, value = r.Pos(), r.Raw(); return nil },
	})
	switch {
	case err != nil:
		return err
	case (k.Section == "") == (k.Tool == ""):
		return flawAt(start, "an override is for a section or for a tool")
	case value == nil:
		return flawAt(start, "the override of %s has no value", k)
	}
	if _, twice := r.all[k]; twice {
		return flawAt(start, "%s is overridden twice for the same hash", k)
	}
	if err := k.addTo(&prompt.Overrides{}, value); err != nil {
		return flawAt(valueAt, "%s: %v", k, err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, value); err != nil {
		return flawAt(valueAt, "%s: %v", k, err)
	}
	r.all[k] = b.Bytes() // without the indentation, which would else be shown with the JSON of examples
	return nil
}

func (r *entryReader) word(into *string) func() error {
	return func() error {
		at := r.Pos()
		text, _, ok := r.Decode(nil)
		if !ok {
			return flawAt(at, "there must be a string here")
		}
		*into = string(text)
		return nil
	}
}
