// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRun_HelpIsGolden(t *testing.T) {
	code, stdout, stderr := drover(t.Context(), t, nil, "run", "--help")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	golden(t, "testdata/run_help.golden", stdout)
}

// The exit codes that are documented are those that there are.
func TestExitCodes_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/run.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{0, exitError, exitUsage, exitDenied, exitLimit, exitInterrupted} {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^  %d +\w`, code)).MatchString(runHelp) {
			t.Errorf("the help does not know exit code %d", code)
		}
		if !strings.Contains(string(page), fmt.Sprintf("\n| %d |", code)) {
			t.Errorf("docs/run.md does not know exit code %d", code)
		}
	}
	for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(helpOfFlags(t), -1) {
		if !strings.Contains(string(page), "`"+flag) {
			t.Errorf("docs/run.md does not know %s", flag)
		}
	}
}

// helpOfFlags is the list of flags in the help.
func helpOfFlags(t *testing.T) string {
	t.Helper()
	_, stdout, _ := drover(t.Context(), t, nil, "run", "--help")
	_, flags, found := strings.Cut(stdout, "\nFlags:\n")
	if !found {
		t.Fatalf("no flags in %s", stdout)
	}
	var names strings.Builder
	for line := range strings.Lines(flags) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		fmt.Fprintln(&names, name)
	}
	return names.String()
}

// A new flag of drover run gets its group in flagGroups.
func TestHelp_EveryFlagHasAGroup(t *testing.T) {
	run, _, err := newCommand().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	run.InitDefaultHelpFlag()
	_, groups := flagLines(run, 0)
	if got := groups["Other"]; len(got) != 1 || got[0].name != "help" {
		t.Errorf("flags without a group: %v", got)
	}
	for _, g := range flagGroups {
		if len(groups[g.title]) != len(g.flags) {
			t.Errorf("%s names a flag that there is not: %v", g.title, g.flags)
		}
	}
}

func TestHelp_FitsTheTerminal(t *testing.T) {
	p := newProgram(t, unusedEndpoint(t))
	for _, command := range []string{"run", "serve", "doctor"} {
		screen := p.startOn(t, 80, 50, command, "--help")
		screen.Over(0)
		whole := screen.Tmux("capture-pane", "-p", "-J", "-S", "-") // -J joins the lines that the terminal had to break
		_, flags, found := strings.Cut(whole, "\nFlags:\n")
		if !found {
			t.Fatalf("no flags in %s", whole)
		}
		for line := range strings.Lines(flags) {
			if n := len([]rune(strings.TrimRight(line, " \n"))); n > 80 {
				t.Errorf("%s: a line has %d columns: %s", command, n, line)
			}
		}
	}
}

// The manual pages have what --help has, in the few requests of man(7) that every reader of them knows.
func TestMan_PagesHaveTheHelp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if code, out, errs := command(t, "man", dir); code != 0 || out+errs != "" {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 8 {
		t.Fatalf("the pages are %v, %v", pages, err)
	}
	text := readFile(t, filepath.Join(dir, "drover-run.1"))
	for _, words := range []string{".TH DROVER-RUN 1 ", "\n.SH NAME\ndrover\\-run \\- Run an agent", "\n.SS Limits\n", "\\fB\\-\\-max\\-turns number\\fR\nstop after", "\n  drover run \\-\\-continue ", "\\fBdrover\\fR(1)"} {
		if !strings.Contains(text, words) {
			t.Errorf("the page of run lacks %q:\n%s", words, text)
		}
	}
	if !strings.Contains(readFile(t, filepath.Join(dir, "drover.1")), "\\fBdrover\\-check\\fR(1)") {
		t.Error("the page of drover does not name that of check")
	}
	for _, page := range pages {
		for _, problem := range manProblems(readFile(t, page)) {
			t.Errorf("%s: %s", page, problem)
		}
	}
}

var (
	manRequest = regexp.MustCompile(`^\.(TH \S+ 1 "" "[^"]+" "[^"]+"|SH [A-Z ]+|SS .+|PP|TP|nf|fi)$`)
	manEscape  = regexp.MustCompile(`\\(-|e|&|fB|fR)`)
)

