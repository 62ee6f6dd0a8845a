// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/isolation"
)

// minimal is the shortest agent there is. Cases add to it.
const minimal = "version: 1\nsections: [{key: a, title: A}]\n"

// Every key of a file is in testdata/all.yaml.
func TestParse_EveryKey(t *testing.T) {
	f, err := Load("testdata/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Sections[0].Children[0].Key, "more"; got != want {
		t.Errorf("the first child is %q, want %q", got, want)
	}
	if got, want := f.Limits, (Limits{Duration(5 * time.Minute), 10, 0.5, 10_000, Duration(10 * time.Second)}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	if got, want := *f.Mounts[0].MaxBytes, Bytes(10_000_000); got != want {
		t.Errorf("maxBytes %d, want %d", got, want)
	}
	if f.Policy.FileWrite != gate.LevelDeny || *f.Isolation.Level != isolation.LevelCell {
		t.Errorf("policy %+v, isolation %+v", f.Policy, f.Isolation)
	}
	if got, want := f.Path(), "testdata/all.yaml"; got != want {
		t.Errorf("path %q, want %q", got, want)
	}
}

// JSON is YAML too.
func TestParse_JSON(t *testing.T) {
	f, err := Load("testdata/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(f.tree.json, "all.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".path" || p.Last().String() == ".tree" }, cmp.Ignore()), cmp.AllowUnexported(File{})); diff != "" {
		t.Errorf("YAML and JSON differ (-yaml +json):\n%s", diff)
	}
}

func TestLoad_FileNameIsTheDefaultKey(t *testing.T) {
	f, err := Parse([]byte(minimal), "/somewhere/Triage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if f.Namespace != "agent" || f.Key != "triage" {
		t.Errorf("it is called %s:%s, want agent:triage", f.Namespace, f.Key)
	}
}

// misfits are files that do not fit the schema: so say Parse and the schema alike.
var misfits = map[string]struct{ file, where, says string }{
	"nothing":                    {"", "1:1", "the file is empty"},
	"only a comment":             {"# nothing\n", "1:1", "the file is empty"},
	"a list":                     {"- a\n", "1:1", "must be an object, got an array"},
	"another version":            {"version: 2\nsections: [{key: a, title: A}]\n", "1:1", "version: this version of the format is not known"},
	"no version":                 {"sections: [{key: a, title: A}]\n", "1:1", `key "version" is missing`},
	"no sections":                {"version: 1\n", "1:1", `key "sections" is missing`},
	"an unknown key":             {minimal + "colour: red\n", "3:1", "colour: there is no such key\n  next: choose among args, "},
	"a key that is nearly right": {minimal + "arg: {}\n", "3:1", "arg: there is no such key\n  next: write args"},
	"a nested unknown key":       {"version: 1\nsections:\n  - key: a\n    title: A\n    body: x\n", "5:5", "sections[0].body: there is no such key"},
	"a number for a text":        {minimal + "model: 4\n", "3:1", "model: must be a string, got an integer"},
	"a text for a number":        {minimal + "limits:\n  turns: many\n", "4:3", "limits.turns: must be an integer, got a string"},
	"nothing for a text":         {minimal + "model:\n", "3:1", "model: must be a string, got null"},
	"a limit of zero":            {minimal + "limits: {usd: 0}\n", "3:10", "limits.usd: must be above 0"},
	"a time without a unit":      {minimal + "limits: {time: \"5\"}\n", "3:10", "limits.time: the value does not have the right form\n  next: fix it: The time of a run: 90s"},
	"a size of another unit":     {minimal + "mounts: [{path: a, maxBytes: 5 pounds}]\n", "3:20", "maxBytes: the value does not have the right form"},
	"an unknown level":           {minimal + "policy: {fileWrite: maybe}\n", "3:10", `policy.fileWrite: must be one of "allow", "ask", "deny"`},
	"an unknown isolation":       {minimal + "isolation: {level: none}\n", "3:13", `must be one of "cell"`},
	"an unknown effort":          {minimal + "effort: some\n", "3:1", "effort: must be one of"},
	"an output that is no word":  {minimal + "output: json\n", "3:1", "output: the value does not have the right form"},
	"two outputs":                {minimal + "output: {file: a, schema: {}}\n", "3:1", "output: must have at most 1"},
	"two system prompts":         {minimal + "system: {append: a, replace: b}\n", "3:1", "system: must have at most 1"},
	"a server of two kinds":      {minimal + "servers: {x: {command: [a], url: \"http://b\"}}\n", "3:11", "servers.x: the keys do not go together"},
	"a server of no kind":        {minimal + "servers: {x: {}}\n", "3:11", "servers.x: the keys do not go together"},
	"a server like a tool":       {minimal + "servers: {drover__open: {command: [a]}}\n", "3:11", "next: fix the name: The name of a server"},
	"headers for a command":      {minimal + "servers: {x: {command: [a], headers: {b: c}}}\n", "3:11", `key "url" is missing`},
	"an argument's name":         {minimal + "args: {a-b: {}}\n", "3:8", "next: fix the name"},
	"an argument's type":         {minimal + "args: {a: {type: date}}\n", "3:12", "args.a.type: must be one of"},
	"a list as a default":        {minimal + "args: {a: {default: [b]}}\n", "3:12", "args.a.default: must be"},
	"a section's key":            {"version: 1\nsections: [{key: A B, title: A}]\n", "2:13", "sections[0].key: the value does not have the right form"},
	"a section's title":          {"version: 1\nsections: [{key: a, title: \" \"}]\n", "2:21", "sections[0].title: the value does not have the right form"},
	"a visibility":               {"version: 1\nsections: [{key: a, title: A, visibility: hidden}]\n", "2:31", "must be one of"},
	"a mount of nothing":         {minimal + "mounts: [{as: a}]\n", "3:10", `mounts[0]: key "path" is missing`},
	"feedback at no time":        {minimal + "feedback: [{text: a}]\n", "3:12", "feedback[0]: the keys do not go together"},
	"feedback of two kinds":      {minimal + "feedback: [{text: a, deadline: 1m, everyCalls: 1}]\n", "3:12", "feedback[0]: the keys do not go together"},
	"completion by nothing":      {minimal + "completion: {rounds: 1}\n", "3:1", "completion: the keys do not go together"},
	"a file without a name":      {minimal + "completion: {files: [\"\"]}\n", "3:22", "has 0\n  next: fix it: Files that have to be there"},
	"a command as a text":        {minimal + "completion: {command: go test}\n", "3:14", "completion.command: must be an array, got a string"},
}

