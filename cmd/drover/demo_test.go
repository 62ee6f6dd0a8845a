// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/session"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { claudetest.Main(m) }

// drover runs the command with the pinned CLI and an empty temporary folder, and fails the test if
// the run leaves a file or a process behind.
func drover(ctx context.Context, t *testing.T, watch func(line string), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var out lineBuffer
	out.watch = watch
	var errs bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	code = execute(ctx, cmd)
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("drover %v left files: %v", args, left)
	}
	if left := workingBelow(temp); len(left) > 0 {
		t.Errorf("drover %v left processes: %v", args, left)
	}
	return code, out.String(), errs.String()
}

// workingBelow lists the processes whose working directory is below dir, also if it was removed.
func workingBelow(dir string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir+"/") {
			found = append(found, link)
		}
	}
	return found
}

// A lineBuffer keeps what is written and shows each write to watch.
type lineBuffer struct {
	bytes.Buffer
	watch func(line string)
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	if b.watch != nil {
		b.watch(string(p))
	}
	return b.Buffer.Write(p)
}

// bareEnvironment leaves nothing of this machine's environment that could pay for a model.
func bareEnvironment(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, name := range slices.Concat(credentialNames, cloudNames, []string{"CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL", envDemo}) {
		t.Setenv(name, "")
	}
}

func TestDemo_PrintsTheGoldenRun(t *testing.T) {
	cli := claudetest.CLI(t)
	bareEnvironment(t)
	t.Setenv("DROVER_CLAUDE", cli.Path)
	seen := 0
	code, stdout, stderr := drover(t.Context(), t, func(line string) {
		if strings.Contains(line, "  Read  ") {
			seen = len(workingBelow(os.Getenv("TMPDIR")))
		}
	}, "demo")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	if seen == 0 && runtime.GOOS == "linux" {
		t.Error("no process was seen during the run: the search for what is left sees nothing")
	}
	golden(t, "testdata/demo.golden", mask(stdout))
	checkRecord(t, stdout)
}

// What README shows of the demo is what it prints.
func TestDemo_PrintsTheTextOfREADME(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	printed, err := os.ReadFile("testdata/demo.golden")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "From its output:\n\n```\n")
	block, _, _ = strings.Cut(block, "```\n")
	if got := mask(block); len(strings.Split(got, "\n")) < 10 || !strings.Contains(string(printed), got) {
		t.Errorf("this is not in testdata/demo.golden:\n%s", got)
	}
}

// The command that looks at the record is one that works: the one that make demo runs, where drover is not on the PATH.
func TestDemo_NamesACommandThatWorks(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile(`(?m)^demo:.*\n\t@` + envCommand + `='([^']+)' (.+) demo$`).FindSubmatch(makefile)
	if target == nil || string(target[1]) != string(target[2]) {
		t.Fatalf("make demo does not set %s to the command that it runs: %q", envCommand, target)
	}
	record, err := newDemoRecord()
	if err != nil {
		t.Fatal(err)
	}
	id := keptRun(t, "demo", "Review.", agenttest.Done(""))
	for command, want := range map[string]string{"": "drover runs show ", "go run ./cmd/drover": "go run ./cmd/drover runs show "} {
		t.Setenv(envCommand, command)
		var out strings.Builder
		record.print(&out, nil, nil, id)
		if !strings.Contains(out.String(), "         look at it: "+want+id[:8]+"\n") {
			t.Errorf("with %q it prints\n%s", command, out.String())
		}
	}
}

