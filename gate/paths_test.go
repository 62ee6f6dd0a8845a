// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
)

// fileCall is a call with a path, under the key that the tool has for it.
func fileCall(tool, path string) event.ToolCall {
	key := map[string]string{"Glob": "path", "Grep": "path", "LS": "path", "NotebookEdit": "notebook_path"}[tool]
	if key == "" {
		key = "file_path"
	}
	input, _ := json.Marshal(map[string]string{key: path})
	return event.ToolCall{Name: tool, Input: input}
}

func TestPathRules_Allow(t *testing.T) {
	g := ForClaude(Rules(RuleOptions{Root: "/w", Home: "/home/me", Allow: []string{
		"Write(/src/**)", "Read(**)", "Read(//data/*.csv)", "Edit(~/notes/**)", "Edit(./docs/*.md)", "Edit(top.txt)", "Edit(/dir/)", "Edit(/{a,b}/x?[0-9])", "save_file(/out/**)",
	}}))
	cases := []struct {
		name, tool, path string
		facts            Facts
		want             bool
	}{
		{"below", "Write", "/w/src/a.go", Facts{}, true},
		{"far below", "Write", "/w/src/x/y/a.go", Facts{}, true},
		{"the directory itself", "Write", "/w/src", Facts{}, true},
		{"beside", "Write", "/w/srcx/a.go", Facts{}, false},
		{"another root", "Write", "/src/a.go", Facts{}, false},
		{"only the named tool", "Edit", "/w/src/a.go", Facts{}, false},
		{"relative", "Write", "src/a.go", Facts{Dir: "/w"}, true},
		{"relative with a dot", "Write", "./src/a.go", Facts{Dir: "/w"}, true},
		{"relative elsewhere", "Write", "src/a.go", Facts{Dir: "/v"}, false},
		{"relative to nothing", "Write", "src/a.go", Facts{}, false},
		{"up and down", "Write", "/w/src/../src/a.go", Facts{}, true},
		{"up and out", "Write", "/w/src/../a.go", Facts{}, false},
		{"far out", "Write", "/w/src/../../../../etc/passwd", Facts{}, false},
		{"out by a relative path", "Write", "src/../../x", Facts{Dir: "/w"}, false},
		{"double slashes", "Write", "//w//src//a.go", Facts{}, true},
		{"a trailing slash", "Write", "/w/src/a/", Facts{}, true},
		{"dots in names", "Write", "/w/src/..a/...", Facts{}, true},
		{"another case", "Write", "/w/SRC/a.go", Facts{}, false},
		{"zero byte", "Write", "/w/src/a\x00.go", Facts{}, false},
		{"newline", "Write", "/w/src/a\n.go", Facts{}, true},
		{"backslashes out", "Write", `/w/src/..\..\x`, Facts{}, false},
		{"backslashes inside", "Write", `/w/src/a\b`, Facts{}, true},
		{"only backslashes", "Write", `\w\src\a`, Facts{Dir: "/w"}, false},
		{"space at the end", "Write", "/w/src/a ", Facts{}, true},
		{"space before, out", "Write", " /etc/passwd", Facts{Dir: "/w/src"}, false},
		{"home as a name", "Write", "~/x", Facts{Dir: "/w/src"}, false},
		{"home of another", "Write", "~you/x", Facts{Dir: "/w/src"}, true}, // no program expands it
		{"empty", "Write", "", Facts{Dir: "/w/src"}, false},
		{"resolved inside", "Write", "/w/src/link", Facts{Target: Target{Path: "/w/src/real"}}, true},
		{"resolved outside", "Write", "/w/src/link", Facts{Target: Target{Path: "/etc/passwd"}}, false},
		{"resolved inside, spelled outside", "Write", "/tmp/link", Facts{Target: Target{Path: "/w/src/real"}}, false},
		{"resolved, not clean", "Write", "/w/src/link", Facts{Target: Target{Path: "/w/src/../x"}}, false},
		{"the edit family", "Write", "/w/docs/a.md", Facts{}, true},
		{"the edit family, notebook", "NotebookEdit", "/w/docs/a.md", Facts{}, true},
		{"the edit family, deeper", "MultiEdit", "/w/docs/x/a.md", Facts{}, false},
		{"a name at the root", "Edit", "/w/top.txt", Facts{}, true},
		{"a name deeper", "Edit", "/w/x/top.txt", Facts{}, false},
		{"below a name", "Edit", "/w/top.txt/x", Facts{}, false},
		{"a directory by its slash", "Edit", "/w/dir/x/y", Facts{}, true},
		{"classes and choices", "Edit", "/w/b/xy7", Facts{}, true},
		{"classes and choices, no", "Edit", "/w/c/xy7", Facts{}, false},
		{"home", "Edit", "/home/me/notes/x", Facts{}, true},
		{"home, short", "Edit", "~/notes/x", Facts{Dir: "/w"}, false}, // or a file below /w
		{"absolute", "Read", "/data/x.csv", Facts{}, true},
		{"absolute, deeper", "Read", "/data/y/x.csv", Facts{}, false},
		{"the read family", "Grep", "/w/x", Facts{}, true},
		{"the read family, old", "View", "/w/x", Facts{}, true},
		{"read is not write", "Edit", "/w/x", Facts{}, false},
		{"another tool", "save_file", "/w/out/x", Facts{}, true},
		{"another tool, foreign", "mcp__other__save_file", "/w/out/x", Facts{}, false},
		{"a foreign Write", "mcp__other__Write", "/w/src/a.go", Facts{}, false},
		{"on Windows", "Write", `C:\w\src\a.go`, Facts{Dir: `C:\w`}, false}, // the root is /w
	}
	for _, c := range cases {
		if got := g.Decide(fileCall(c.tool, c.path), c.facts); (got.Verdict == event.Allow) != c.want {
			t.Errorf("%s: %s %q: got %s (%s), want allowed %v", c.name, c.tool, c.path, got.Verdict, got.Reason, c.want)
		}
	}
}

