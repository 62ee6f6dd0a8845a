// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

// lines is a text. Several lines are written as a list, so that people can edit and compare it. Both forms are read.
type lines string

// MarshalJSON writes a string or a list.
func (l lines) MarshalJSON() ([]byte, error) {
	if strings.Contains(string(l), "\n") {
		return plainjson.Marshal(strings.Split(string(l), "\n"))
	}
	return plainjson.Marshal(string(l))
}

// UnmarshalJSON reads a string or a list.
func (l *lines) UnmarshalJSON(raw []byte) error {
	var list []*string
	if bytes.HasPrefix(raw, []byte("[")) {
		if err := json.Unmarshal(raw, &list); err != nil {
			return errors.New("a text must be a string or a list of its lines")
		}
	} else {
		list = make([]*string, 1)
		if err := json.Unmarshal(raw, &list[0]); err != nil {
			return errors.New("a text must be a string or a list of its lines")
		}
	}
	var joined []string
	for _, line := range list {
		if line == nil {
			return errors.New("a text must be a string or a list of its lines, not null")
		}
		joined = append(joined, *line)
	}
	*l = lines(strings.Join(joined, "\n"))
	return nil
}

// encodeValue writes a value that can be read again as it is.
func encodeValue[V any](v V) (entryValue, error) {
	raw, err := plainjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	var back V
	if err := json.Unmarshal(raw, &back); err != nil {
		return nil, err
	}
	again, err := plainjson.Marshal(back)
	if err == nil && (!bytes.Equal(raw, again) || !utf8.Valid(raw)) {
		err = errors.New("it has text that is not UTF-8")
	}
	return raw, err
}

func strictUnmarshal(raw entryValue, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// addTo puts an entry into overrides. It fails where the value does not fit the target.
func (k entryKey) addTo(o *prompt.Overrides, value entryValue) error {
	if k.Tool != "" {
		t := o.Tools[k.Tool]
		if err := k.addToTool(&t, value); err != nil {
			return err
		}
		set(&o.Tools, k.Tool, t)
		return nil
	}
	s := o.Sections[k.Section]
	if err := k.addToSection(&s, value); err != nil {
		return err
	}
	set(&o.Sections, k.Section, s)
	return nil
}

func set[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

func (k entryKey) addToSection(s *prompt.SectionOverride, value entryValue) (err error) {
	if _, ok := exampleIndex(k.Target); ok {
		return addExample(&s.Examples, k, value)
	}
	if k.Target == targetSummary {
		s.SummaryHash = k.Hash
		s.Summary, err = readText(value)
		return err
	}
	s.Hash = k.Hash
	switch k.Target {
	case targetText:
		s.Text, err = readText(value)
	case targetVisibility:
		s.Visibility, err = readVisibility(value)
	case targetAppend:
		s.AppendExamples, err = readList[prompt.TaskExample](value)
	default:
		err = fmt.Errorf("a section has no target %q, but text, summary, visibility, examples[0] and so on, and appendExamples", k.Target)
	}
	return err
}

func (k entryKey) addToTool(t *prompt.ToolOverride, value entryValue) (err error) {
	if _, ok := exampleIndex(k.Target); ok {
		return addExample(&t.Examples, k, value)
	}
	t.Hash = k.Hash
	param, isParam := strings.CutPrefix(k.Target, paramPrefix)
	switch {
	case isParam:
		var text *string
		if text, err = readText(value); err == nil {
			set(&t.Params, param, *text)
		}
	case k.Target == targetDescription:
		t.Description, err = readText(value)
	case k.Target == targetAppend:
		t.AppendExamples, err = readList[tool.Example](value)
	default:
		err = fmt.Errorf("a tool has no target %q, but description, params.name, examples[0] and so on, and appendExamples", k.Target)
	}
	return err
}

func addExample[E any](examples *[]prompt.ExampleOverride[E], k entryKey, value entryValue) error {
	index, _ := exampleIndex(k.Target)
	e := prompt.ExampleOverride[E]{Index: index, Hash: k.Hash}
	if err := strictUnmarshal(value, &e.New); err != nil {
		return err
	}
	*examples = append(*examples, e)
	return nil
}

func readText(value entryValue) (*string, error) {
	var text lines
	err := text.UnmarshalJSON(value)
	return new(string(text)), err
}

func readVisibility(value entryValue) (*prompt.Visibility, error) {
	var word *string
	if err := json.Unmarshal(value, &word); err != nil || word == nil {
		return nil, errors.New(`a visibility must be "full" or "summary"`)
	}
	v := new(prompt.Visibility)
	return v, v.UnmarshalText([]byte(*word))
}

func readList[E any](value entryValue) ([]E, error) {
	var list []*E
	if err := strictUnmarshal(value, &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("a list of examples must not be empty")
	}
	var examples []E
	for _, e := range list {
		if e == nil {
			return nil, errors.New("an example must not be null")
		}
		examples = append(examples, *e)
	}
	return examples, nil
}
