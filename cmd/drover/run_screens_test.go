// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

const priceFile = "package shop\n\nfunc price() int {\n\treturn 1\n}\n"

// screensAgent has a completion check that fails.
const screensAgent = `sections: [{key: task, title: Task, text: "Raise the price."}]
policy: {fileWrite: ask}
completion: {files: [report.md]}
`

// TestTerminal_ScreensOfARun has the screens of a run with edits, questions, a failed check and a limit.
func TestTerminal_ScreensOfARun(t *testing.T) {
	for _, columns := range []int{80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			metered := func(turn script.Turn) script.Turn {
				return turn.Metered(script.Usage{Input: 1000, Output: 500, CacheRead: 5000})
			}
			const reason = "put it into CHANGES.md"
			model := claudetest.NewModel(t,
				metered(script.Reply(script.TextBlock{Text: "I read it first."}, script.ToolCall{Name: "Read", Input: script.Input{"file_path": "price.go"}})),
				metered(script.Call("Edit", script.Input{"file_path": "price.go", "old_string": "return 1", "new_string": "return 2 // as agreed"})),
				metered(script.Call("Write", script.Input{"file_path": "notes.txt", "content": "The price is 2.\nIt was 1.\n"})),
				metered(script.Text("The price is 2 now.")),
				// The limit is reached when this answer begins.
				metered(script.Text("There is nothing to report.")).Breaking(script.Fault{Kind: script.FaultHang, After: 1}),
			)
			p := newProgram(t, model.URL())
			p.cli.WriteFile(t, "price.go", priceFile)
			pane := p.startOn(t, columns, 60, "run", "-f", writeAgent(t, screensAgent), "--max-usd", "0.063")
			var golden txtar.Archive
			keep := func(name string, screen []string) {
				golden.Files = append(golden.Files, txtar.File{Name: name, Data: []byte(steady(screen))})
			}
			keep("a question about an edit", pane.Wait(`Edit wants to change: price.go +\[y`))
			pane.Keys("y")
			keep("a question about a new file", pane.Wait(`Write wants to write: notes.txt +\[y`))
			pane.Keys("r")
			pane.Keys("-l", reason+" please")
			keep("the reason of a denial", pane.Wait(`please_`))
			for range len(" please") {
				pane.Keys("BSpace")
			}
			pane.Keys("Enter")
			keep("the end", pane.Over(exitLimit))
			if !model.SawText("The user's reason: " + reason) {
				t.Error("the model does not read the reason")
			}
			if text, _ := os.ReadFile(filepath.Join(p.cli.Work, "price.go")); !strings.Contains(string(text), "return 2") {
				t.Errorf("the file is not changed:\n%s", text)
			}
			checkGolden(t, fmt.Sprintf("testdata/screens.%d.txtar", columns), txtar.Format(&golden))
		})
	}
}

// unsteady are the parts of a screen that differ from run to run.
var unsteady = []struct {
	found *regexp.Regexp
	with  string
}{
	{regexp.MustCompile(`(?m)^  \d\d\.\d  `), "  00.0  "},
	{regexp.MustCompile(`(?m)  (\d+ ms|\d+\.\d m?s|\d+ s)$`), "  TIME"},
	{regexp.MustCompile(`(?m)^(  00\.0  isolation ).*\n(                     .*\n)*`), "$1   ISOLATION\n"},
	{regexp.MustCompile(`--resume [0-9a-f-]{36}`), "--resume TOKEN"},
	{regexp.MustCompile(`\d+ B +TIME`), "SIZE  TIME"}, // a result names the folder of the test
	// Of an answer that is cut off the tokens are counted as far as it came.
	{regexp.MustCompile(`over 32,00\d tok`), "over 32,00N tok"},
	{regexp.MustCompile(`and 0\.065\d* are`), "and 0.065NN are"},
}

// steady is the text of a screen up to what follows the run.
func steady(screen []string) string {
	text := strings.Join(screen, "\n") + "\n"
	for _, u := range unsteady {
		text = u.found.ReplaceAllString(text, u.with)
	}
	text, _, _ = strings.Cut(text, "\ndrover: ")
	return strings.TrimRight(text, "\n") + "\n"
}

func checkGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
		t.Errorf("%v; %s is not what is shown; rewrite it with -update (-want +got):\n%s", err, path, diff)
	}
}
