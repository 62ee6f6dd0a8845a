// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/session"
)

// keptRun has a scripted agent do something in the store of the test.
func keptRun(t *testing.T, name, text string, steps ...agenttest.Step) string {
	t.Helper()
	store, err := openRuns("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := prompt.FromText[string](text)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := root.Evaluate(t.Context(), agenttest.New(steps...), p, &root.Options{
		Settings: agent.Settings{Dir: t.TempDir()},
		Recorder: record.NewRecorder(store, &record.RecorderOptions{Name: name, Folder: "/srv/" + name}),
	})
	if failure, ok := errors.AsType[*root.EvaluationError](err); ok {
		return failure.Summary.RunID
	}
	if err != nil {
		t.Fatal(err)
	}
	return resp.RunID
}

func shellCall(id event.CallID, command string) event.ToolCall {
	return event.ToolCall{ID: id, Name: "Bash", Input: json.RawMessage(`{"command":"` + command + `"}`)}
}

func costs(usd float64) event.Payload {
	return gateway.ModelCall{Model: "model-1", CostUSD: usd, Tokens: gateway.Tokens{Input: 100, Output: 10}}
}

// must runs the command, and fails the test unless it ends with code.
func mustCommand(t *testing.T, code int, args ...string) string {
	t.Helper()
	got, out, errs := command(t, args...)
	if got != code {
		t.Fatalf("drover %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, errs)
	}
	return out + errs
}

// began changes when a run began.
func began(t *testing.T, id string, ago time.Duration) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "drover", "runs", "*", id, "run.json"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("the files of run %s are %v, %v", id, paths, err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	then := regexp.MustCompile(`"began":"[^"]*"`).ReplaceAll(text, []byte(`"began":"`+time.Now().Add(-ago).UTC().Format(time.RFC3339Nano)+`"`))
	if err := os.WriteFile(paths[0], then, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A team's morning: of 50 runs of three agents, that of the real agent which failed yesterday is found, compared with the last good one,
// its denied call is explained, the cost summed, and it is continued and exported. Each is one command of docs/runs.md.
func TestRuns_MorningOfATeam(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "rm -r shop", "description": "clean"}),
		script.Text("Now it is done.").When(script.Match{LastUserText: "Migrate the shop", HasToolResult: "Bash"}), script.Fail(400, "the migration is not possible").Always())
	p := newProgram(t, model.URL())
	p.setEnv(map[string]string{"XDG_STATE_HOME": state})
	t.Chdir(t.TempDir())
	good := ""
	for i := range 48 {
		name := []string{"reviewer", "migrator", "triage"}[i%3]
		id := keptRun(t, name, "Look at commit "+string(rune('a'+i%26)), agenttest.Emit(event.Init{Model: "model-1", Tools: []string{"Bash"}}, shellCall("c1", "go test"),
			event.ToolResult{ID: "c1", Name: "Bash", Status: event.ToolSuccess, Output: json.RawMessage(`"ok"`)}, costs(0.01)), agenttest.Done(""))
		if name == "migrator" {
			good = id
		}
	}
	earlier := keptRun(t, "triage", "## 1. Task (task)\n\nSort the shop", agenttest.Emit(event.Init{Model: "model-1", Tools: []string{"Bash"}}, shellCall("c1", "drop table"),
		event.Decision{CallID: "c1", Tool: "Bash", Verdict: event.Deny, Policy: "deny-list", Reason: "Tables stay.", Chain: []event.PolicyVerdict{
			{Policy: "limits"}, {Policy: "risk", Verdict: new(event.Allow)}, {Policy: "deny-list", Verdict: new(event.Deny), Reason: "Tables stay."},
		}},
		event.ToolResult{ID: "c1", Name: "Bash", Status: event.ToolDenied, Failure: &event.ToolFailure{Message: "Tables stay."}}, costs(0.5)),
		agenttest.Fail(errors.New("the shop cannot be sorted")))
	p.cli.WriteFile(t, "agent.yaml", "version: 1\nname: migrator\nsections: [{key: task, title: Task, text: Migrate the shop}]\npolicy: {shellExecute: deny}\n")
	if r := p.run("run", "--quiet", "-f", "agent.yaml"); r.code != exitError {
		t.Fatalf("%+v", r)
	}
	bad := strings.Fields(mustCommand(t, 0, "runs", "sql", "select id from runs order by began desc limit 1"))[1]
	began(t, earlier, 5*24*time.Hour)
	began(t, bad, 20*time.Hour)
	if err := os.Remove(filepath.Join(state, "drover", "runs", "index.db")); err != nil { // it has when they began
		t.Fatal(err)
	}

	if out := mustCommand(t, 0, "runs", "--failed", "--since", "2d"); strings.Count(out, "\n") != 2 || !strings.Contains(out, bad[:8]+"  error ") || !strings.Contains(out, "Migrate the shop") {
		t.Errorf("--failed lists\n%s", out)
	}
	if out := mustCommand(t, 0, "runs", "compare", good[:8], bad[:8]); !strings.Contains(out, "The calls: different after 0 calls\n  A: Bash  go test  success\n  B: Bash  rm -r shop  denied\n     capabilities: ") ||
		!strings.Contains(out, "≠ error") {
		t.Errorf("compare shows\n%s", out)
	}
	if out := mustCommand(t, 0, "runs", "show", bad[:8], "--decisions"); !strings.Contains(out, "Bash  rm -r shop\n  deny by capabilities: ") || !strings.Contains(out, "\n    capabilities: deny (") {
		t.Errorf("--decisions shows\n%s", out)
	}
	if out := mustCommand(t, 0, "runs", "show", earlier[:8], "--decisions"); out != "Bash  drop table\n  deny by deny-list: Tables stay.\n    limits abstained\n    risk: allow\n    deny-list: deny (Tables stay.)\n" {
		t.Errorf("--decisions shows\n%s", out)
	}
	out := mustCommand(t, 0, "runs", "cost", "--by", "agent", "--since", "30d")
	if !regexp.MustCompile(`(?m)^ +\$0\.66 +17 +1,700 +170  triage$`).MatchString(out) || !regexp.MustCompile(`(?m)^ +\$\S+ +17 .*  migrator$`).MatchString(out) || !strings.Contains(out, "  in all") {
		t.Errorf("the cost is\n%s", out)
	}
	file := strings.TrimSpace(mustCommand(t, 0, "runs", "export", bad[:8]))
	if out := mustCommand(t, 0, "runs", "show", file); !strings.Contains(out, "the migration is not possible") || !strings.Contains(out, "denied     Bash  rm -r shop") {
		t.Errorf("the bundle shows\n%s", out)
	}
	if out := mustCommand(t, exitUsage, "runs", "resume", file); !strings.Contains(out, "cannot be continued: it is kept in") {
		t.Errorf("a bundle is continued: %s", out)
	}
	if r := p.run("runs", "resume", bad[:8], "--quiet"); r.code != 0 || r.out != "Now it is done.\n" {
		t.Errorf("resumed: %+v", r)
	}
	mustCommand(t, 0, "runs", "rm", "last") // the run that continued it
	for args, want := range map[string]int{"--agent migrator": 17, "--folder /srv/triage": 17, "--limit 3": 3, "--folder /srv/triage --failed": 1, "--since 2d --limit 0": 49} {
		if out := mustCommand(t, 0, append([]string{"runs", "--json"}, strings.Fields(args)...)...); strings.Count(out, "\n") != want {
			t.Errorf("%s lists %d runs, want %d", args, strings.Count(out, "\n"), want)
		}
	}
	for args, want := range map[string]string{
		"cost --by day": time.Now().UTC().Format(time.DateOnly), "cost --by folder": "/srv/reviewer\n", "cost --by model": "model-1\n",
		"show --prompt": "Migrate the shop", "show --cost": "claude-opus-5-5 ", "show --session": `"policyState"`, "show --transcript": `"entry_type":"tool_use"`, "show --events": `"type":"gate:decision"`,
		"compare last": "cost       $",
	} {
		if words := strings.Fields(args); words[0] != "cost" {
			args += " " + bad
		}
		if out := mustCommand(t, 0, append([]string{"runs"}, strings.Fields(args)...)...); !strings.Contains(out, want) {
			t.Errorf("%s prints no %q:\n%s", args, want, out)
		}
	}
	if out := mustCommand(t, 0, "runs", "sql", "select name, count(*) as runs from runs group by name order by name"); out != "name      runs\nmigrator  17\nreviewer  16\ntriage    17\n" {
		t.Errorf("sql gives\n%s", out)
	}
	if out := mustCommand(t, 0, "runs", "migrate", "shop", "--json"); !strings.Contains(out, `"id":"`+bad+`"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("the words find\n%s", out)
	}
	for _, planted := range []string{"last", bad[:8]} { // a file of that name is no run
		if err := os.WriteFile(planted, []byte("PK"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := mustCommand(t, 0, "runs", "show", planted); !strings.HasPrefix(out, "run        ") {
			t.Errorf("%s shows\n%s", planted, out)
		}
	}
	mustCommand(t, 0, "runs", "rm", bad[:8], earlier[:8])
	mustCommand(t, 0, "runs", "import", file)
	if out := mustCommand(t, exitUsage, "runs", "resume", bad[:8]); !strings.Contains(out, "cannot be continued: it is kept in "+file) {
		t.Errorf("a bundle that was taken in is continued: %s", out)
	}
	mustCommand(t, 0, "runs", "rm", bad[:8])
	for word, want := range map[string]string{"shwo": "no runs with shwo; did you mean drover runs show?\n", "zebra": "no runs with zebra\n"} {
		if out := mustCommand(t, 0, "runs", word); out != want {
			t.Errorf("runs %s printed %q, want %q", word, out, want)
		}
	}
	if out := mustCommand(t, 0, "runs", "--failed"); out != "no runs\n" {
		t.Errorf("after rm there are\n%s", out)
	}
}

// A run of the command is kept, shown, and continued with the flags that it had. One with --no-keep is not.
func TestRuns_KeptAndResumed(t *testing.T) {
	model := claudetest.NewModel(t, script.Text("I shall remember hunter22hunter."), script.Text("It was 7.").When(script.Match{Text: "The number is 7."}, script.Match{LastUserText: "Which number?"}))
	p := newProgram(t, model.URL())
	p.setEnv(map[string]string{"XDG_STATE_HOME": t.TempDir(), "MY_WORD": "hunter22hunter"})
	if r := p.run("run", "--max-turns", "9", "--secret", "MY_WORD", "--keep-traffic", "The number is 7."); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	shown := p.run("runs", "show", "last")
	if !strings.Contains(shown.out, "answer     I shall remember [redacted].\n") || !strings.Contains(shown.out, "prompt     drover:run: The number is 7.") || !strings.Contains(shown.out, "isolation  cell") {
		t.Errorf("shown is\n%s%s", shown.out, shown.errors)
	}
	if r := p.run("runs", "resume", "last", "--quiet", "Which number?"); r.code != 0 || r.out != "It was 7.\n" {
		t.Errorf("resumed: %+v", r)
	}
	if r := p.run("runs", "--json"); strings.Count(r.out, "\n") != 2 {
		t.Errorf("two runs are kept:\n%s%s", r.out, r.errors)
	}
	again := p.run("runs", "show", "last")
	if !strings.Contains(again.out, "Which number?") {
		t.Errorf("the last run is\n%s", again.out)
	}
	if r := p.run("run", "--no-keep", "--quiet", "--resume", "0", "x"); r.code != exitUsage {
		t.Errorf("%+v", r)
	}
	found := 0
	err := filepath.WalkDir(filepath.Join(p.env["XDG_STATE_HOME"], "drover", "runs"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "hunter22") {
			t.Errorf("%s has the secret", path)
		}
		if filepath.Base(path) == "traffic.jsonl" {
			found++
		}
		return err
	})
	if err != nil || found != 2 { // the flag is continued too
		t.Errorf("%d files of traffic, %v", found, err)
	}
}

// The program of a run is killed in the middle of it. The run is lost, has what happened, and goes on.
func TestRuns_LostRunIsContinued(t *testing.T) {
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "tail -f /dev/null", "description": "wait"}), script.Text("Now I am done.").When(script.Match{LastUserText: resumePrompt}))
	p := newProgram(t, model.URL())
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	p.setEnv(map[string]string{"XDG_STATE_HOME": state})
	r := p.start("run", "--allow", "shellExecute", "Sleep well.")
	r.awaitLine("isolation")
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		stored, err := filepath.Glob(filepath.Join(state, "drover", "conversations", "*", "*.jsonl"))
		if err != nil || time.Since(began) > time.Minute {
			t.Fatalf("the agent makes no call, or its conversation is not stored: %v", err)
		}
		if len(stored) > 0 && strings.Contains(mustCommand(t, 0, "runs", "show", "last"), "no result  Bash") {
			break
		}
	}
	if out := mustCommand(t, 0, "runs", "--running", "--json"); !strings.Contains(out, `"state":"running"`) {
		t.Errorf("the run in progress is listed as\n%s", out)
	}
	r.signal(syscall.SIGKILL)
	_ = r.cmd.Wait() // it was killed
	if out := mustCommand(t, 0, "runs"); !regexp.MustCompile(`(?m)^[0-9a-f]{8}  lost `).MatchString(out) {
		t.Errorf("the runs are\n%s", out)
	}
	if out := mustCommand(t, 0, "runs", "show", "last"); !strings.Contains(out, "lost, its program ended without the end of the run") || !strings.Contains(out, "Sleep well.") {
		t.Errorf("the lost run is\n%s", out)
	}
	if got := p.run("runs", "resume", "last", "--quiet"); got.code != 0 || got.out != "Now I am done.\n" {
		t.Errorf("continued: %+v", got)
	}
}

// A demo that an earlier version has kept is listed and shown by the name of its folder, and is taken in.
func TestRuns_EarlierDemo(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("GH_TOKEN", "hunter22hunter")
	name := "2026-01-02-030405-123"
	file, err := session.OpenFile(filepath.Join(state, "drover", "demo", name, "session.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := prompt.FromText[string]("Review the shop.")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Evaluate(t.Context(), agenttest.New(agenttest.Emit(event.Text{Content: "Two issues: hunter22hunter, AKIAIOSFODNN7EXAMPLE."}), agenttest.Done("")), p, &root.Options{Session: s, Settings: agent.Settings{Dir: t.TempDir()}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out := mustCommand(t, 0, "runs"); !strings.Contains(out, name+"  success") {
		t.Errorf("the runs are\n%s", out)
	}
	if out := mustCommand(t, 0, "runs", "show", name); !strings.Contains(out, "Review the shop.") {
		t.Errorf("shown is\n%s", out)
	}
	if out := mustCommand(t, 0, "runs", "show", name, "--events"); !strings.Contains(out, "Two issues: [redacted], [redacted].") || strings.Contains(out, "hunter22") || strings.Contains(out, "AKIA") {
		t.Errorf("the events are\n%s", out)
	}
	if _, out, errs := command(t, "runs", "export", name); out != "" || !strings.Contains(errs, "drover runs import") {
		t.Errorf("export prints %q, %q", out, errs)
	}
	if out := mustCommand(t, 0, "runs", "import", filepath.Join(state, "drover", "demo", name)); out != name+"\n" {
		t.Errorf("import prints %q", out)
	}
	if out := mustCommand(t, 0, "runs", "--json"); !strings.Contains(out, `"id":"`+name+`"`) {
		t.Errorf("the runs are\n%s", out)
	}
}

// The shell offers last and the latest runs with a description, no more than 20, and files by their paths.
func TestRuns_ShellCompletes(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	offered := func(args ...string) (offers []string, directive string) {
		lines := strings.Split(strings.TrimSpace(mustCommand(t, 0, append([]string{"__complete", "runs"}, args...)...)), "\n")
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, ":") })
		return lines[:at], lines[at]
	}
	if got, _ := offered("show", ""); len(got) != 0 {
		t.Errorf("without a run %q are offered", got)
	}
	var ids []string
	for range 25 {
		ids = append(ids, keptRun(t, "reviewer", "Look at "+strings.Repeat("the shop ", 20), agenttest.Done("")))
	}
	slices.Reverse(ids)
	for _, sub := range []string{"show", "compare", "resume", "rm", "export"} {
		got, directive := offered(sub, "")
		if len(got) != 20 || got[0] != "last\tthe latest run" || !strings.HasPrefix(got[1], ids[0][:8]+"\tjust now, success, reviewer: Look at the shop") || directive != ":36" {
			t.Errorf("%s: %d are offered, %q, with %s", sub, len(got), got, directive)
		}
		for _, offer := range got {
			if len(offer) > 80 {
				t.Errorf("%s: %q is long", sub, offer)
			}
		}
		if got, _ := offered(sub, ids[22][:5]); len(got) != 1 || !strings.HasPrefix(got[0], ids[22][:8]+"\t") {
			t.Errorf("%s: for the beginning of an older id %q are offered", sub, got)
		}
		if got, _ := offered(sub, ids[22][:20]); len(got) != 1 || !strings.HasPrefix(got[0], ids[22]+"\t") {
			t.Errorf("%s: for a long beginning %q are offered", sub, got)
		}
		most := map[string]int{"compare": 2, "rm": 99}[sub]
		if got, _ := offered(sub, "last", ids[0][:8], ""); (len(got) > 0) != (most > 2) || slices.ContainsFunc(got, func(offer string) bool {
			return strings.HasPrefix(offer, "last") || strings.HasPrefix(offer, ids[0][:8])
		}) {
			t.Errorf("%s: behind two runs %q are offered", sub, got)
		}
		if got, directive := offered(sub, "./bun"); len(got) != 0 || (directive == ":0") != slices.Contains([]string{"show", "compare", "export"}, sub) {
			t.Errorf("%s: for a path %q are offered, with %s", sub, got, directive)
		}
	}
	if got, _ := offered("compare", "last", ""); len(got) == 0 {
		t.Error("the second run of compare is not completed")
	}
	keptRun(t, "running", "Wait.", func(*agenttest.Run) {
		for _, sub := range []string{"resume", "rm"} {
			if got, _ := offered(sub, ""); len(got) != 20 || strings.HasPrefix(got[0], "last") {
				t.Errorf("%s: of a run in progress %q are offered", sub, got)
			}
		}
		if got, _ := offered("show", ""); !strings.Contains(got[1], ", running, running: ") {
			t.Errorf("a run in progress is offered as %q", got[1])
		}
	}, agenttest.Done(""))
}

// runs sql prints rows for people and as JSON, lists the tables, and refuses what is no query with exit code 2.
func TestRunsSQL_PrintsRowsAndTables(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for range 2 {
		keptRun(t, "reviewer", "Look.", agenttest.Emit(costs(0.25)), agenttest.Done(""))
	}
	for query, want := range map[string]string{
		"select name, count(*) as n, sum(cost_usd) as usd, null as none from runs group by name": "{\"name\":\"reviewer\",\"n\":2,\"usd\":0.5,\"none\":null}\n",
		"select 'a' || char(10) || '\"' as text, x'6162' as bytes":                               "{\"text\":\"a\\n\\\"\",\"bytes\":\"ab\"}\n",
		"select id from runs where name = 'none'":                                                "",
	} {
		if out := mustCommand(t, 0, "runs", "sql", "--json", query); out != want {
			t.Errorf("%s: %q, want %q", query, out, want)
		}
	}
	if out := mustCommand(t, 0, "runs", "sql", "select name, cost_usd from runs"); out != "name      cost_usd\nreviewer  0.25\nreviewer  0.25\n" {
		t.Errorf("for people it prints %q", out)
	}
	tables := mustCommand(t, 0, "runs", "sql", "--tables")
	for _, table := range []string{"runs", "events", "calls", "tokens", "decisions", "errors", "files"} {
		if !regexp.MustCompile(`(?m)^` + table + `\b`).MatchString(tables) {
			t.Errorf("--tables lacks %s:\n%s", table, tables)
		}
	}
	code, out, errs := command(t, "runs", "sql", "with recursive n(i) as (values (1) union all select i + 1 from n where i < 20000) select i from n")
	if lines := strings.Count(out, "\n"); code != 0 || lines != 10001 || !strings.Contains(errs, "more rows than are printed\n  next: add a limit") {
		t.Errorf("of 20000 rows %d lines are printed, exit code %d, %q", lines, code, errs)
	}
	for query, want := range map[string]string{
		"delete from runs": "", "attach 'x' as y": "", "select * from nothing": "nothing", "select 1; select 2": "",
	} {
		if code, out, errs := command(t, "runs", "sql", query); code != exitUsage || out != "" || !strings.Contains(errs, want) || errs == "" {
			t.Errorf("%s: exit code %d, %q, %q", query, code, out, errs)
		}
	}
}

func TestKeptFlags_Cases(t *testing.T) {
	for args, want := range map[string]string{
		"":                                    "",
		"-f a.yaml --arg x=1":                 "-f a.yaml --arg x=1",
		"--allow shellExecute do it":          "--allow shellExecute",
		"--allow=shellExecute --json do":      "--allow=shellExecute",
		"do --max-usd 1 --resume=x --quiet":   "--max-usd 1",
		"--resume token --record r.jsonl do":  "",
		"--read-only -- --allow shellExecute": "--read-only",
		"--model-script s.yaml --model m do":  "--model m",
		"--read-only --continue -fa.yaml":     "--read-only -fa.yaml",
		"--write-back --mount src --diff fix": "--write-back --mount src",
	} {
		if got := strings.Join(keptFlags(strings.Fields(args)), " "); got != want {
			t.Errorf("%q keeps %q, want %q", args, got, want)
		}
	}
}

func TestKeepSetting_Cases(t *testing.T) {
	for text, want := range map[string]record.Retention{
		"": {}, "runs=5": {MaxRuns: 5}, "age=30d,size=1GiB": {MaxAge: 30 * 24 * time.Hour, MaxBytes: 1 << 30}, "age=90m,runs=1,size=7": {MaxRuns: 1, MaxAge: 90 * time.Minute, MaxBytes: 7},
		"age=36500d": {MaxAge: 36500 * 24 * time.Hour}, "size=5000000000": {MaxBytes: 5000000000}, "size=3KiB": {MaxBytes: 3 << 10}, "size=2MiB": {MaxBytes: 2 << 20}, "size=8388607TiB": {MaxBytes: 8388607 << 40},
	} {
		if got, off, err := keepSetting(text); got != want || off || err != nil {
			t.Errorf("%q is %+v, %v, %v", text, got, off, err)
		}
	}
	if _, off, err := keepSetting("no"); !off || err != nil {
		t.Errorf("no: %v, %v", off, err)
	}
	for _, text := range []string{"yes", "runs", "runs=0", "runs=-1", "runs=x", "age=0d", "age=d", "age=5", "size=1XB", "size=0", "runs=1,runs=2", "runs=1,", "age=-1h", "age=36501d", "age=1.5d", "age=0s", "count=5", "no,runs=1", "=", "size=16777217TiB", "size=-1", "size=1.5GiB", "size=1 GiB", "size=99999999999999999999"} {
		if _, _, err := keepSetting(text); err == nil || !strings.Contains(err.Error(), envKeep) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRuns_Usage(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for args, want := range map[string]string{
		"runs show":                       "takes one RUN",
		"runs show nothing":               "there is no run nothing",
		"runs show last":                  "there is no run",
		"runs show ../../etc":             "",
		"runs shwo last":                  "did you mean show",
		"runs compare a":                  "takes two runs",
		"runs --since yesterday":          "neither an age nor a day",
		"runs --limit -1":                 "below zero",
		"runs cost --by moon":             "there is no group",
		"runs sql":                        "takes one query",
		"runs sql delete":                 "",
		"runs resume nothing":             "there is no run nothing",
		"runs rm nothing":                 "there is no run nothing",
		"runs show last --events --cost":  "exclude each other",
		"run --no-keep --keep-traffic x":  "exclude each other",
		"run --secret NO_SUCH_VARIABLE x": "empty or not set",
	} {
		code, _, errs := command(t, strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("drover %s: exit code %d, %q, want %q", args, code, errs, want)
		}
	}
}