// What a tool is allowed by path is its boundary, whatever others allow.
func TestPathRules_AllowedPathsAreABoundary(t *testing.T) {
	g := ForClaude(Rules(RuleOptions{Root: "/w", Allow: []string{"Write(/src/**)"}}), Default(event.Allow))
	for _, c := range []struct {
		call event.ToolCall
		want event.Verdict
	}{
		{fileCall("Write", "/w/src/a"), event.Allow},
		{fileCall("Write", "/w/a"), event.Deny},
		{fileCall("Edit", "/w/src/a"), event.Deny},
		{event.ToolCall{Name: "Write"}, event.Deny},
		{event.ToolCall{Name: "Write", Input: json.RawMessage(`{"file_path":7}`)}, event.Deny},
		{event.ToolCall{Name: "Write", Input: json.RawMessage(`{"file_path":"/w/src/a","file_path":"/x"}`)}, event.Deny},
		{event.ToolCall{Name: "Write", Input: json.RawMessage(`{"file_path":"/w/src/a","path":"/x"}`)}, event.Deny},
		{event.ToolCall{Name: "Write", Input: json.RawMessage(`["/w/src/a"]`)}, event.Deny},
		{event.ToolCall{Name: "Write(/x)", Input: json.RawMessage(`{"file_path":"/w/src/a"}`)}, event.Deny},
		{fileCall("Read", "/x"), event.Allow},
		{bash("ls"), event.Allow},
	} {
		got := g.Decide(c.call, Facts{})
		if got.Verdict != c.want {
			t.Errorf("%s %s: got %s (%s), want %s", c.call.Name, c.call.Input, got.Verdict, got.Reason, c.want)
		}
		if got.Verdict == event.Deny && !strings.Contains(got.Reason, "Write(/src/**)") {
			t.Errorf("the reason %q does not say what is allowed", got.Reason)
		}
	}
}

