// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

func writeFile(t testing.TB, f *File, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(f.Path()), 0o700), os.WriteFile(f.Path(), []byte(text), 0o600))
}

// entry is a file with one entry, in its third line.
func entry(fields string) string {
	return "{\"version\": 1,\n\"overrides\": [\n{" + fields + "}\n]}"
}

func TestFile_InvalidFileIsAnErrorWithItsPosition(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "1:1: "},
		{"half", "{\"version\": 1,\n \"overr", "2:8: "},
		{"a conflict of two branches", "{\n<<<<<<< HEAD\n  \"version\": 1\n}", "2:1: "},
		{"two values", "{\"version\": 1}\n{}", "2:1: "},
		{"a comma too many", "{\n \"version\": 1,\n}", "3:1: "},
		{"not UTF-8", "{\"version\": 1,\n \"ä\xff\"", "2:4: a character is not UTF-8"},
		{"no version", "{\"overrides\": []}", "1:1: there is no version"},
		{"a list", "[]", "1:1: there is no version"},
		{"a version in words", "{\n \"version\": \"one\"}", "2:13: the version must be a number from 1"},
		{"a later version", "{\n  \"version\": 2, \"rules\": []}", "2:14: it has version 2, but this program knows versions up to 1; a later Drover reads it"},
		{"an unknown name", "{\"version\": 1,\n \"override\": []}", `2:14: unknown name "override"`},
		{"a name twice", "{\"version\": 1, \"version\": 1}", `1:27: "version" is there twice`},
		{"no list", "{\"version\": 1, \"overrides\": {}}", "1:29: overrides must be a list"},
		{"no entry", "{\"version\": 1, \"overrides\": [\n7]}", "2:1: there must be an object here"},
		{"an unknown name in an entry", entry(`"section":"a","Target":"text"`), `3:25: unknown name "Target"`},
		{"a hash that is a number", entry(`"section":"a","target":"text","hash":7`), "3:39: there must be a string here"},
		{"for nothing", entry(`"target":"text","hash":"h","value":"x"`), "3:1: an override is for a section or for a tool"},
		{"for two", entry(`"section":"a","tool":"b","target":"text","hash":"h","value":"x"`), "3:1: an override is for a section or for a tool"},
		{"no value", entry(`"section":"a","target":"text","hash":"h"`), `3:1: the override of section "a": text has no value`},
		{"an unknown part of a section", entry(`"section":"a","target":"description","hash":"h","value":"x"`), `3:58: section "a": description: a section has no target "description"`},
		{"an unknown part of a tool", entry(`"tool":"a","target":"examples[01]","hash":"h","value":null`), `3:56: tool "a": examples[01]: a tool has no target "examples[01]"`},
		{"a text that is a number", entry(`"section":"a","target":"text","hash":"h","value":7`), `3:51: section "a": text: a text must be a string or a list of its lines`},
		{"a text that is null", entry(`"section":"a","target":"text","hash":"h","value":null`), "a text must be a string or a list of its lines, not null"},
		{"lines that are null", entry(`"section":"a","target":"summary","hash":"h","value":[null]`), "a text must be a string or a list of its lines, not null"},
		{"an unknown visibility", entry(`"section":"a","target":"visibility","hash":"h","value":"none"`), `visibility "none" is neither full nor summary`},
		{"a visibility that is null", entry(`"section":"a","target":"visibility","hash":"h","value":null`), `a visibility must be "full" or "summary"`},
		{"an example with an unknown name", entry(`"section":"a","target":"examples[0]","hash":"h","value":{"goal":"x"}`), `3:58: section "a": examples[0]: json: unknown field "goal"`},
		{"an example that is null", entry(`"tool":"a","target":"appendExamples","hash":"h","value":[null]`), "an example must not be null"},
		{"no examples", entry(`"section":"a","target":"appendExamples","hash":"h","value":[]`), "a list of examples must not be empty"},
		{
			"the same twice", entry(`"section":"a","target":"text","hash":"h","value":"x"},` + "\n" + `{"value":["x"],"section":"a","target":"text","hash":"h"`),
			`4:1: section "a": text is overridden twice for the same hash`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mustFile(t, t.TempDir(), mustBind(t, overridable(), fileArgs{}), "")
			writeFile(t, f, c.file)
			_, _, err := f.Resolve()
			if err == nil || !errors.Is(err, ErrFile) || !strings.Contains(advice.Text(err), c.want) || !strings.Contains(advice.Text(err), f.Path()) {
				t.Errorf("got %v\nwant %s with %q", err, f.Path(), c.want)
			}
			if err := f.SetText(t.Context(), "bare", "x"); !errors.Is(err, ErrFile) {
				t.Errorf("a setter: got %v, want it to refuse the file", err)
			}
			if got, _ := os.ReadFile(f.Path()); string(got) != c.file {
				t.Errorf("the file was changed to %q", got)
			}
		})
	}
}

