// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// bounded are flags of a server that has a bound on everything.
func bounded(t *testing.T) (st *starter, agent string) {
	t.Helper()
	dir := mustResolve(t, t.TempDir())
	t.Chdir(dir)
	agent = filepath.Join(t.TempDir(), "reviewer.yaml")
	text := "version: 1\nargs:\n  what: {doc: what to review}\nsections:\n  - {key: task, title: Task, text: 'Review ${what}.'}\n"
	if err := os.WriteFile(agent, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return serving(t, agent, "--prompts", "--folder="+dir, "--model=big", "--max-usd=1", "--max-tokens=1000", "--max-turns=10", "--side-calls=5", "--timeout=60s",
		"--allow=shellExecute", "--ask=fileWrite", "--deny=networkAccess", "--tools=Read,Write,Bash", "--isolation=landlock", "--allow-domain=a.example",
		"--mount="+dir, "--permission-mode=ask", "--no-project-file"), agent
}

// within fails the test unless a command line allows at most what the server does.
func within(t *testing.T, st *starter, args []string) {
	t.Helper()
	got, err := parseRunFlags(args)
	if err != nil {
		t.Fatalf("drover run refuses %q: %v", args, err)
	}
	r := &st.o.run
	for _, c := range capabilities {
		// Deny is above Ask, which is above Allow.
		order := []gate.Level{gate.LevelAllow, gate.LevelAsk, gate.LevelDeny}
		if slices.Index(order, got.effectivePermissions().Level(c)) < slices.Index(order, r.effectivePermissions().Level(c)) && !got.readOnly {
			t.Errorf("%q widens %s", args, c)
		}
	}
	for _, tool := range got.tools {
		if !slices.Contains(r.tools, tool) {
			t.Errorf("%q has the tool %s", args, tool)
		}
	}
	if got.tools == nil || got.model != r.model || r.readOnly && !got.readOnly {
		t.Errorf("%q has the tools %q, the model %q, read-only %t", args, got.tools, got.model, got.readOnly)
	}
	for name, pair := range map[string][2]float64{
		"usd": {float64(got.maxUSD), float64(r.maxUSD)}, "tokens": {float64(got.maxTokens), float64(r.maxTokens)}, "turns": {float64(got.maxTurns), float64(r.maxTurns)},
		"time": {float64(got.timeout), float64(r.timeout)},
	} {
		if pair[0] <= 0 || pair[0] > pair[1] {
			t.Errorf("%q: the limit %s is %v, and the server's %v", args, name, pair[0], pair[1])
		}
	}
	// Every other word is that of the server, or names an agent of the server and its arguments.
	narrowed := []string{"allow", "ask", "deny", "tools", "read-only", "max-usd", "max-tokens", "max-turns", "timeout", "model"}
	others := func(words []string) (rest []string) {
		eachArgument(newRunCommand().Flags(), words, func(flag *pflag.Flag, own []string) {
			switch {
			case flag == nil:
				rest = append(rest, own...)
			case flag.Name == "arg":
			case flag.Name == "file":
				if !slices.ContainsFunc(slices.Collect(mapsValues(st)), func(path string) bool { return own[0] == "--file="+path }) {
					t.Errorf("%q names an agent that is not the server's", args)
				}
			case !slices.Contains(narrowed, flag.Name):
				rest = append(rest, own...)
			}
		})
		return rest
	}
	if got, want := others(args), others(st.o.words); !slices.Equal(got, want) {
		t.Errorf("a request has the run have %q, and the server was started with %q", got, want)
	}
}

func mapsValues(st *starter) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, f := range st.agents {
			if !yield(f.Path()) {
				return
			}
		}
	}
}