func TestPathRules_Deny(t *testing.T) {
	g := ForClaude(Default(event.Allow), Rules(RuleOptions{Root: "/w", Home: "/home/me", Deny: []string{
		"Write(/gen/**)", "Read(.env)", "Read(/secrets)", "Read(~/.ssh/**)", "Edit(//etc/**)", "Read(*.pem)", "mcp__fs__get(//etc)",
	}}))
	cases := []struct {
		name, tool, path string
		facts            Facts
		want             bool // denied
	}{
		{"named tool", "Write", "/w/gen/x", Facts{}, true},
		{"its family", "Edit", "/w/gen/x", Facts{}, true},
		{"its family, notebook", "NotebookEdit", "/w/gen/x", Facts{}, true},
		{"its family, old", "Replace", "/w/gen/x", Facts{}, true},
		{"not readers", "Read", "/w/gen/x", Facts{}, false},
		{"beside", "Write", "/w/genx", Facts{}, false},
		{"another case", "Write", "/W/Gen/X", Facts{}, true},
		{"another case, not ASCII", "Write", "/w/GEN/Ä", Facts{}, true},
		{"dots", "Write", "/w/x/../gen/./x", Facts{}, true},
		{"slashes", "Write", "///w///gen///x", Facts{}, true},
		{"a trailing slash", "Write", "/w/gen/", Facts{}, true},
		{"relative", "Write", "gen/x", Facts{Dir: "/w"}, true},
		{"relative, up", "Write", "../gen/x", Facts{Dir: "/w/src"}, true},
		{"relative to nothing", "Write", "x", Facts{}, true},
		{"backslashes", "Write", `/w\gen\x`, Facts{}, true},
		{"backslashes up", "Write", `/w/a\..\gen\x`, Facts{}, true},
		{"spaces", "Write", " /w/gen/x ", Facts{Dir: "/"}, true},
		{"zero byte", "Write", "/x\x00", Facts{}, true},
		{"empty", "Write", "", Facts{}, true},
		{"through a link", "Write", "/w/link", Facts{Target: Target{Path: "/w/gen/x"}}, true},
		{"through a link out", "Write", "/w/gen/link", Facts{Target: Target{Path: "/w/x"}}, true},
		{"elsewhere", "Write", "/w/x", Facts{Target: Target{Path: "/w/x"}}, false},
		{"a bare name", "Read", "/w/.env", Facts{}, true},
		{"a bare name, deep", "Read", "/w/a/b/.env", Facts{}, true},
		{"a bare name, outside", "Read", "/v/.env", Facts{}, false},
		{"a bare pattern, deep", "Read", "/w/a/KEY.PEM", Facts{}, true},
		{"below what is named", "Read", "/w/secrets/a/b", Facts{}, true},
		{"listing what is named", "LS", "/w/secrets", Facts{}, true},
		{"home", "Read", "/home/me/.ssh/id", Facts{}, true},
		{"home, short", "Read", "~/.ssh/id", Facts{Dir: "/w"}, true},
		{"absolute", "Edit", "/etc/passwd", Facts{}, true},
		{"a foreign tool", "mcp__fs__get", "/etc/passwd", Facts{}, true},
		{"a foreign tool elsewhere", "mcp__fs__get", "/x", Facts{}, false},
		{"a foreign Read", "mcp__fs__Read", "/w/.env", Facts{}, false},
		{"a search over it", "Grep", "/w", Facts{}, true},
		{"a search over it, deep", "Grep", "/w/a/b", Facts{}, true}, // .env may be there
		{"a search from the top", "Grep", "/", Facts{}, true},
		{"a search elsewhere", "Grep", "/v", Facts{}, false},
	}
	for _, c := range cases {
		if got := g.Decide(fileCall(c.tool, c.path), c.facts); (got.Verdict == event.Deny) != c.want {
			t.Errorf("%s: %s %q: got %s (%s), want denied %v", c.name, c.tool, c.path, got.Verdict, got.Reason, c.want)
		}
	}
}

func TestPathRules_SearchThatMayReadADeniedFileIsDenied(t *testing.T) {
	g := ForClaude(Default(event.Allow), Rules(RuleOptions{Root: "/w", Deny: []string{"Read(/a/*/secret)"}}))
	for path, want := range map[string]event.Verdict{
		"/": event.Deny, "/w": event.Deny, "/w/a": event.Deny, "/w/a/x": event.Deny, "/w/a/x/secret": event.Deny, "/w/a/x/secret/y": event.Deny,
		"/w/b": event.Allow, "/w/a/x/y": event.Allow, "/v": event.Allow,
	} {
		if got := g.Decide(fileCall("Grep", path), Facts{}); got.Verdict != want {
			t.Errorf("Grep %s: got %s (%s), want %s", path, got.Verdict, got.Reason, want)
		}
	}
	if got := g.Decide(fileCall("Glob", "/w"), Facts{}); got.Verdict != event.Allow {
		t.Errorf("Glob gives names only: got %s (%s), want allow", got.Verdict, got.Reason)
	}
}