// The picture of README is of a run of the demo. "make picture" draws it.
func TestDemo_Picture(t *testing.T) {
	const path = "../../docs/demo.svg"
	p := newProgram(t, unusedEndpoint(t))
	screen := p.startOnTerminal(t, "demo", "--scripted")
	printed := strings.Join(screen.Wait(`it stays until you press Enter`), "\n")
	address := regexp.MustCompile(`(?m)^[Pp]age +(http:\S+)/#t=\w+$`).FindStringSubmatch(printed)
	if address == nil {
		t.Fatalf("there is no address of the page in\n%s", printed)
	}
	resp, err := http.Get(address[1])
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Errorf("the page has the status %d", resp.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
	screen.Keys("Enter")
	screen.Over(0)
	text, _, _ := strings.Cut(screen.Coloured(), "exit code 0")
	text, _, _ = strings.Cut(text, "\nEvents ")
	picture := testkit.SVG(regexp.MustCompile(`#t=\w+`).ReplaceAllString(text, "#t=TOKEN"))
	if *update {
		if err := os.WriteFile(path, []byte(picture), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clock := regexp.MustCompile(`^\d+\.\d$`)
	words := func(svg string) string {
		var b strings.Builder
		for _, text := range regexp.MustCompile(`(?m)<text [^>]*>(.*)</text>$`).FindAllStringSubmatch(svg, -1) {
			b.WriteString(mask("  " + clock.ReplaceAllString(text[1], "SS.S") + "\n"))
		}
		return b.String()
	}
	if diff := cmp.Diff(words(string(kept)), words(picture)); diff != "" || !strings.Contains(picture, ">denied<") {
		t.Errorf("%s is not what the demo shows (-want +got), make picture draws it again:\n%s", path, diff)
	}
}

// checkRecord fails if the record is not at the path that the demo prints, or has other events than it prints.
func checkRecord(t *testing.T, stdout string) {
	t.Helper()
	named := regexp.MustCompile(`(?s)Events   (\d+) in .*Record   (\S+)\n`).FindStringSubmatch(stdout)
	if named == nil {
		t.Fatalf("no record is named in\n%s", stdout)
	}
	store, err := session.OpenFile(filepath.Join(named[2], "events.jsonl"), &session.FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	n := 0
	for range s.Events() {
		n++
	}
	if fmt.Sprint(n) != named[1] {
		t.Errorf("the session on disk has %d events, and %s were reported", n, named[1])
	}
	if text, err := os.ReadFile(filepath.Join(named[2], "transcript.jsonl")); err != nil || !strings.Contains(string(text), "toolu_api") {
		t.Errorf("the transcript has %d bytes and lacks the last call (%v)", len(text), err)
	}
}

// mask replaces what differs from run to run or from version to version.
func mask(text string) string {
	text = strings.ReplaceAll(text, claude.PinnedVersion, "VERSION")
	for _, r := range []struct{ pattern, with string }{
		{`(?m)^  \d+\.\d  `, "  SS.S  "},
		{`\$\d+\.\d+ of`, "$$COST of"},
		{`claude-code: \S+`, "claude-code: MODEL"},
		{`(?m) +\d+(\.\d)? ms$`, " TIME"},
		{`(?m) +\d+\.\d s$`, " TIME"},
		{`(?m)^Record   .*`, "Record   FOLDER"},
		{`(?m)^( *page +)http:.*`, "${1}ADDRESS"},
		{`(?m)runs show .*`, "runs show RUN"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

// The context ends as it does on ctrl-C, in the middle of the run.
func TestDemo_InterruptEndsTheRun(t *testing.T) {
	cli := claudetest.CLI(t)
	bareEnvironment(t)
	t.Setenv("DROVER_CLAUDE", cli.Path)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code, stdout, stderr := drover(ctx, t, func(line string) {
		if strings.Contains(line, "  Read  ") {
			cancel()
		}
	}, "demo")
	if code != 130 || stderr != "drover: stopped\n" {
		t.Errorf("exit code %d, stderr %q; want 130 and one line", code, stderr)
	}
	if !regexp.MustCompile(`(?m)^  [0-9.]+  done         interrupted .* call.*\n\nEvents   \d`).MatchString(stdout) || !strings.Contains(stdout, "\nRecord   ") {
		t.Errorf("got\n%s\nwant the summary, the events and the record at its end", stdout)
	}
}

func TestDemo_MissingCLIIsAnErrorWithAdvice(t *testing.T) {
	bareEnvironment(t)
	t.Setenv("DROVER_CLAUDE", "/nowhere/claude")
	code, stdout, stderr := drover(t.Context(), t, nil, "demo")
	if code != 1 || stdout != "" {
		t.Errorf("exit code %d, stdout %q; want 1 and nothing", code, stdout)
	}
	for part, words := range map[string]string{
		"what": "CLI not found", "where": "/nowhere/claude", "next": "\n  next: unset DROVER_CLAUDE && npm install --global @anthropic-ai/claude-code@" + claude.PinnedVersion,
	} {
		if !strings.Contains(stderr, words) {
			t.Errorf("%s: %q is not in %q", part, words, stderr)
		}
	}
}

func TestCommand_UnknownNameIsAUsageError(t *testing.T) {
	code, _, stderr := drover(t.Context(), t, nil, "dmeo")
	if code != 2 || !strings.Contains(stderr, `drover: unknown command "dmeo"`) {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestDemo_InvalidReviewIsAnError(t *testing.T) {
	if err := writeReview(&bytes.Buffer{}, event.Done{}); err == nil || !strings.Contains(advice.Text(err), "the answer is not a review") {
		t.Errorf("got %v, want an error that says so", err)
	}
}

func TestDemo_NeedsATemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	var errs bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs([]string{"demo"})
	cmd.SetErr(&errs)
	code := execute(t.Context(), cmd)
	if code != exitError || !strings.Contains(errs.String(), "\n  next: set TMPDIR") {
		t.Errorf("exit code %d, stderr %q; want 1 and what to do", code, &errs)
	}
}

func TestDemo_EndsWhenTheOutputIsClosed(t *testing.T) {
	t.Setenv(claude.EnvCLI, claudetest.CLI(t).Path)
	bareEnvironment(t)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var errs bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs([]string{"demo"})
	cmd.SetOut(&lostWriter{})
	cmd.SetErr(&errs)
	if code := execute(t.Context(), cmd); code != exitError || !strings.Contains(errs.String(), "no program reads the output any more") {
		t.Errorf("exit code %d, stderr %q; want 1 and the reason", code, &errs)
	}
}

func TestDemo_ModelComesFromTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		environ  map[string]string
		scripted bool
		want     string // of its output
		mode     isolation.Mode
	}{
		"nothing":               {want: "scripted, no key needed; "},
		"a key":                 {environ: map[string]string{"ANTHROPIC_API_KEY": "planted"}, want: "Anthropic, by ANTHROPIC_API_KEY; DROVER_DEMO=script", mode: claudecell.ModeAPIKey},
		"a key and the flag":    {environ: map[string]string{"ANTHROPIC_API_KEY": "planted"}, scripted: true, want: "scripted, as asked"},
		"a key and the word":    {environ: map[string]string{"ANTHROPIC_API_KEY": "planted", envDemo: "script"}, want: "scripted, as asked"},
		"Bedrock":               {environ: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-west-1"}, want: "Bedrock in eu-west-1, by CLAUDE_CODE_USE_BEDROCK;", mode: claudecell.ModeBedrock},
		"Bedrock nowhere":       {environ: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"}, want: "scripted, since CLAUDE_CODE_USE_BEDROCK is on, and no region is set"},
		"a service unsupported": {environ: map[string]string{"CLAUDE_CODE_USE_VERTEX": "1"}, want: "scripted, since CLAUDE_CODE_USE_VERTEX is on"},
	} {
		t.Run(name, func(t *testing.T) {
			bareEnvironment(t)
			t.Setenv("AWS_REGION", "")
			t.Setenv("AWS_DEFAULT_REGION", "")
			for name, value := range c.environ {
				t.Setenv(name, value)
			}
			m, err := chooseDemoModel(c.scripted, project{work: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.close() }()
			if !strings.HasPrefix(m.description, c.want) || m.auth.Only != c.mode || (m.upstream == nil) != (c.mode != "") {
				t.Errorf("it is %q, paid by %q; want %q, by %q", m.description, m.auth.Only, c.want, c.mode)
			}
		})
	}
}

// A key that the settings of a claude hold, and a login that it keeps, are not for a demo.
func TestDemo_UsesNoStoredSettingsOrLogin(t *testing.T) {
	for name, variable := range map[string]string{"at home": "HOME", "elsewhere": "CLAUDE_CONFIG_DIR"} {
		t.Run(name, func(t *testing.T) {
			bareEnvironment(t)
			home := t.TempDir()
			t.Setenv(variable, home)
			dir := home
			if variable == "HOME" {
				dir = filepath.Join(home, ".claude")
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, "settings.json"), []byte(`{"env":{"ANTHROPIC_API_KEY":"planted"},"apiKeyHelper":"echo planted"}`))
			m, err := chooseDemoModel(false, project{work: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.close() }()
			if m.upstream == nil {
				t.Errorf("it is %q, want the script", m.description)
			}
		})
	}
}

// Nor do the settings choose where the key of the environment is sent to.
func TestDemo_SettingsDoNotChooseTheEndpoint(t *testing.T) {
	bareEnvironment(t)
	t.Setenv("ANTHROPIC_API_KEY", "planted-key")
	dir := filepath.Join(os.Getenv("HOME"), ".claude")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "settings.json"), []byte(`{"env":{"ANTHROPIC_BASE_URL":"http://localhost:1"}}`))
	d := &demo{project: project{work: t.TempDir()}}
	var err error
	if d.model, err = chooseDemoModel(false, d.project); err != nil {
		t.Fatal(err)
	}
	found, err := claudecell.Authenticate(d.isolation())
	if err != nil || found.Name != "ANTHROPIC_API_KEY" || found.BaseURL != "" {
		t.Errorf("it pays with %+v (%v), want the key of the environment, at Anthropic", found, err)
	}
}

func TestDemo_UnknownModelIsAUsageError(t *testing.T) {
	bareEnvironment(t)
	t.Setenv(envDemo, "opus")
	code, _, stderr := drover(t.Context(), t, nil, "demo")
	if code != exitUsage || !strings.Contains(stderr, `DROVER_DEMO is "opus"`+"\n  next: set it to script") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

// The model is asked with the key of the environment, and a review that it gives at once is shown.
func TestDemo_ShowsTheReviewOfARealModel(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Structured(script.Input{
		"summary": "All is well.", "files": []string{"shop/cart.go", "api.go"}, "issues": []script.Input{},
	})).RequireAllUsed()
	bareEnvironment(t)
	t.Setenv(claude.EnvCLI, cli.Path)
	t.Setenv("ANTHROPIC_API_KEY", "planted-key")
	t.Setenv("ANTHROPIC_BASE_URL", model.BaseURL())
	code, stdout, stderr := drover(t.Context(), t, nil, "demo")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	if got := model.LastRequest().Header.Get("X-Api-Key"); got != "planted-key" {
		t.Errorf("the model was asked with %q", got)
	}
	for _, want := range []string{"model     Anthropic, by ANTHROPIC_API_KEY", "Summary  All is well.", "in 1 model call\n", "1 demo:review"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
}

func TestDemo_IncompleteReviewIsRejected(t *testing.T) {
	p, err := unpackProject(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ output, want string }{
		"all":         {`{"files":["cart.go","shop/api.go"]}`, ""},
		"one is left": {`{"files":["cart.go"]}`, "api.go was not reviewed"},
		"no answer":   {"", "There is no review yet"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.check().Check(t.Context(), guard.Attempt{Output: []byte(c.output)})
			if err != nil || got.Done != (c.want == "") || !strings.HasPrefix(got.Feedback, c.want) {
				t.Errorf("got %+v, %v; want %q", got, err, c.want)
			}
		})
	}
}

// A demo that fails on a terminal ends with its error, and does not wait for a key.
func TestDemo_FailureDoesNotWait(t *testing.T) {
	model := claudetest.NewModel(t, script.Fail(400, "not this time").Always())
	screen := newProgram(t, model.URL()).startOnTerminal(t, "demo")
	if text := strings.Join(screen.Over(exitError), "\n"); !strings.Contains(text, "not this time") || strings.Contains(text, "Enter") {
		t.Errorf("the demo shows\n%s", text)
	}
}

func TestDemo_NeedsAFolderForItsRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil)
	t.Setenv("XDG_STATE_HOME", file)
	if _, err := newDemoRecord(); err == nil || !strings.Contains(advice.Text(err), "\n  next: set XDG_STATE_HOME") {
		t.Errorf("got %v, want what to do", err)
	}
}
