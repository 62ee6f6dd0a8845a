// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
)

// ErrArgs is wrapped when arguments do not fit those of a file.
var ErrArgs = errors.New("the arguments do not fit")

// An Arg is an argument of an agent. One without a default is required.
type Arg struct {
	Type    string            `json:"type"`
	Doc     string            `json:"doc"`
	Default json.RawMessage   `json:"default"`
	Enum    []json.RawMessage `json:"enum"`
}

func (a Arg) required() bool { return a.Default == nil }

// Usage describes the type and the meaning of the argument.
func (a Arg) Usage() string {
	text := a.kind()
	if len(a.Enum) > 0 {
		text = "one of " + safetext.Few(a.choices())
	}
	if !a.required() {
		text += fmt.Sprintf(", or else %q", safetext.Start(plain(a.Default)))
	}
	if a.Doc != "" {
		text += ": " + safetext.Start(strings.TrimSpace(a.Doc))
	}
	return text
}

func (a Arg) kind() string {
	if a.Type == "" {
		return "string"
	}
	return a.Type
}

func (a Arg) choices() []string {
	var all []string
	for _, one := range a.Enum {
		all = append(all, plain(one))
	}
	return all
}

// plain returns a JSON scalar as text.
func plain(value json.RawMessage) string {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : n-1]) // most of them, and a file may have thousands
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(value))
}

// read checks a value and gives it the form in which it is put into texts.
func (a Arg) read(value string) (string, error) {
	text, ok := value, true
	switch trimmed := strings.TrimSpace(value); a.kind() {
	case "int":
		n, err := strconv.ParseInt(trimmed, 10, 64)
		text, ok = strconv.FormatInt(n, 10), err == nil
	case "number":
		n, err := strconv.ParseFloat(trimmed, 64)
		text, ok = trimmed, err == nil && !math.IsInf(n, 0) && !math.IsNaN(n)
	case "bool":
		text, ok = trimmed, trimmed == "true" || trimmed == "false"
	}
	switch {
	case !ok:
		return "", fmt.Errorf("%q is no %s", safetext.Start(value), a.kind())
	case len(a.Enum) > 0 && !slices.ContainsFunc(a.Enum, func(choice json.RawMessage) bool { return a.same(plain(choice), text) }):
		return "", fmt.Errorf("%q is not one of %s", safetext.Start(value), safetext.Few(a.choices()))
	}
	return text, nil
}

// same reports whether two values are one. A number can be written in several ways: 1, 1.0 and 1e0.
func (a Arg) same(one, other string) bool {
	if a.kind() != "number" {
		return one == other
	}
	x, _ := strconv.ParseFloat(one, 64)
	y, _ := strconv.ParseFloat(other, 64)
	return x == y
}

// fits reports whether a value of the file fits the argument. A number for a text is a likely mistake: 1.10 becomes 1.1.
func (a Arg) fits(value json.RawMessage) error {
	isText := bytes.HasPrefix(bytes.TrimSpace(value), []byte(`"`))
	if isText != (a.kind() == "string") {
		return fmt.Errorf("%s is no %s", safetext.Start(string(bytes.TrimSpace(value))), a.kind())
	}
	_, err := a.read(plain(value))
	return err
}

// values returns the values of all arguments. The error lists all that are missing, unknown or invalid, with their usage.
func (f *File) values(given map[string]string) (map[string]string, error) {
	all := map[string]string{}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(f.Args)) {
		arg := f.Args[name]
		value, set := given[name]
		if !set && arg.required() {
			wrong = append(wrong, fmt.Sprintf("%s is missing (%s)", name, arg.Usage()))
			continue
		}
		if !set {
			value = plain(arg.Default)
		}
		text, err := arg.read(value)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v (%s)", name, err, arg.Usage()))
		}
		all[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := f.Args[name]; !known {
			wrong = append(wrong, fmt.Sprintf("%s is not known (%s)", safetext.Start(name), f.known()))
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s: %w: %s", f.path, ErrArgs, strings.Join(wrong, "; "))
	}
	return all, nil
}

func (f *File) known() string {
	if len(f.Args) == 0 {
		return "the agent takes no arguments"
	}
	return "known: " + safetext.Few(slices.Sorted(maps.Keys(f.Args)))
}

// structOf is a struct with a field for each value. Prompts take their params from structs, and an agent
// that is read from a file has no type of its own.
func structOf(values map[string]string) any {
	names := slices.Sorted(maps.Keys(values))
	var fields []reflect.StructField
	for i, name := range names {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Arg%d", i), Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`prompt:` + strconv.Quote(name)),
		})
	}
	v := reflect.New(reflect.StructOf(fields)).Elem()
	for i, name := range names {
		v.Field(i).SetString(values[name])
	}
	return v.Interface()
}
