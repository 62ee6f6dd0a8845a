// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/schema"
)

// aReview writes a review with these findings, and returns its path.
func aReview(t *testing.T, findings ...finding) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "review.json")
	if err := writeJSON(path, codeReview{Summary: "It is a shop.", Findings: findings}); err != nil {
		t.Fatal(err)
	}
	return path
}

// A command is a workflow command as the runner of GitHub Actions understands it.
type workflowCommand struct {
	name, properties, text string
}

// workflowCommands reads a log as the runner does: "::" counts at the start of a line after spaces, and "##[" counts
// anywhere, but not while commands are stopped.
func workflowCommands(log string) (found []workflowCommand) {
	stopped := ""
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(log), "\n") {
		var c workflowCommand
		if rest, is := strings.CutPrefix(strings.TrimLeft(line, " \t\v\f\u00a0\u2028"), "::"); is && strings.Contains(rest, "::") {
			head, text, _ := strings.Cut(rest, "::")
			c.name, c.properties, _ = strings.Cut(head, " ")
			c.text = text
		} else if _, rest, is := strings.Cut(line, "##["); is && strings.Contains(rest, "]") {
			c.name, c.text, _ = strings.Cut(rest, "]")
		} else {
			continue
		}
		switch {
		case stopped != "":
			if c.name == stopped {
				stopped = ""
			}
		case c.name == "stop-commands":
			stopped = c.text
		default:
			found = append(found, c)
		}
	}
	return found
}

var (
	unescapeText     = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%")
	unescapeProperty = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%")
)

// attacks are texts of a model that a runner, a shell or a terminal would act upon.
var attacks = []string{
	"one\n::add-mask::x\n::set-output name=run::y", "one\r::stop-commands::x", "%0A::error::y", "::error::x", "##[add-mask]x", "a ##[set-env name=PATH]/tmp",
	"$(touch pwned)", "`touch pwned`", `"; touch pwned #`, "\x1b]0;title\a\x1b[2J", "\u202egnp.exe", "\x00", "[press](https://example.com)", "{0} {{1}}",
}

// Whatever a model writes, a finding is one command of the runner, with the text that was written.
func TestReport_AnnotationsHoldHostileText(t *testing.T) {
	for _, text := range attacks {
		name := filepath.Join(t.TempDir(), "review.sarif")
		code, out, errs := command(t, "report", "--annotations", "--sarif", name,
			aReview(t, finding{"a,b:c%/d::e.go", 3, "error", "lost-error", text}, finding{"x.go", 1, "note", "style", text}))
		if code != 0 || errs != "" {
			t.Fatalf("%q: exit code %d: %s", text, code, errs)
		}
		want := []workflowCommand{
			{"error", "file=a%2Cb%3Ac%25/d%3A%3Ae.go,line=3,title=lost-error", safetext.Lines(text)},
			{"notice", "file=x.go,line=1,title=style", safetext.Lines(text)},
		}
		got := workflowCommands(out)
		for i := range got {
			got[i].text = unescapeText.Replace(got[i].text)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(workflowCommand{})); diff != "" {
			t.Errorf("%q: commands (-want +got):\n%s", text, diff)
		}
		checkSARIF(t, name)
	}
}

func TestReport_LinesAreNoCommands(t *testing.T) {
	for _, text := range append(slices.Clone(attacks), "::error::x/a.go", "a##[error]b") {
		file := aReview(t, finding{text, 1, "error", "x", text})
		_, out, errs := command(t, "report", file)
		if got := workflowCommands(out + errs); len(got) > 0 {
			t.Errorf("%q became %+v", text, got)
		}
	}
}

func TestReport_PrefixMayEndInASlash(t *testing.T) {
	file := aReview(t, finding{"repo/a.go", 1, "error", "x", "m"})
	for _, prefix := range []string{"repo", "repo/", "./repo"} {
		if code, out, errs := command(t, "report", "--strip-prefix", prefix, file); code != 0 || !strings.HasPrefix(out, "a.go:1: ") {
			t.Errorf("%s: exit code %d, %s%s", prefix, code, out, errs)
		}
	}
}

