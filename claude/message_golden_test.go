// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// dumpMessage shows everything in a message or a block, without zero values.
func dumpMessage(v any) any { return dumpValue(reflect.ValueOf(v)) }

func dumpValue(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case time.Duration:
		return x.String()
	case json.RawMessage:
		return "raw " + string(x)
	case Block:
		out := dumpStruct(reflect.ValueOf(x).Elem())
		out["(block)"] = strings.TrimPrefix(fmt.Sprintf("%T %s", x, x.Type()), "*claude.")
		return out
	case Message:
		out := dumpStruct(reflect.ValueOf(x).Elem())
		out["(message)"] = strings.TrimPrefix(fmt.Sprintf("%T %s %s", x, x.Type(), x.Subtype()), "*claude.")
		return out
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return dumpValue(v.Elem())
	case reflect.Struct:
		return dumpStruct(v)
	case reflect.Slice:
		out := []any{}
		for i := range v.Len() {
			out = append(out, dumpValue(v.Index(i)))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, key := range v.MapKeys() {
			out[key.String()] = dumpValue(v.MapIndex(key))
		}
		return out
	}
	return v.Interface()
}

func dumpStruct(v reflect.Value) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || v.Field(i).IsZero() {
			continue
		}
		if !field.Anonymous {
			out[field.Name] = dumpValue(v.Field(i))
			continue
		}
		for name, inner := range dumpStruct(v.Field(i)) {
			out[name] = inner
		}
	}
	return out
}

func dumpMessageJSON(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(dumpMessage(v)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// wantSuffix marks the section that says what the line of the section before it decodes to.
const wantSuffix = ".want"

func goldenMessageFiles(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/messages/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no test data", err)
	}
	return paths
}

// goldenLines calls f with every line of testdata/messages.
func goldenLines(t testing.TB, f func(name string, line []byte)) {
	t.Helper()
	for _, path := range goldenMessageFiles(t) {
		for _, s := range readGolden(t, path).Files {
			if !strings.HasSuffix(s.Name, wantSuffix) {
				f(filepath.Base(path)+": "+s.Name, bytes.TrimSuffix(s.Data, []byte("\n")))
			}
		}
	}
}

func TestMessage_Golden(t *testing.T) {
	for _, path := range goldenMessageFiles(t) {
		golden := readGolden(t, path)
		want := map[string]string{}
		for _, s := range golden.Files {
			if name, ok := strings.CutSuffix(s.Name, wantSuffix); ok {
				want[name] = string(s.Data)
			}
		}
		rewritten := &txtar.Archive{Comment: golden.Comment}
		for _, s := range golden.Files {
			if strings.HasSuffix(s.Name, wantSuffix) {
				continue
			}
			got := decodeGolden(t, path+": "+s.Name, bytes.TrimSuffix(s.Data, []byte("\n")))
			if diff := cmp.Diff(want[s.Name], got); diff != "" && !*update {
				t.Errorf("%s: %s (-want +got):\n%s", path, s.Name, diff)
			}
			rewritten.Files = append(rewritten.Files, s, txtar.File{Name: s.Name + wantSuffix, Data: []byte(got)})
		}
		writeGolden(t, path, rewritten)
	}
}

func decodeGolden(t *testing.T, name string, line []byte) string {
	t.Helper()
	m, err := DecodeMessage(line)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !bytes.Equal(m.Raw(), line) {
		t.Errorf("%s: Raw is not the line", name)
	}
	return string(dumpMessageJSON(t, m))
}

// TestMessage_GoldenSetsEveryField fails when a type or a field exists that no line of the test data
// fills: then its name on the wire is not tested.
func TestMessage_GoldenSetsEveryField(t *testing.T) {
	set, all := map[string]bool{}, map[string]bool{}
	for _, kind := range messageKinds {
		allFields(reflect.TypeOf(kind.make()), all)
	}
	for _, block := range []Block{
		new(TextBlock), new(ThinkingBlock), new(RedactedThinkingBlock), new(ToolUseBlock), new(ServerToolUseBlock), new(ToolResultBlock),
		new(ServerToolResultBlock), new(ImageBlock), new(DocumentBlock), new(SearchResultBlock), new(UnknownBlock),
	} {
		allFields(reflect.TypeOf(block), all)
	}
	goldenLines(t, func(name string, line []byte) {
		m, err := DecodeMessage(line)
		if err != nil {
			t.Fatal(name, err)
		}
		setFields(reflect.ValueOf(m), set)
	})
	for field := range all {
		if !set[field] {
			t.Errorf("%s is set by no line in testdata/messages", field)
		}
	}
}

func allFields(typ reflect.Type, out map[string]bool) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() == "time" || out[typ.Name()] {
		return
	}
	out[typ.Name()] = true
	for i := range typ.NumField() {
		if field := typ.Field(i); field.IsExported() {
			if !field.Anonymous {
				out[typ.Name()+"."+field.Name] = true
			}
			allFields(field.Type, out)
		}
	}
}

func setFields(v reflect.Value, out map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			setFields(v.Elem(), out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			setFields(v.Index(i), out)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			setFields(v.MapIndex(key), out)
		}
	case reflect.Struct:
		out[v.Type().Name()] = true
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && !v.Field(i).IsZero() {
				out[v.Type().Name()+"."+field.Name] = true
				setFields(v.Field(i), out)
			}
		}
	}
}