func TestPathRules_SearchWithoutAPathIsOfTheWorkingDirectory(t *testing.T) {
	g := ForClaude(Rules(RuleOptions{Root: "/w", Allow: []string{"Read(/src/**)"}}))
	cases := []struct {
		tool, input, dir string
		want             bool
	}{
		{"Grep", `{"pattern":"x"}`, "/w/src", true},
		{"Grep", `{"pattern":"/etc/../x"}`, "/w/src", true}, // a regular expression
		{"Grep", `{"pattern":"x"}`, "/w", false},
		{"Grep", `{"pattern":"x","path":null}`, "/w/src", true},
		{"Grep", `{"pattern":"x"}`, "", false},
		{"Glob", `{"pattern":"**/*.go"}`, "/w/src", true},
		{"Glob", `{"pattern":"src/**/*.go"}`, "/w", true},
		{"Glob", `{"pattern":"*/x"}`, "/w", false},
		{"Glob", `{"pattern":"/w/src/*"}`, "/w", true},
		{"Glob", `{"pattern":"/etc/*"}`, "/w/src", false},
		{"Glob", `{"pattern":"/etc/*","path":"/w/src"}`, "/w/src", false},
		{"Glob", `{"pattern":"../*"}`, "/w/src", false},
		{"Glob", `{"pattern":"*/../../*"}`, "/w/src", false},
		{"Glob", `{"pattern":"~/*"}`, "/w/src", false},
		{"Glob", `{"pattern":"..\\*"}`, "/w/src", false},
		{"LS", `{}`, "/w/src", true},
		{"Read", `{}`, "/w/src", false},
	}
	for _, c := range cases {
		got := g.Decide(event.ToolCall{Name: c.tool, Input: json.RawMessage(c.input)}, Facts{Dir: c.dir})
		if (got.Verdict == event.Allow) != c.want {
			t.Errorf("%s %s in %q: got %s (%s), want allowed %v", c.tool, c.input, c.dir, got.Verdict, got.Reason, c.want)
		}
	}
}

func TestPathRules_ListsUseTheWorkingDirectoryAsRoot(t *testing.T) {
	g := ForClaude(AllowTools("Write(/src/**)"))
	for dir, want := range map[string]event.Verdict{"/w": event.Allow, "/w/": event.Allow, "/v": event.Deny, "": event.Deny, "/": event.Deny} {
		if got := g.Decide(fileCall("Write", "/w/src/x"), Facts{Dir: dir}); got.Verdict != want {
			t.Errorf("in %q: got %s (%s), want %s", dir, got.Verdict, got.Reason, want)
		}
	}
	// A directory with letters that are wild in patterns is taken as it is.
	if got := g.Decide(fileCall("Write", "/[a]*/src/x"), Facts{Dir: "/[a]*"}); got.Verdict != event.Allow {
		t.Errorf("got %s (%s), want allow", got.Verdict, got.Reason)
	}
}

func TestPathRules_ReasonStatesWhyNoRuleCanMatch(t *testing.T) {
	const noRoot, noPlace = "set RuleOptions.Root or Facts.Dir", "use an absolute path"
	allow, deny, top := RuleOptions{Allow: []string{"Write(/src/**)"}}, RuleOptions{Deny: []string{"Write(/src/**)"}}, RuleOptions{Allow: []string{"Write(//src/**)"}}
	for _, c := range []struct {
		name, path string
		rules      RuleOptions
		facts      Facts
		want       string // in the reason
	}{
		{"allowed below nothing", "/w/src/a.go", allow, Facts{}, noRoot},
		{"denied below nothing", "/w/src/a.go", deny, Facts{}, noRoot},
		{"relative to nothing", "src/a.go", top, Facts{}, noPlace},
		{"no path, allowed", "", allow, Facts{Dir: "/w"}, noPlace},
		{"no path, denied", "", deny, Facts{Dir: "/w"}, noPlace},
		{"outside", "/w/a.go", allow, Facts{Dir: "/w"}, "only as Write(/src/**)"},
		{"outside an absolute rule", "/w/a.go", top, Facts{}, "only as Write(//src/**)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := ForClaude(Rules(c.rules)).Decide(fileCall("Write", c.path), c.facts)
			if d.Verdict != event.Deny || !strings.Contains(d.Reason, c.want) {
				t.Errorf("got %v %q, want a denial with %q", d.Verdict, d.Reason, c.want)
			}
		})
	}
}