// Whatever a model writes, a finding is one command of the runner, with the text that was written.
func TestReport_AnyTextIsOneCommand(t *testing.T) {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\n", "\r", "::", "##[", "]", "%", "%0A", ",", ":", " "}))
	rapid.Check(t, func(t *rapid.T) {
		r := codeReview{Findings: []finding{{
			Path: strings.Join(rapid.SliceOf(piece).Draw(t, "path"), ""), Line: 1, Severity: "error", Rule: "x",
			Message: strings.Join(rapid.SliceOf(piece).Draw(t, "message"), ""),
		}}}
		r.clean("repo")
		f := r.Findings[0]
		where := ""
		if f.Path != "" {
			where = f.Path + ",line=1,"
		}
		got := workflowCommands(f.annotation())
		if len(got) != 1 || got[0].name != "error" || unescapeText.Replace(got[0].text) != f.Message ||
			strings.TrimPrefix(unescapeProperty.Replace(got[0].properties), "file=") != where+"title=x" {
			t.Errorf("%+v became %+v", f, got)
		}
	})
}

// A path that leads out of the repository names no file anywhere, and the report says so.
func TestReport_PathsStayInTheRepository(t *testing.T) {
	for path, want := range map[string]string{
		"repo/a.go": "a.go", "a.go": "a.go", "./b/../a.go": "a.go", "repo/$(touch pwned)": "$(touch pwned)", "-rf": "-rf", "c d/é.go": "c d/é.go", "C:/x.go": "C:/x.go",
		"../a.go": "", "repo/../../a.go": "", "/etc/passwd": "", "..": "", ".": "", "repo/": "", `..\a.go`: "", "a\nb": "", "a\x1bb": "", "\u202ea": "", "file:///etc/passwd": "file:/etc/passwd",
	} {
		sarif := filepath.Join(t.TempDir(), "x.sarif")
		code, out, errs := command(t, "report", "--annotations", "--strip-prefix", "repo", "--sarif", sarif,
			aReview(t, finding{path, 7, "warning", "rule", "one"}, finding{"other.go", 1, "note", "rule", "two"}))
		checkSARIF(t, sarif)
		commands := workflowCommands(out)
		if len(commands) != 2 || commands[1].properties != "file=other.go,line=1,title=rule" {
			t.Errorf("%q: the commands are %+v", path, commands)
			continue
		}
		file, has := strings.CutPrefix(commands[0].properties, "file=")
		file, _, _ = strings.Cut(file, ",")
		switch stray := strings.Contains(errs, "1 of 2 findings name no path in the repository"); {
		case want == "" && (code != exitError || has || !stray):
			t.Errorf("%q: exit code %d, %q, %s", path, code, out, errs)
		case want != "" && (code != 0 || unescapeProperty.Replace(file) != want):
			t.Errorf("%q: exit code %d, file %q, want %q: %s", path, code, file, want, errs)
		}
	}
}

func TestReport_SARIFHasFindingsAndRules(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.sarif")
	if code, out, errs := command(t, "report", "--sarif", name, aReview(t,
		finding{"a b.go", 3, "error", "lost-error", "see [this](https://example.com)"}, finding{"c.go", 1, "note", "style", "x"},
		finding{"c:d.go", 2, "warning", "lost-error", "y"})); code != 0 || !strings.HasPrefix(out, "a b.go:3: error: see [this](https://example.com) (lost-error)\n") {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	run := checkSARIF(t, name).Runs[0]
	if want := []sarifRule{{"lost-error"}, {"style"}}; !slices.Equal(run.Tool.Driver.Rules, want) {
		t.Errorf("rules %v, want %v", run.Tool.Driver.Rules, want)
	}
	var got strings.Builder
	for _, r := range run.Results {
		at := r.Locations[0].Physical
		fmt.Fprintln(&got, r.RuleID, r.RuleIndex, r.Level, at.Artifact.URI, at.Region.StartLine, r.Message.Text)
	}
	want := "lost-error 0 error a%20b.go 3 see [this] (https://example.com)\nstyle 1 note c.go 1 x\nlost-error 0 warning ./c:d.go 2 y\n"
	if got.String() != want {
		t.Errorf("results:\n%swant:\n%s", got.String(), want)
	}
	if empty := newSARIF(&codeReview{}); sarifProblem(t, mustJSON(t, empty)) != nil {
		t.Error("a review without findings has no valid SARIF")
	}
}

// checkSARIF reads a file that fits the schema of the standard.
func checkSARIF(t *testing.T, name string) (log sarifLog) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &log)
	}
	if err == nil {
		err = sarifProblem(t, text)
	}
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return log
}