// What a request can say is tried field by field: none widens what the server was started with. A field that is added to the type has
// to be tried here too.
func TestServe_NoFieldWidens(t *testing.T) {
	st, agent := bounded(t)
	elsewhere := mustResolve(t, t.TempDir())
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	flag := "--isolation=host"
	prompt := func(s server.Start) server.Start { s.Prompt = "Go."; return s }
	limits := func(l server.Limits) server.Start { return prompt(server.Start{Limits: l}) }
	tries := map[string][]server.Start{
		"Agent":          {{Agent: "/etc/passwd"}, {Agent: agent}, {Agent: "../reviewer"}, {Agent: flag}, {Agent: "reviewer\n" + flag}, {Agent: "Reviewer"}},
		"Args":           {{Agent: "reviewer", Args: map[string]string{"what": "@/etc/passwd", "x=--isolation": "host"}}, {Agent: "reviewer", Args: map[string]string{"what": flag, flag: "x"}}, {Agent: "reviewer", Args: map[string]string{"what": "a\n" + flag}}},
		"Prompt":         {{Prompt: flag}, {Prompt: "-"}, {Prompt: "Go.\x00" + flag}, {Prompt: "-- " + flag}},
		"Folder":         {prompt(server.Start{Folder: "/"}), prompt(server.Start{Folder: elsewhere}), prompt(server.Start{Folder: link}), prompt(server.Start{Folder: ".."}), prompt(server.Start{Folder: "./."}), prompt(server.Start{Folder: flag}), prompt(server.Start{Folder: "a\x00b"})},
		"Key":            {prompt(server.Start{Key: flag}), prompt(server.Start{Key: "a\n" + flag})},
		"Model":          {prompt(server.Start{Model: "bigger"}), prompt(server.Start{Model: flag}), prompt(server.Start{Model: "big\n" + flag})},
		"Limits.USD":     {limits(server.Limits{USD: 2}), limits(server.Limits{USD: -1}), limits(server.Limits{USD: 1e300})},
		"Limits.Tokens":  {limits(server.Limits{Tokens: 1 << 62}), limits(server.Limits{Tokens: -1})},
		"Limits.Turns":   {limits(server.Limits{Turns: 1 << 40}), limits(server.Limits{Turns: -1})},
		"Limits.Seconds": {limits(server.Limits{Seconds: 1e300}), limits(server.Limits{Seconds: -1}), limits(server.Limits{Seconds: 61})},
		"ReadOnly":       {prompt(server.Start{ReadOnly: true})},
		"Deny":           {prompt(server.Start{Deny: []string{"fileWrite", flag}}), prompt(server.Start{Deny: []string{"fileWrite,--allow=networkAccess"}}), prompt(server.Start{Deny: []string{"FILEWRITE"}})},
		"Tools":          {prompt(server.Start{Tools: []string{"WebFetch"}}), prompt(server.Start{Tools: []string{"Read,WebFetch"}}), prompt(server.Start{Tools: []string{flag}}), prompt(server.Start{Tools: []string{"Read\n" + flag}}), prompt(server.Start{Tools: []string{""}})},
	}
	for path, index := range leaves(reflect.TypeFor[server.Start](), "", nil) {
		t.Run(path, func(t *testing.T) {
			if len(tries[path]) == 0 {
				t.Fatalf("no request tries to widen anything by %s: add some", path)
			}
			for _, s := range tries[path] {
				if reflect.ValueOf(s).FieldByIndex(index).IsZero() {
					t.Errorf("%+v does not say %s", s, path)
				}
				args, _, folder, err := st.command(s)
				if p, refused := errors.AsType[*server.Problem](err); refused && p.Status == 422 && p.Next != "" {
					continue
				}
				if err != nil {
					t.Errorf("%+v: %v is not a refusal that says what to do", s, err)
					continue
				}
				within(t, st, args)
				if realPath(folder) != st.folders[0] {
					t.Errorf("%+v runs in %s", s, folder)
				}
				if slices.Contains(args, flag) {
					t.Errorf("%q has a flag of the request", args)
				}
			}
		})
	}
}

// leaves are the fields of a type, with those of its own structs.
func leaves(of reflect.Type, path string, index []int) map[string][]int {
	all := map[string][]int{}
	for _, f := range reflect.VisibleFields(of) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		at := append(slices.Clone(index), f.Index...)
		if f.Type.Kind() == reflect.Struct {
			for name, own := range leaves(f.Type, path+f.Name+".", at) {
				all[name] = own
			}
			continue
		}
		all[path+f.Name] = at
	}
	return all
}

// A flag of drover run, or what a person may think that there is, is no field of a request.
func TestServe_FlagsAreNoFields(t *testing.T) {
	st, _ := bounded(t)
	s, err := server.New(t.Context(), server.Options{Store: st.store, Starter: st})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	names := []string{"isolation", "network", "allowDomain", "writeBack", "mounts", "commands", "command", "env", "permissions", "policies", "hooks", "cli", "settings"}
	known := map[string]bool{}
	for i := range reflect.TypeFor[server.Start]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[server.Start]().Field(i).Tag.Get("json"), ",")
		known[name] = true
	}
	newRunCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !known[f.Name] {
			names = append(names, f.Name)
		}
	})
	for _, name := range names {
		for _, value := range []any{true, "host", []string{"a"}, map[string]string{"a": "b"}} {
			body, err := json.Marshal(map[string]any{"prompt": "Go.", name: value})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("POST", "http://localhost/v1/runs", strings.NewReader(string(body)))
			r.Header.Set("Authorization", "Bearer "+s.Token())
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "unknown field") {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
		}
	}
}

// A run of another process that may do more is continued, and started again, within the bounds of the server.
func TestServe_ContinuedRunsAreBounded(t *testing.T) {
	st, agent := bounded(t)
	for _, wide := range [][]string{
		{"--allow=fileWrite,shellExecute,networkAccess", "--isolation=host", "--max-usd=100"},
		{"--allow-domain=evil.example", "--mount=/", "--write-back"},
		{"--model=big", "--timeout=10h", "--max-turns=1000", "--max-tokens=1000000", "--permission-mode=allow"},
		{"--tools=WebFetch"},
		{"--model=bigger"},
		{"--file=/etc/passwd"},
	} {
		run := &record.Run{Info: record.Info{Folder: st.folders[0], Command: append([]string{"drover", "run", "--file=" + agent, "--arg=what=it"}, wide...)}}
		s := st.Again(run)
		if s == nil {
			continue // it is not possible from here
		}
		args, _, _, err := st.command(*s)
		if err != nil {
			t.Errorf("%q: %v", wide, err)
			continue
		}
		within(t, st, args)
		if words := fmt.Sprint(args); strings.Contains(words, "evil") || strings.Contains(words, "write-back") || strings.Contains(words, "host") {
			t.Errorf("%q became %q", wide, args)
		}
	}
	if s := st.Again(&record.Run{Info: record.Info{Folder: st.folders[0], Command: []string{"drover", "run", "--file=" + agent, "--arg=what=it"}}}); s == nil || s.Agent != "reviewer" || s.Args["what"] != "it" {
		t.Errorf("a run within the bounds is started again as %+v", s)
	}
}