// oddities are files whose form is wrong before any schema is asked.
var oddities = map[string]struct{ file, where, says string }{
	"no YAML":         {"version: 1\nsections: [\n", "2:", ""},
	"a key twice":     {minimal + "model: a\nmodel: b\n", "4:1", "model: the key is there already, in line 3\n  next: remove one of the two"},
	"two documents":   {minimal + "---\n" + minimal, "4:1", "a second one begins here"},
	"an anchor":       {minimal + "model: &m a\n", "3:8", "model: an anchor or an alias is not supported"},
	"an alias":        {minimal + "model: &m a\neffort: *m\n", "3:8", "an anchor or an alias"},
	"a tag":           {minimal + "model: !!str 4\n", "3:8", "model: a tag is not supported"},
	"a merge":         {minimal + "policy:\n  <<: {readOnly: true}\n", "4:3", "a key is not a plain text"},
	"a list as a key": {minimal + "? [a]\n: b\n", "3:1", "begins with ?"},
	"too deep":        {minimal + "args: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), "3:206", "brackets or list markers"},
	"too long":        {minimal + "description: " + strings.Repeat("a", maxFile), "1:1", "larger than"},
	"octal":           {minimal + "args: {n: {type: int, default: 010}}\n", "3:32", "args.n.default: a number with a zero in front"},
	"infinity":        {minimal + "limits: {usd: .inf}\n", "3:", ""},
}

// nonsense are files that fit the schema and have no meaning.
var nonsense = map[string]struct{ file, where, says string }{
	"an unknown placeholder": {
		"version: 1\nargs: {path: {}}\nsections:\n  - key: a\n    title: A\n    text: |\n      one\n        two ${nope}\n",
		"8:13", "sections[0].text: there is no argument for the placeholder $nope (known: path)\n  next: declare it under args, or write $$",
	},
	"a placeholder without arguments": {"version: 1\nsections: [{key: a, title: A, text: \"${x}\"}]\n", "2:31", "placeholder $x (the agent takes no arguments)"},
	"a broken placeholder":            {"version: 1\nsections: [{key: a, title: A, text: \"${x\"}]\n", "2:31", "sections[0].text: "},
	"a key twice among siblings":      {"version: 1\nsections: [{key: a, title: A}, {key: a, title: B}]\n", "2:33", "two sections side by side"},
	"a summary that is missing":       {"version: 1\nsections: [{key: a, title: A, visibility: summary}]\n", "2:31", "sections[0].visibility: the section has no summary"},
	"skills without a section":        {"version: 1\nargs: {x: {}}\nsections: [{key: a, title: A, when: {x: b}}]\nskills: [s]\n", "4:1", "skills: no section is always shown"},
	"a default of another type":       {minimal + "args: {n: {type: int, default: x}}\n", "3:23", `args.n.default: "x" is no int`},
	"a number as a text":              {minimal + "args: {v: {default: 1.10}}\n", "3:12", "args.v.default: 1.1 is no string\n  next: write a value of the type, texts in quotes"},
	"a default that is no choice":     {minimal + "args: {n: {enum: [a, b], default: c}}\n", "3:26", `"c" is not one of a, b`},
	"a choice of another type":        {minimal + "args: {n: {type: bool, enum: [true, perhaps]}}\n", "3:37", `args.n.enum[1]: "perhaps" is no bool`},
	"when of nothing known":           {"version: 1\nsections: [{key: a, title: A, when: {x: 1}}]\n", "2:38", "sections[0].when.x: there is no argument x"},
	"when with another value":         {"version: 1\nargs: {x: {type: bool}}\nsections: [{key: a, title: A, when: {x: often}}]\n", "3:38", `"often" is no bool`},
	"an invalid schema":               {minimal + "output:\n  schema:\n    type: object\n    properties:\n      a: {type: nope}\n", "7:11", "output.schema.properties.a.type: it is no JSON Schema for an answer"},
	"a tool in small letters":         {minimal + "tools: {allow: [read]}\n", "3:17", "tools.allow[0]: there is no tool read\n  next: write Read"},
	"a rule for small letters":        {minimal + "policy: {requireBefore: {write: [Read]}}\n", "3:26", "policy.requireBefore.write: there is no tool write\n  next: write Write"},
	"a rule of small letters":         {minimal + "policy: {requireBefore: {Write: [read]}}\n", "3:34", "policy.requireBefore.Write[0]: there is no tool read"},
	"a misspelled tool":               {minimal + "tools: {deny: [Read, Bsah]}\n", "3:22", "tools.deny[1]: there is no tool Bsah\n  next: write Bash; if it is a tool of a newer agent, or is added later, name it in tools.unknown too"},
	"a misspelled rule":               {minimal + "policy: {deny: [\"Bsah(git push *)\"]}\n", "3:17", "policy.deny[0]: there is no tool Bsah\n  next: write Bash"},
	"a tool like no other":            {minimal + "policy: {allow: [Frobnicate]}\n", "3:18", "policy.allow[0]: there is no tool Frobnicate\n  next: correct the name; if"},
	"a misspelled server":             {minimal + "tools: {deny: [mcp__lnit__check]}\nservers: {lint: {command: [tool]}}\n", "3:16", "tools.deny[0]: there is no tool mcp__lnit__check\n  next: write mcp__lint__check"},
	"a server in our former place":    {minimal + "servers: {wink: {command: [tool]}}\n", "3:11", "servers.wink: the name is that of the server with the tools of the prompt\n  next: "},
	"a server in our place":           {minimal + "servers: {drover: {command: [tool]}}\n", "3:11", "servers.drover: the name is that of the server with the tools of the prompt\n  next: "},
	"an invalid rule":                 {minimal + "policy: {deny: [\"Read(\"]}\n", "3:17", "policy.deny[0]: "},
	"a mount without a place":         {minimal + "mounts: [{path: .}]\n", "3:11", "mounts[0].path: \".\" is not a path in the workspace"},
	"a mount outside":                 {minimal + "mounts: [{path: a, as: ../b}]\n", "3:20", "is not a path in the workspace"},
	"an invalid glob":                 {minimal + "mounts: [{path: a, exclude: [b, \"[\"]}]\n", "3:33", "mounts[0].exclude[1]: the glob \"[\" cannot be read"},
	"a glob of nothing":               {minimal + "mounts: [{path: a, include: [/b]}]\n", "3:30", "mounts[0].include[0]: the glob \"/b\" matches nothing\n  next: "},
	"mounts in one another":           {minimal + "mounts: [{path: a, as: x}, {path: b, as: x/y}]\n", "3:28", "mounts[1]: its path overlaps that of mounts[0]"},
	"an invalid domain":               {minimal + "isolation: {network: {domains: [\"a b\"]}}\n", "3:33", "is no host"},
	"a tool without its bracket":      {minimal + "tools: {allow: [\"Bash(ls\"]}\n", "3:17", "the closing parenthesis is missing"},
	"a network without isolation":     {minimal + "isolation: {level: host, network: {localhost: true}}\n", "3:26", "has no meaning with level: host"},
	"a server outside the isolation":  {minimal + "servers: {x: {url: \"https://tools.example.com/mcp\"}}\n", "3:15", "cannot reach tools.example.com from within its isolation\n  next: add it to isolation.network.domains"},
	"a server on this machine":        {minimal + "servers: {x: {url: \"http://localhost:80/\"}}\n", "3:15", "next: add isolation: {network: {localhost: true}}"},
	"a server with a password":        {minimal + "isolation: {network: {localhost: true}}\nservers: {x: {url: \"http://a:b@localhost/\"}}\n", "4:15", "a file is no place for secrets"},
	"a program of the host":           {minimal + "servers: {x: {command: [/opt/tool]}}\n", "3:25", "which the agent does not see"},
	"a program in no mount":           {minimal + "mounts: [{path: a}]\nservers: {x: {command: [b/tool]}}\n", "4:25", "is in no mount"},
	"a server that is not allowed":    {minimal + "tools: {allow: [Read, mcp__other]}\nservers: {other: {command: [tool]}, x: {command: [tool]}}\n", "4:37", "next: add mcp__x there"},
	"no time at all":                  {minimal + "limits:\n  turns: 1\n  time: 0s\n", "5:3", "limits.time: \"0s\" is no time above zero\n  next: fix it: The time of a run"},
	"a time without an end":           {minimal + "feedback: [{text: a, every: 99999999999h}]\n", "3:22", "feedback[0].every: \"99999999999h\" is no time"},
	"a size without an end":           {minimal + "mounts: [{path: a, maxBytes: 99999999999999GB}]\n", "3:20", "mounts[0].maxBytes: \"99999999999999GB\" is no size\n  next: fix it: The largest size"},
	"a large number of bytes":         {minimal + "mounts: [{path: a, maxBytes: 9223372036854775807}]\n", "3:20", "mounts[0].maxBytes: "},
	"a server in a hurry":             {minimal + "servers: {x: {command: [tool], timeout: 5ms}}\n", "3:32", "less than a second"},
	"a file outside":                  {minimal + "completion: {files: [/etc/passwd]}\n", "3:22", "outside of the folder"},
	"a command without a name":        {minimal + "completion: {command: [\"\"]}\n", "3:24", "names no program"},
	"the time twice":                  {minimal + "feedback: [{deadline: 1m, every: 1m}, {deadline: 2m, every: 1m}]\n", "3:40", "reported already"},
}

func TestParse_ProblemsHaveTheirPosition(t *testing.T) {
	for _, table := range []map[string]struct{ file, where, says string }{misfits, oddities, nonsense} {
		for name, c := range table {
			_, err := Parse([]byte(c.file), "x.yaml")
			p, ok := errors.AsType[*Problem](err)
			if !ok {
				t.Errorf("%s: error %v, want a problem", name, err)
				continue
			}
			if text := advice.Text(err); !strings.HasPrefix(text, "x.yaml:"+c.where) || !strings.Contains(text, c.says) {
				t.Errorf("%s: got\n%v\nwant %s: ...%s", name, err, c.where, c.says)
			}
			if p.Advice() == "" {
				t.Errorf("%s: it does not say what to do: %v", name, err)
			}
		}
	}
}

// To show the place takes the square of the length of its line: minutes for a file of a megabyte.
func TestParse_SyntaxErrorDoesNotQuoteTheFile(t *testing.T) {
	_, err := Parse([]byte("x: "+strings.Repeat("[]", 10_000)), "x.yaml")
	if err == nil || len(advice.Text(err)) > 200 {
		t.Errorf("error of %d bytes, want a short one", len(fmt.Sprint(err)))
	}
}

func TestParse_ReportsAllProblems(t *testing.T) {
	_, err := Parse([]byte("version: 3\nsections:\n  - key: A\n    titel: x\nlimits: {turns: 0, time: 5}\nmodel: a\nmodel: b\n"), "x.yaml")
	var got []string
	for line := range strings.Lines(advice.Text(err)) {
		if !strings.HasPrefix(line, "  next:") {
			got = append(got, strings.Split(line, ": ")[1])
		}
	}
	want := []string{"version", "sections[0]", "sections[0].key", "sections[0].titel", "limits.turns", "limits.time", "model"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%v", diff, err)
	}
}

func TestParse_CountsAreBounded(t *testing.T) {
	unknown := each(5000, func(i int) string { return fmt.Sprintf("z%d: 1, ", i) })
	_, err := Parse([]byte(costHead+"limits: {"+unknown+"}\n"), "x.yaml")
	want := fmt.Sprintf("there are %d more problems\n  next: fix these first", strings.Count(unknown, ",")-maxProblems)
	if lines := strings.Count(advice.Text(err), "x.yaml:"); lines != maxProblems+1 || !strings.HasSuffix(advice.Text(err), want) {
		t.Errorf("%d lines, the end is %q; want %d and %q", lines, advice.Text(err)[len(advice.Text(err))-100:], maxProblems+1, want)
	}
	_, err = Parse([]byte("version: 1\nargs: {a: {default: x}}\nsections: [{key: t, title: T, text: \""+strings.Repeat("${a}", maxDollars+1)+"\"}]\n"), "x.yaml")
	if err == nil || !strings.Contains(advice.Text(err), "and may have 10000") {
		t.Errorf("more placeholders than there may be: %v", err)
	}
}

// The published schema refuses what Parse refuses, and takes what Parse takes.
func TestSchema_AgreesWithParse(t *testing.T) {
	for name, c := range misfits {
		body, problem := document([]byte(c.file))
		if problem != nil {
			continue // it is no document at all
		}
		tree, _ := grow("x.yaml", body)
		if err := agentFormat.schema().Validate(tree.json); err == nil {
			t.Errorf("%s: the schema takes it", name)
		}
	}
	examples, err := filepath.Glob("../examples/agents/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range append(examples, "testdata/all.yaml") {
		if strings.HasSuffix(path, ".script.yaml") {
			continue
		}
		seen++
		f, err := Load(path)
		if err != nil {
			t.Errorf("%v", err)
		} else if err := agentFormat.schema().Validate(f.tree.json); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if seen < 3 {
		t.Errorf("only %d examples found", seen)
	}
	published, err := os.ReadFile("schema.json")
	if err != nil || string(published) != string(Schema()) {
		t.Errorf("Schema differs from schema.json (%v)", err)
	}
}

// A key of the schema that no field reads would be dropped in silence.
func TestSchema_EveryKeyHasAField(t *testing.T) {
	keys := func(h hint, of any) {
		t.Helper()
		typ := reflect.TypeOf(of)
		tags := map[string]bool{"$schema": true}
		for i := range typ.NumField() {
			tags[typ.Field(i).Tag.Get("json")] = true
		}
		for key := range h.Properties {
			if !tags[key] {
				t.Errorf("no field of %v is for the key %s", typ, key)
			}
		}
		for tag := range tags {
			if _, known := h.Properties[tag]; !known && tag != "-" && tag != "" && tag != "$schema" {
				t.Errorf("the schema does not know %s of %v", tag, typ)
			}
		}
	}
	top := agentFormat.hints()
	keys(top, File{})
	for key, of := range map[string]any{
		"system": System{}, "output": Output{}, "tools": Tools{}, "policy": Policy{}, "limits": Limits{},
		"isolation": Isolation{}, "completion": Completion{},
	} {
		keys(top.Properties[key], of)
	}
	keys(top.Properties["isolation"].Properties["network"], Network{})
	for key, of := range map[string]any{"arg": Arg{}, "section": Section{}, "server": Server{}, "mount": Mount{}, "feedback": Feedback{}} {
		keys(top.Defs[key], of)
	}
}

func FuzzParse(f *testing.F) {
	all, err := os.ReadFile("testdata/all.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(all))
	for _, table := range []map[string]struct{ file, where, says string }{misfits, oddities, nonsense} {
		for _, c := range table {
			if len(c.file) < 1000 {
				f.Add(c.file)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse([]byte(text), "x.yaml")
		if err == nil {
			if !json.Valid(got.tree.json) {
				t.Errorf("the tree is no JSON: %s", got.tree.json)
			}
			got.Options()
			return
		}
		for _, one := range unjoin(err) {
			p, ok := errors.AsType[*Problem](one)
			if !ok || p.Line < 1 || p.Column < 1 || p.File != "x.yaml" || p.Reason == "" {
				t.Errorf("%q: a problem without a place: %#v", text, one)
			}
		}
	})
}

func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