// manProblems are requests and escapes of a page that are not among the few that the pages use, and requests out of their order.
func manProblems(page string) (found []string) {
	filled := true
	for i, line := range strings.Split(strings.TrimSuffix(page, "\n"), "\n") {
		isRequest := strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'")
		switch {
		case isRequest && !manRequest.MatchString(line), i == 0 != strings.HasPrefix(line, ".TH "), line == ".nf" && !filled, line == ".fi" && filled,
			strings.Contains(manEscape.ReplaceAllString(line, ""), `\`), strings.HasPrefix(line, ".S") && !filled:
			found = append(found, fmt.Sprintf("line %d: %q", i+1, line))
		}
		filled = line == ".fi" || filled && line != ".nf"
	}
	return found
}

func TestManProblems_FindsMistakes(t *testing.T) {
	const head = ".TH X 1 \"\" \"drover 1\" \"Drover\"\n"
	for page, want := range map[string]int{
		head + ".SH NAME\n\\fBx\\fR \\- \\&.y \\e\n.nf\n a\n.fi\n": 0,
		".SH NAME\n": 1, head + ".so /etc/passwd\n": 1, head + "'x\n": 1, head + "a\\*b\n": 1, head + ".nf\n.SH X\n": 1, head + ".fi\n": 1,
	} {
		if got := manProblems(page); len(got) != want {
			t.Errorf("%q: %v, want %d", page, got, want)
		}
	}
}

func TestCompletion_OffersValuesOfFlags(t *testing.T) {
	for typed, want := range map[string][]string{
		"--agent ":                        {"claude-code"},
		"--allow ":                        {"fileWrite", "shellExecute", "networkAccess"},
		"--ask s":                         {"shellExecute"},
		"--deny fileWrite,":               {"fileWrite,shellExecute", "fileWrite,networkAccess"},
		"--isolation ":                    {"cell", "landlock", "sandbox", "host"},
		"--tools NotebookE":               {"NotebookEdit", "NotebookEditCell"},
		"--schema ":                       {"json"},
		"--model-script ":                 {"yaml", "yml"},
		"--model ":                        nil,
		"":                                nil,
		"--allow fileWrite --ask network": {"networkAccess"},
	} {
		t.Run(typed, func(t *testing.T) {
			words := append([]string{"__complete", "run"}, strings.Split(typed, " ")...)
			code, stdout, _ := drover(t.Context(), t, nil, words...)
			var got []string
			for line := range strings.Lines(stdout) {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, ":") {
					got = append(got, strings.Fields(line)[0])
				}
			}
			if code != 0 || !cmp.Equal(got, want) {
				t.Errorf("exit code %d, offers %q, want %q", code, got, want)
			}
		})
	}
}

// Completion works in a real bash, with nothing but the script that drover prints.
func TestCompletion_WorksInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here: apt-get install bash")
	}
	dir := t.TempDir()
	linkAsDrover(t, dir)
	for line, want := range map[string]string{
		"drover doc":                    "doctor",
		"drover run --iso":              "--isolation",
		"drover run --isolation san":    "sandbox",
		"drover run --allow fileWrite,": "fileWrite,shellExecute fileWrite,networkAccess",
	} {
		cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", bashCompletion, "bash", line)
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, asCommand + "=1"}
		out, err := cmd.CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
			t.Errorf("%q completes to %q (%v), want %q", line, got, err, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, stderr := drover(t.Context(), t, nil, "completion", shell); code != 0 || !strings.Contains(stdout, "__complete") {
			t.Errorf("%s: exit code %d, stderr %q", shell, code, stderr)
		}
	}
}

// bashCompletion does what bash does for tab at the end of a line, and prints the offers.
const bashCompletion = `
source <(drover completion bash) || exit 1
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
read -ra COMP_WORDS <<<"$1"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_get_comp_words_by_ref() { # of bash-completion, for words without colons
	cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
}
compopt() { :; } # works only while bash really completes
__start_drover
printf '%s\n' "${COMPREPLY[@]}"
`