func TestPathRules_Windows(t *testing.T) {
	g := ForClaude(Rules(RuleOptions{Root: `C:\Work`, Allow: []string{"Edit(/src/**)", "Edit(//d/x/**)"}, Deny: []string{"Edit(/src/secret.txt)"}}))
	for path, want := range map[string]event.Verdict{
		`C:\Work\src\a.go`:            event.Allow,
		`c:/Work/src/a.go`:            event.Allow,
		`/c/Work/src/a.go`:            event.Allow,
		`src\a.go`:                    event.Allow,
		`D:\x\y`:                      event.Allow,
		`C:\Work\src\..\a.go`:         event.Deny,
		`C:\Work\src\secret.txt`:      event.Deny,
		`C:\WORK\SRC\SECRET.TXT`:      event.Deny,
		`C:\Work\src\secret.txt.`:     event.Deny,
		`C:\Work\src\x.txt `:          event.Deny,
		`C:\Work\src\x::$DATA`:        event.Deny,
		`C:Work\src\a.go`:             event.Deny,
		`\Work\src\a.go`:              event.Deny,
		`\\server\share\Work\src\a`:   event.Deny,
		`\\?\C:\Work\src\secret.txt`:  event.Deny,
		`C:\Work\src\a\..\..\..\x.go`: event.Deny,
	} {
		if got := g.Decide(fileCall("Write", path), Facts{Dir: `C:\Work`}); got.Verdict != want {
			t.Errorf("%s: got %s (%s), want %s", path, got.Verdict, got.Reason, want)
		}
	}
}

func TestPathRules_InvalidRulesAreErrors(t *testing.T) {
	for _, rule := range []string{"Write(../x)", "Write(/a/../b)", "Write(/[)", "Write(/{a)", "Write(~/x)", "Write(~you/x)"} {
		if _, err := New(AllowTools(rule)); err == nil {
			t.Errorf("%s: got no error", rule)
		}
	}
	if _, err := New(Rules(RuleOptions{Root: "w", Home: "h"})); err == nil || strings.Count(advice.Text(err), "absolute") != 2 {
		t.Errorf("got %v, want errors for Root and Home", err)
	}
}

// FuzzPaths looks for panics and for paths that lead out of what is allowed.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"/w/src/a", "src/../x", `..\x`, "~/x", "//w//src/", "/w/src/\x00", " x ", `C:\w\src`, "/w/src/.."} {
		f.Add(seed, "/w")
	}
	g := ForClaude(Rules(RuleOptions{Root: "/w", Allow: []string{"Write(/src/**)"}, Ask: []string{"Write(//nowhere)"}}))
	f.Fuzz(func(t *testing.T, path, dir string) {
		got := g.Decide(fileCall("Write", path), Facts{Dir: dir})
		if strings.Contains(got.Reason, "failed") {
			t.Fatalf("%q in %q: %s", path, dir, got.Reason)
		}
		if got.Verdict != event.Allow {
			return
		}
		// Without "..", an allowed path has the directory in its text.
		if !strings.Contains(path, "..") && !strings.Contains(dir, "..") && !strings.Contains(path+dir, "src") {
			t.Errorf("%q in %q is allowed", path, dir)
		}
		for _, out := range []string{path + "/../../../../../../../../../x", `/w/src/..\..\` + path} {
			if strings.Count(path, "/")+strings.Count(dir, "/") > 6 {
				continue
			}
			if got := g.Decide(fileCall("Write", out), Facts{Dir: dir}); got.Verdict == event.Allow && !strings.Contains(out[8:], "src") {
				t.Errorf("%q in %q is allowed", out, dir)
			}
		}
	})
}

// The short way for "dir/**" decides as the matching of patterns does.
func TestPathRules_TreeMatchesAsItsPattern(t *testing.T) {
	names := []string{"", "src", "src/a", "src/a/b", "srcs", "srcs/a", "sr", "src/.hidden", "a/src", "a/src/b", "src.go", "S", "src a/b"}
	for _, glob := range []string{"src/**", "a/src/**", "src/a/**", ".git/**", "src a/**"} {
		var r pathRule
		if err := r.setGlob("/"+glob, false); err != nil || r.tree == "" {
			t.Fatalf("%s: %v, tree %q", glob, err, r.tree)
		}
		for _, name := range names {
			if got, want := isBelow(name, r.tree), doublestar.MatchUnvalidated(glob, name); got != want {
				t.Errorf("%s and %q: %v, want %v", glob, name, got, want)
			}
		}
	}
	for _, glob := range []string{"src/*/**", "**", "**/x/**", "s?c/**", "{a,b}/**", "src"} {
		var r pathRule
		if err := r.setGlob("/"+glob, false); err != nil || r.tree != "" {
			t.Errorf("%s: %v; tree %q, want none", glob, err, r.tree)
		}
	}
}
