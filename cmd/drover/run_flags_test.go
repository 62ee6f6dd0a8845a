// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRun_WrongUsage(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list, scalar, broken := file("list.json", `[1]`), file("true.json", `true`), file("broken.json", `{"type": `)
	strange := file("strange.json", `{"type": "banana"}`)
	cases := map[string]struct {
		args  []string
		words string // in this order, separated by …
	}{
		"no prompt":                   {[]string{"run"}, "the prompt is missing…next: drover run"},
		"a prompt without quotes":     {[]string{"run", "Do", "it"}, "the prompt is one argument, and there are 2…next: put the prompt into quotes"},
		"an empty prompt":             {[]string{"run", " \n"}, "the prompt is empty…next:"},
		"an unknown flag":             {[]string{"run", "--mode", "x", "Do it."}, "unknown flag: --mode…next: write --model; drover run --help"},
		"a flag like no other":        {[]string{"run", "--zebra", "Do it."}, "unknown flag: --zebra…next: drover run --help"},
		"a misspelled flag":           {[]string{"run", "--write-bak", "Do it."}, "unknown flag: --write-bak…next: write --write-back"},
		"a misspelled flag of runs":   {[]string{"runs", "--josn"}, "unknown flag: --josn…next: write --json"},
		"an unknown agent":            {[]string{"run", "--agent", "clod", "Do it."}, `--agent: no such agent: "clod"…next: choose one of those there are: claude-code`},
		"an unknown capability":       {[]string{"run", "--allow", "everything", "Do it."}, `there is no capability "everything"…next: choose among fileWrite, shellExecute, networkAccess`},
		"no capability":               {[]string{"run", "--allow", ",", "Do it."}, "it names no capability…next: choose among"},
		"a capability twice":          {[]string{"run", "--allow", "fileWrite", "--deny", "networkAccess,filewrite", "Do it."}, "--allow names fileWrite already…next: name it in one"},
		"read-only, yet writing":      {[]string{"run", "--read-only", "--allow", "fileWrite", "Do it."}, "--read-only refuses what needs fileWrite, and --allow does not…next: leave one"},
		"a tool in small letters":     {[]string{"run", "--tools", "Read,bash(ls)", "Do it."}, "--tools: there is no tool bash…next: write Bash; if it is a tool of a newer agent, or is added later, name it in --unknown-tools too"},
		"a misspelled tool":           {[]string{"run", "--tools", "Read,Bsah(ls)", "Do it."}, "--tools: there is no tool Bsah…next: write Bash"},
		"a tool of no server":         {[]string{"run", "--tools", "mcp__lint__check", "Do it."}, "--tools: there is no tool mcp__lint__check"},
		"turns below zero":            {[]string{"run", "--max-turns", "-3", "Do it."}, `"-3" for "--max-turns" flag: it must be above zero…next: leave the flag out`},
		"no turns":                    {[]string{"run", "--max-turns", "0", "Do it."}, "it must be above zero"},
		"turns in words":              {[]string{"run", "--max-turns", "many", "Do it."}, "not an integer…next: drover run --help"},
		"side calls without turns":    {[]string{"run", "--side-calls", "3", "Do it."}, "--side-calls counts for each of --max-turns, and there is no --max-turns…next: add --max-turns, or leave --side-calls out"},
		"dollars below zero":          {[]string{"run", "--max-usd", "-1", "Do it."}, `"-1" for "--max-usd" flag: it must be above zero`},
		"no number of dollars":        {[]string{"run", "--max-usd", "NaN", "Do it."}, "it is no amount…next: give dollars"},
		"all the money":               {[]string{"run", "--max-usd", "+Inf", "Do it."}, "it is no amount"},
		"time below zero":             {[]string{"run", "--timeout", "-1s", "Do it."}, `"-1s" for "--timeout" flag: it must be above zero`},
		"time without a unit":         {[]string{"run", "--timeout", "10", "Do it."}, "it is not a time…next: give a number and a unit"},
		"a mount of nothing":          {[]string{"run", "--mount", ":work", "Do it."}, `":work" for "--mount" flag: it names no file or folder…next: give one`},
		"a mount that is missing":     {[]string{"run", "--mount", filepath.Join(dir, "none"), "Do it."}, "--mount: …none…next:"},
		"a mount that climbs out":     {[]string{"run", "--mount", dir + ":../x", "Do it."}, "--mount: …../x…next:"},
		"nothing to write back to":    {[]string{"run", "--write-back", "Do it."}, "there is no --mount…next: name a folder to mount"},
		"nothing to compare with":     {[]string{"run", "--diff", "Do it."}, "there is no --mount…next: name a folder to mount"},
		"a patch among events":        {[]string{"run", "--json", "--diff", "--mount", ".", "Do it."}, "--diff prints a patch, and --json prints nothing but events…next: choose one"},
		"an unknown isolation":        {[]string{"run", "--isolation", "vault", "Do it."}, "there is no such isolation…next: choose among cell, landlock, sandbox, host"},
		"an old isolation":            {[]string{"run", "--isolation", "process", "Do it."}, "it is called host now…next: leave the flag out to have a cell, or write --isolation host"},
		"a host that is an address":   {[]string{"run", "--allow-domain", "https://example.com/", "Do it."}, "it is a URL…next: write \"example.com\""},
		"no host":                     {[]string{"run", "--allow-domain", "", "Do it."}, `"--allow-domain" flag: it is empty…next:`},
		"hosts without isolation":     {[]string{"run", "--isolation", "host", "--allow-domain", "example.com", "Do it."}, "--allow-domain has no meaning with --isolation host…next: leave one of the two out"},
		"no path":                     {[]string{"run", "--writable", " ", "Do it."}, `"--writable" flag: it is empty…next:`},
		"two models":                  {[]string{"run", "--replay", "x", "--model-script", "y", "Do it."}, "--replay and --model-script exclude each other…next: choose one"},
		"a recording of a recording":  {[]string{"run", "--replay", "x", "--record", "y", "Do it."}, "--replay and --record exclude each other…next: choose one"},
		"a recording that is missing": {[]string{"run", "--replay", filepath.Join(dir, "none.jsonl"), "Do it."}, "--replay: …none.jsonl…next: "},
		"no tokens":                   {[]string{"run", "--max-tokens", "0", "Do it."}, "it must be above zero"},
		"two outputs":                 {[]string{"run", "--json", "--quiet", "Do it."}, "--json and --quiet exclude each other…next: choose one"},
		"a schema that is missing":    {[]string{"run", "--schema", filepath.Join(dir, "none.json"), "Do it."}, "--schema: …none.json…next: give the path"},
		"a schema that is a list":     {[]string{"run", "--schema", list, "Do it."}, list + " is no JSON Schema…next: correct it"},
		"a schema that is true":       {[]string{"run", "--schema", scalar, "Do it."}, scalar + " is no JSON Schema…it is no object…next: correct it"},
		"a schema that is no JSON":    {[]string{"run", "--schema", broken, "Do it."}, broken + " is no JSON Schema…next: correct it"},
		"an invalid schema":           {[]string{"run", "--schema", strange, "Do it."}, strange + " is no JSON Schema…next: correct it"},
		"resuming a script":           {[]string{"run", "--model-script", "x.yaml", "--resume", "t", "Do it."}, "a run with --model-script keeps none…next:"},
		"no model script":             {[]string{"run", "--model-script", "", "Do it."}, `"--model-script" flag: it is empty…next: give it a value, or leave the flag out`},
		"continuing a script":         {[]string{"run", "--model-script", "x.yaml", "--continue", "Do it."}, "a run with --model-script keeps none…next:"},
		"continuing a recording":      {[]string{"run", "--replay", "x.jsonl", "--continue", "Do it."}, "--replay and --continue exclude each other…next:"},
		"two conversations":           {[]string{"run", "--continue", "--resume", "t", "Do it."}, "--continue and --resume exclude each other…next: choose one"},
		"nothing to continue":         {[]string{"run", "--continue", "Do it."}, "--continue: there is no conversation of this folder…next: leave the flag out"},
		"nothing to choose from":      {[]string{"run", "--resume", "Do it."}, "--resume: there is no conversation of this folder…next: leave the flag out"},
		"a token and no prompt":       {[]string{"run", "--resume", conversationID}, "the prompt is missing…next:"},
		"a token and two prompts":     {[]string{"run", "--resume", "t", "Do", "it."}, "the prompt is one argument, and there are 2…next:"},
		"input without a file":        {[]string{"run", "--arg", "x=@-", "Do it."}, "--arg is for an agent that is kept as a file…next:"},
		"input twice":                 {[]string{"run", "-f", "x", "--arg", "x=@-", "--arg", "y=@-"}, "standard input is another argument already…next: put one of the two texts into a file: --arg y=@file"},
		"no file to check":            {[]string{"check"}, "there is no file to check…next:"},
		"no folder for manual pages":  {[]string{"man"}, "man takes one folder, and there are 0 arguments…next:"},
		"an argument for version":     {[]string{"version", "me"}, `version takes no arguments, and there is "me"…next:`},
		"no conversation":             {[]string{"run", "--resume", " ", "Do it."}, `"--resume" flag: it is empty…next:`},
		"no schema":                   {[]string{"run", "--schema=", "Do it."}, `"--schema" flag: it is empty…next:`},
		"no model":                    {[]string{"run", "--model=", "Do it."}, `"--model" flag: it is empty…next:`},
		"no agent":                    {[]string{"run", "--agent=", "Do it."}, `"--agent" flag: it is empty…next:`},
		"a script that is missing":    {[]string{"run", "--model-script", filepath.Join(dir, "none.yaml"), "Do it."}, "--model-script: …none.yaml…next: give the path"},
		"an invalid script":           {[]string{"run", "--model-script", list, "Do it."}, "--model-script: " + list + "…next: correct it"},
		"neither yes nor no":          {[]string{"run", "--quiet=perhaps", "Do it."}, `"--quiet" flag: it is neither true nor false…next: drover run --help`},
		"an argument for doctor":      {[]string{"doctor", "me"}, `doctor takes no arguments, and there is "me"…next: drover doctor --help`},
		"an unknown doctor flag":      {[]string{"doctor", "--of-love"}, "unknown flag: --of-love…next: drover doctor --help"},
		"no time for doctor":          {[]string{"doctor", "--timeout", "soon"}, `"--timeout" flag: it is not a time…next: give a number and a unit`},
		"time of doctor below zero":   {[]string{"doctor", "--timeout", "-1s"}, "--timeout is -1s…next: give a time above zero"},
		"an unknown shell":            {[]string{"completion", "tcsh"}, `unknown command "tcsh" for "drover completion"…next:`},
		"help on what there is not":   {[]string{"help", "rnu"}, `unknown command "rnu"…next: drover --help`},
		"an unknown command":          {[]string{"rnu"}, `unknown command "rnu"…next: drover --help`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := drover(t.Context(), t, nil, c.args...)
			if code != exitUsage || stdout != "" {
				t.Errorf("exit code %d, stdout %q; want 2 and nothing; stderr: %s", code, stdout, stderr)
			}
			rest := stderr
			for _, words := range strings.Split(c.words, "…") {
				_, after, there := strings.Cut(rest, words)
				if !there {
					t.Errorf("stderr %q lacks %q", stderr, words)
				}
				rest = after
			}
			for _, name := range []string{"claude: ", "agent: ", "gate: ", "schema: "} {
				if strings.HasPrefix(stderr, "drover: "+name) || strings.Contains(stderr, ": "+name) {
					t.Errorf("stderr %q speaks of packages", stderr)
				}
			}
		})
	}
}

func TestSplitList_Cases(t *testing.T) {
	for list, want := range map[string][]string{
		"":                             {},
		",":                            {},
		"Read":                         {"Read"},
		"Read, Bash":                   {"Read", "Bash"},
		"Bash(git log, git show),Read": {"Bash(git log, git show)", "Read"},
		"a),b":                         {"a)", "b"},
	} {
		if got := splitList(list); !cmp.Equal(got, want) {
			t.Errorf("splitList(%q) is %q, want %q", list, got, want)
		}
	}
}
