// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/pathglob"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

// writeAgent writes an agent into a folder of its own, and returns its path.
func writeAgent(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte("version: 1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const aTask = "sections: [{key: task, title: Task, text: \"Look at it.\"}]\n"

func TestRunFile_ValuesReachTheRequest(t *testing.T) {
	path := writeAgent(t, `
args: {path: {doc: what to look at}, depth: {enum: [quick, deep], default: quick}}
sections: [{key: task, title: Task, text: "Look at ${path}, ${depth}."}]
output: {schema: {type: object, properties: {n: {type: integer}}, required: [n]}}
model: opus
effort: high
system: {append: Be brief.}
tools: {allow: [Read, Grep, mcp__lint], deny: [Bash]}
servers: {lint: {command: [lint-server]}}
limits: {turns: 7, usd: 0.5, time: 1m}
isolation: {network: {domains: [example.com]}}
`)
	a := scriptedAgent{events: []event.Payload{event.Done{Status: event.DoneSuccess, Output: json.RawMessage(`{"n":1}`)}}}
	got := a.try(t.Context(), runOptions{quiet: true, maxUSD: 0.25, maxTurns: 9, file: fileFlags{path: path, args: argList{"path": "src"}}})
	if want := (tried{0, "{\n  \"n\": 1\n}\n", ""}); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	asked := a.asks[0]
	if want := "## 1. Task (task)\n\nLook at src, quick."; asked.Prompt != want {
		t.Errorf("the prompt is %q, want %q", asked.Prompt, want)
	}
	if asked.Model != "opus" || asked.Effort != "high" || asked.AppendSystemPrompt != "Be brief." || asked.MaxTurns != 7 || asked.Budget.MaxCostUSD != 0.25 {
		t.Errorf("asked for %+v", asked)
	}
	if here, _ := os.Getwd(); asked.Dir != here {
		t.Errorf("it works in %q, want %q", asked.Dir, here)
	}
	if diff := cmp.Diff([]string{"Bash"}, asked.DisallowedTools); diff != "" {
		t.Errorf("tools that are taken away (-want +got):\n%s", diff)
	}
	if len(asked.Servers["lint"].Command) == 0 || len(a.in.Network.AllowedDomains) != 1 || a.in.Weakest != isolation.LevelCell {
		t.Errorf("servers %v, isolation %+v", asked.Servers, a.in)
	}
}

func TestPermissionMode_FlagBeatsTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		flag   permissionMode
		want   gate.Mode
	}{
		"neither":       {"", "", ""},
		"of the file":   {"policy: {mode: allow}\n", "", gate.ModeAllow},
		"of the flag":   {"policy: {fileWrite: deny}\n", "allow", gate.ModeAllow},
		"of both":       {"policy: {mode: allow}\n", "ask", gate.ModeAsk},
		"without files": {"none", "allow", gate.ModeAllow},
	} {
		t.Run(name, func(t *testing.T) {
			o := runOptions{permissions: permissionFlags{mode: c.flag}, prompt: "Look at it."}
			if c.policy != "none" {
				o.prompt, o.file.path = "", writeAgent(t, aTask+c.policy)
			}
			if err := o.loadFile(); err != nil {
				t.Fatal(err)
			}
			if got := o.effectivePermissions(); got.Mode != c.want {
				t.Errorf("the permissions are %+v, want the mode %q", got, c.want)
			}
		})
	}
}

// Flags may lower what a file allows, and never give what it denies.
func TestRunFile_FlagsCannotExceedTheFile(t *testing.T) {
	outside := t.TempDir()
	cases := map[string]struct {
		file    string
		options runOptions
		says    string
	}{
		"a file that is wrong":     {"sections: 1\n", runOptions{}, "agent.yaml:2:1: sections: must be an array, got an integer\n  next: "},
		"an argument is missing":   {"args: {path: {doc: what to look at}}\n" + aTask, runOptions{}, "path is missing (string: what to look at)\n  next: give arguments as --arg name=value"},
		"an argument is not known": {aTask, runOptions{file: fileFlags{args: argList{"path": "x"}}}, "path is not known (the agent takes no arguments)"},
		"a schema":                 {aTask, runOptions{schemaFile: "x.json"}, "--schema and -f exclude each other"},
		"weaker isolation":         {aTask + "isolation: {level: host}\n", runOptions{}, "next: add --isolation host if you trust the file"},
		"other isolation":          {aTask + "isolation: {level: cell}\n", runOptions{isolation: isolationFlags{level: levelFlag(isolation.LevelHost)}}, "leave one of the two out"},
		"a network, not isolated":  {aTask + "isolation: {network: {domains: [example.com]}}\n", runOptions{isolation: isolationFlags{level: levelFlag(isolation.LevelHost)}}, "agent.yaml limits what tools may reach, and --isolation host"},
		"what the file denies":     {aTask + "policy: {fileWrite: deny}\n", runOptions{permissions: allows(t, "fileWrite")}, "denies fileWrite, and --allow does not"},
		"a tool that is not there": {aTask + "tools: {allow: [Read]}\n", runOptions{tools: toolList{"Read", "Bash"}}, "--tools names Bash, which is not in tools.allow"},
		"a mount outside":          {aTask + "mounts: [{path: " + outside + "}]\n", runOptions{}, "outside of the folder of the file\n  next: move it there, or allow its folder: drover run --allow-root DIR"},
		"nothing to write back":    {aTask + "mounts: [{path: agent.yaml, readOnly: true}]\n", runOptions{files: mountFlags{writeBack: true}}, "all mounts of"},
		"a mount of all":           {aTask + "mounts: [{path: /, as: all}]\n", runOptions{file: fileFlags{roots: pathList{"/"}}}, "drover: mounts of "},
		"side calls, no turns":     {aTask + "limits: {tokens: 9}\n", runOptions{others: 3}, "there is no --max-turns\n  next: add --max-turns, or leave --side-calls out"},
		"no mounts to write back":  {aTask, runOptions{files: mountFlags{writeBack: true}}, "there is no --mount"},
	}
	for name, c := range cases {
		c.options.file.path = writeAgent(t, c.file)
		var a scriptedAgent
		if got := a.try(t.Context(), c.options); got.code != exitUsage || !strings.Contains(got.errors, c.says) || got.out != "" || a.asks != nil {
			t.Errorf("%s: got %+v, want the exit code %d and %q", name, got, exitUsage, c.says)
		}
	}
	for want, o := range map[string]runOptions{
		"--arg is for an agent": {prompt: "x", file: fileFlags{args: argList{"a": "b"}}}, "--allow-root is for": {prompt: "x", file: fileFlags{roots: pathList{"a"}}},
		"no such file": {file: fileFlags{path: filepath.Join(outside, "none.yaml")}},
	} {
		var a scriptedAgent
		if got := a.try(t.Context(), o); got.code != exitUsage || !strings.Contains(got.errors, want) {
			t.Errorf("got %+v, want the exit code %d and %q", got, exitUsage, want)
		}
	}
}

// A name may have characters that mean something in a glob, and "." has a name too.
func TestRunFile_ReadOnlyMountsAreNotWrittenBack(t *testing.T) {
	path := writeAgent(t, aTask+"mounts: [{path: a, as: \"*\"}, {path: a, as: \"[id]\"}, {path: a, as: kept, readOnly: true}]\n")
	if err := os.Mkdir(filepath.Join(filepath.Dir(path), "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	t.Chdir(here)
	o := runOptions{file: fileFlags{path: path}, files: mountFlags{mounts: mountList{{HostPath: "."}, {HostPath: "/tmp", MountPath: "./b/"}}}}
	if err := o.loadFile(); err != nil {
		t.Fatal(err)
	}
	only, err := pathglob.New(o.files.only, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"*/x": true, "[id]/x": true, "kept/x": false, "kept": false, "i/x": false, filepath.Base(here) + "/x": true, "b/c/x": true,
	} {
		if got := !only.Skips(name, false); got != want {
			t.Errorf("%s is written back: %t, want %t", name, got, want)
		}
	}
}

// A folder that --mount names gives the file no other folder, even if a path becomes a link meanwhile.
func TestRunFile_MountFlagGivesAccessToItsFolderOnly(t *testing.T) {
	path := writeAgent(t, aTask+"mounts: [{path: mine}]\n")
	mine, flag, outside := filepath.Join(filepath.Dir(path), "mine"), t.TempDir(), t.TempDir()
	single := filepath.Join(flag, "single")
	if err := errors.Join(os.Mkdir(mine, 0o700), os.WriteFile(single, nil, 0o600), os.Symlink(flag, flag+"-link")); err != nil {
		t.Fatal(err)
	}
	o := runOptions{file: fileFlags{path: path}, files: mountFlags{mounts: mountList{{HostPath: flag + "-link"}, {HostPath: single}}}}
	if err := o.loadFile(); err != nil {
		t.Fatal(err)
	}
	p, err := o.openWorkspace(t.Context(), io.Discard)
	if err != nil {
		t.Fatalf("with its own folder: %v", err)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(mine), os.Symlink(outside, mine)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.openWorkspace(t.Context(), io.Discard); !errors.Is(err, workspace.ErrSecurity) {
		t.Errorf("error %v, want ErrSecurity", err)
	}
}

// An agent that stops before its task is done has not succeeded: its answer is not printed, and nothing of it is written back.
func TestRunFile_IncompleteTaskIsNotWrittenBack(t *testing.T) {
	path := writeAgent(t, aTask+"mounts: [{path: src}]\ncompletion: {files: [src/report.md], rounds: 1}\n")
	src := filepath.Join(filepath.Dir(path), "src")
	if err := os.Mkdir(src, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, done := range []bool{false, true} {
		want, answer := exitLimit, ""
		if done {
			want, answer = 0, "Done.\n"
			writeFile(t, filepath.Join(src, "report.md"), nil)
		}
		a := scriptedAgent{events: []event.Payload{event.Init{}, event.Done{Status: event.DoneSuccess, Result: "Done."}}}
		got := a.try(t.Context(), runOptions{quiet: true, file: fileFlags{path: path}, files: mountFlags{writeBack: true}})
		if got.code != want || got.out != answer || strings.Contains(got.errors, path+": the completion check does not hold (rounds: 1): ") == done {
			t.Errorf("with its file %t: got %+v, want the exit code %d", done, got, want)
		}
	}
}

func allows(t *testing.T, capability string) (p permissionFlags) {
	t.Helper()
	if err := p.flag("allow").Set(capability); err != nil {
		t.Fatal(err)
	}
	return p
}

// The report of a limit names the flag or the file that set it.
func TestLimit_OfAFileIsReportedByItsName(t *testing.T) {
	path := writeAgent(t, aTask+"limits: {turns: 3}\n")
	for flag, want := range map[turnLimit]string{0: "(limits.turns of " + path + " 3)", 2: "(--max-turns 2)", 5: "(limits.turns of " + path + " 3)"} {
		a := scriptedAgent{events: []event.Payload{event.Init{}, event.Done{Status: event.DoneMaxTurns}}}
		if got := a.try(t.Context(), runOptions{maxTurns: flag, others: 3, file: fileFlags{path: path}}); got.code != exitLimit || !strings.Contains(got.errors, want) {
			t.Errorf("--max-turns %d: got %+v, want %q", flag, got, want)
		}
	}
	path = writeAgent(t, aTask+"limits: {time: 50ms}\n")
	a := scriptedAgent{events: []event.Payload{event.Init{}}, stall: true}
	if got := a.try(t.Context(), runOptions{timeout: timeLimit(time.Hour), file: fileFlags{path: path}}); got.code != exitLimit || !strings.Contains(got.errors, "limits.time of "+path+" 50ms") {
		t.Errorf("got %+v, want that the time of the file is over", got)
	}
}

func TestRunFile_ArgumentsOnTheCommandLine(t *testing.T) {
	content := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(content, []byte("two\nlines\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var l argList
	for _, text := range []string{"a=b=c", "empty=", "file=@" + content, "at=@@home"} {
		if err := l.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if diff := cmp.Diff(argList{"a": "b=c", "empty": "", "file": "two\nlines", "at": "@home"}, l); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{"a": "it is no argument", "=b": "it is no argument", "a=c": "argument a given twice", "x=@" + content + ".none": "next: name a file"} {
		if err := l.Set(text); err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestRunFile_RejectsASecondPrompt(t *testing.T) {
	p := writeAgent(t, aTask)
	if code, _, errs := command(t, "run", "-f", p, "Do it."); code != exitUsage || !strings.Contains(errs, "-f has a prompt of its own") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	code = execute(t.Context(), cmd)
	return code, stdout.String(), stderr.String()
}

func TestSchema_OfAgentFilesIsPrinted(t *testing.T) {
	if code, out, errs := command(t, "schema"); code != 0 || out != string(agentfile.Schema()) || errs != "" {
		t.Errorf("exit code %d, %d bytes, %s", code, len(out), errs)
	}
}

func TestCompletion_OffersArgumentsOfAFile(t *testing.T) {
	path := writeAgent(t, "args: {path: {doc: what to look at}, depth: {default: quick}}\n"+aTask)
	if _, out, _ := command(t, "__complete", "run", "-f", path, "--arg", ""); !strings.Contains(out, "path=\tstring: what to look at\n") || !strings.Contains(out, "depth=\t") {
		t.Errorf("offered is %q", out)
	}
	if _, out, _ := command(t, "__complete", "run", "-f", ""); !strings.Contains(out, "yaml\n") {
		t.Errorf("offered is %q", out)
	}
}