// sarifProblem checks a text against the schema of the standard, which is of draft-04 and uses what draft-07 has too.
func sarifProblem(t *testing.T, text []byte) error {
	t.Helper()
	standard, err := os.ReadFile("testdata/sarif/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := schema.Parse([]byte(strings.NewReplacer(
		`"$schema": "http://json-schema.org/draft-04/schema#"`, `"$schema": "http://json-schema.org/draft-07/schema#"`, `  "id": "https:`, `  "$id": "https:`,
	).Replace(string(standard))))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Validate(text)
}

func TestSARIFProblem_FindsMistakes(t *testing.T) {
	r := codeReview{Findings: []finding{{"a.go", 0, "fatal", "x", "y"}}}
	if err := sarifProblem(t, mustJSON(t, newSARIF(&r))); err == nil || !strings.Contains(err.Error(), "level") || !strings.Contains(err.Error(), "startLine") {
		t.Errorf("error %v, want those of the level and the line", err)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReport_ReadsTheAnswerOfARun(t *testing.T) {
	answer := `{"summary": "s", "findings": [{"path": "a.go", "line": 1, "severity": "warning", "rule": "x", "message": "one\ntwo"}]}`
	events := func(payload string) string {
		return `{"type": "init", "payload": {}}` + "\n" + `{"type": "done", "payload": ` + payload + "}\n"
	}
	for name, c := range map[string]struct {
		text string
		args []string
		code int
		want string // in either output
	}{
		"the answer":          {answer, nil, 0, "a.go:1: warning: one\n\t| two (x)\n"},
		"events":              {events(`{"status": "success", "output": ` + answer + `}`), nil, 0, "a.go:1: warning: one\n\t| two (x)\n"},
		"events without one":  {events(`{"status": "max_budget"}`), nil, exitError, "the run ended without an answer in JSON\n  next: look at its last event\n"},
		"another answer":      {`{"n": 1}`, nil, exitError, "not a review: "},
		"nothing":             {"", nil, exitError, "not a review: "},
		"no JSON":             {"Fine.", nil, exitError, "not JSON: "},
		"a line of zero":      {strings.Replace(answer, `"line": 1`, `"line": 0`, 1), nil, exitError, "/findings/0/line"},
		"an unknown severity": {strings.Replace(answer, "warning", "fatal", 1), nil, exitError, "/findings/0/severity"},
		"a huge message":      {strings.Replace(answer, "two", strings.Repeat("x", 5000), 1), nil, exitError, "/findings/0/message"},
		"a rule with a colon": {strings.Replace(answer, `"x"`, `"x::y"`, 1), nil, exitError, "/findings/0/rule"},
		"below the limit":     {answer, []string{"--fail-on", "error"}, 0, "a.go"},
		"at the limit":        {answer, []string{"--fail-on", "warning"}, exitFindings, "has a finding of severity warning or above"},
		"above the limit":     {answer, []string{"--fail-on", "note"}, exitFindings, "has a finding of severity note or above"},
		"no limit":            {answer, []string{"--fail-on", "none"}, 0, "a.go"},
		"no severity":         {answer, []string{"--fail-on", "fatal"}, exitUsage, "choose note, warning, error or none"},
		"an empty flag":       {answer, []string{"--sarif", ""}, exitUsage, "it is empty"},
		"a file too many":     {answer, []string{"other.json"}, exitUsage, "takes one file"},
		"no place to write":   {answer, []string{"--review", "/dev/null/x"}, exitError, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.json")
			writeFile(t, path, []byte(c.text))
			code, out, errs := command(t, append([]string{"report", path}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.want) {
				t.Errorf("exit code %d, want %d and %q: %s%s", code, c.code, c.want, out, errs)
			}
		})
	}
	if code, _, errs := command(t, "report", t.TempDir()); code != exitError || !strings.Contains(errs, "a folder") {
		t.Errorf("a folder: exit code %d, %s", code, errs)
	}
	if code, _, errs := command(t, "report", "missing.json"); code != exitError || strings.Count(errs, "missing.json") != 1 {
		t.Errorf("a missing file: exit code %d, %s", code, errs)
	}
}

// The schema of a review is the same in the command, in the agent file and in the page.
func TestReport_OneSchemaOfAReview(t *testing.T) {
	f, err := agentfile.Load("../../examples/ci/review.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	inPage, _, _ := strings.Cut(rest, "```\n")
	if inPage != reviewSchema {
		t.Errorf("docs/ci.md has\n%s", inPage)
	}
	var want, got any
	if err := json.Unmarshal([]byte(reviewSchema), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(f.Output.Schema, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the agent file (-want +got):\n%s", diff)
	}
}