// A file is right by its form but has something for the texts at hand that cannot be applied.
func TestFile_InapplicableOverrideNamesItsFile(t *testing.T) {
	f := mustFile(t, t.TempDir(), mustBind(t, overridable(), fileArgs{}), "")
	writeFile(t, f, entry(`"section":"task","target":"text","hash":"`+hash([]byte("Old text about $path."))+`","value":["a","$other"]`))
	_, _, err := f.Resolve()
	if want := `: prompt: demo:test: section "task": override of text 2:1: unknown placeholder $other (known: path, lines)`; !errors.Is(err, prompt.ErrOverride) || advice.Text(err) != f.Path()+want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFile_SettersRejectInapplicableOverrides(t *testing.T) {
	p, ctx := mustBind(t, overridable(), fileArgs{}), t.Context()
	bad := "a\xff"
	for _, c := range []struct {
		name string
		set  func(context.Context, *File) error
		want string
	}{
		{"an unknown section", func(ctx context.Context, f *File) error { return f.SetText(ctx, "tusk", "x") }, "section \"tusk\": override of text: there is no such section\n  next: use one of task, bare"},
		{"a fixed section", func(ctx context.Context, f *File) error { return f.SetSummary(ctx, "fixed", "x") }, "section \"fixed\": override of summary: the section takes no overrides\n  next: use one of task, bare"},
		{"an unknown tool", func(ctx context.Context, f *File) error { return f.SetDescription(ctx, "lose", "x") }, "override of tool lose: description: there is no such tool\n  next: use one of find, save"},
		{"a tool of a fixed section", func(ctx context.Context, f *File) error { return f.SetParam(ctx, "keep", "query", "x") }, "override of tool keep: params.query: the section takes no overrides"},
		{"an unknown parameter", func(ctx context.Context, f *File) error { return f.SetParam(ctx, "save", "filter", "x") }, ""},
		{"a parameter that is not there", func(ctx context.Context, f *File) error { return f.SetParam(ctx, "find", "words", "x") }, `it has no parameter "words" (known: limit, query)`},
		{"a parameter without a name", func(ctx context.Context, f *File) error { return f.SetParam(ctx, "find", "", "x") }, `it has no parameter ""`},
		{"an unknown example", func(ctx context.Context, f *File) error { return f.SetExample(ctx, "task", 2, nil) }, "there is no examples[2]\n  next: it has 2 examples"},
		{"an example before the first", func(ctx context.Context, f *File) error { return f.SetToolExample(ctx, "find", -1, nil) }, "there is no examples[-1]"},
		{"an example without a task", func(ctx context.Context, f *File) error { return f.AppendExample(ctx, "task", prompt.TaskExample{}) }, "Objective is empty"},
		{"an example of an unknown section", func(ctx context.Context, f *File) error {
			return f.AppendExample(ctx, "tusk", prompt.TaskExample{Objective: "o"})
		}, "there is no such section"},
		{"an example that does not fit the tool", func(ctx context.Context, f *File) error {
			return f.AppendToolExample(ctx, "find", tool.Example{Input: []byte(`{"query":7}`)})
		}, "it does not fit the tool"},
		{"a placeholder that is not known", func(ctx context.Context, f *File) error { return f.SetText(ctx, "task", "$other") }, "override of text 1:1: unknown placeholder $other"},
		{"an empty description", func(ctx context.Context, f *File) error { return f.SetDescription(ctx, "find", " ") }, "Description is empty"},
		{"no such visibility", func(ctx context.Context, f *File) error { return f.SetVisibility(ctx, "task", 7) }, "neither full nor summary"},
		{"a summary to be shown that is not there", func(ctx context.Context, f *File) error { return f.SetVisibility(ctx, "bare", prompt.Summary) }, `section "bare": only a summary is to be shown, but the section has none`},
		{"a text that is not UTF-8", func(ctx context.Context, f *File) error { return f.SetText(ctx, "bare", bad) }, "override of text: it has text that is not UTF-8"},
		{"an example that is not UTF-8", func(ctx context.Context, f *File) error {
			return f.AppendExample(ctx, "bare", prompt.TaskExample{Objective: bad})
		}, "not UTF-8"},
		{"JSON that is not UTF-8", func(ctx context.Context, f *File) error {
			return f.AppendToolExample(ctx, "find", tool.Example{Input: []byte(`{"query":"` + bad + `"}`)})
		}, "not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mustFile(t, t.TempDir(), p, "")
			err := c.set(ctx, f)
			if c.want == "" {
				must(t, err)
				return
			}
			if !errors.Is(err, prompt.ErrOverride) || !strings.Contains(advice.Text(err), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if _, err := os.Stat(f.Path()); err == nil {
				t.Error("a file was written")
			}
		})
	}
}

func TestFile_CancelledSetterWritesNothing(t *testing.T) {
	f := mustFile(t, t.TempDir(), mustBind(t, overridable(), fileArgs{}), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.SetText(ctx, "bare", "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if o, _ := mustResolve(t, f); o.Sections != nil {
		t.Errorf("got %v", o)
	}
}

func TestFile_UnchangedContentIsNotWritten(t *testing.T) {
	f := mustFile(t, t.TempDir(), mustBind(t, overridable(), fileArgs{}), "")
	must(t, f.SetText(t.Context(), "bare", "x"))
	before, err := os.Stat(f.Path())
	must(t, err, f.SetText(t.Context(), "bare", "x"))
	after, err := os.Stat(f.Path())
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("the file was replaced by one with the same content")
	}
}

// Whatever is read can be written, and is then read again as the same.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"version":1}`, `{"version":1,"overrides":[]}`, `{"version":2}`,
		entry(`"section":"a","target":"text","hash":"h","value":["<x>","y\u0000"]`),
		entry(`"section":"a","target":"summary","hash":"","value":"\ud800"`),
		entry(`"tool":"a","target":"params.b.c","hash":"h","value":"x"`),
		entry(`"tool":"a","target":"examples[0]","hash":"h","value":{"input":{"a":1e400}}`),
		entry(`"section":"a","target":"appendExamples","hash":"h","value":[{"objective":"o","steps":[{"text":"t"}]}]`),
		entry(`"section":"a","target":"visibility","hash":"h","value":"SUMMARY"`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := decodeEntries(data)
		if err != nil {
			flaw, ok := errors.AsType[*flawInFile](err)
			if !ok || flaw.offset < 0 || flaw.offset > len(data) {
				t.Fatalf("the error has no place: %#v", err)
			}
			return
		}
		first, err := all.encode()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := decodeEntries(first)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, first)
		}
		second, err := again.encode()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v (-first +second):\n%s", err, cmp.Diff(string(first), string(second)))
		}
		if len(all) != len(again) {
			t.Fatalf("got %d entries, then %d", len(all), len(again))
		}
	})
}
