// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/tool"
)

func TestWritablePaths_AreNormalised(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"src", "src"},
		{"./src", "src"},
		{"src/", "src"},
		{"src/.", "src"},
		{"./a/./b/.", "a/b"},
		{`a\b`, "a/b"},
		{`.\a\b\`, "a/b"},
		{"docs/notes.md", "docs/notes.md"},
		{"with space/größe", "with space/größe"},
		{"src//x", "src/x"},
		{"src//", "src"},
		{".//a//./b//", "a/b"},
		{"...", "..."},
		{".git", ".git"},
		{"a..b/c.", "a..b/c."},
		{"ab:c", "ab:c"},
	} {
		if got, err := canonicalPath(tt.text); err != nil || got != tt.want {
			t.Errorf("%q: %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestWritablePaths_PathOutsideTheWorkspaceIsRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "names nothing"},
		{"root", ".", "names nothing"},
		{"root, spelled longer", "./././", "names nothing"},
		{"absolute", "/src", "absolute"},
		{"top", "/", "absolute"},
		{"drive", "C:", "absolute"},
		{"on a drive", `c:\src`, "absolute"},
		{"relative to a drive", "C:src", "absolute"},
		{"drive, spelled longer", "./a:", "absolute"},
		{"share", `\\host\share`, "absolute"},
		{"above", "..", "leaves"},
		{"above, later", "src/../../x", "leaves"},
		{"above and back", "src/../src", "leaves"},
		{"above, with backslashes", `src\..\x`, "leaves"},
		{"line end", "src\n", "control"},
		{"NUL", "a\x00b", "control"},
		{"DEL", "a\x7f", "control"},
		{"C1", "a\u0085", "control"},
		{"broken UTF-8", "a\xff", "UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(FromCapabilities(&Permissions{WritablePaths: []string{"fine", tt.text}}))
			if err == nil || !strings.Contains(advice.Text(err), tt.want) || !strings.Contains(advice.Text(err), "WritablePaths[1]") {
				t.Errorf("got %v, want an error that names the entry and says %q", err, tt.want)
			}
		})
	}
	for _, c := range "*?[]{}$`'\"~;&|<>()" {
		if got, err := canonicalPath("a" + string(c) + "b"); err == nil {
			t.Errorf("%q is taken for %q", "a"+string(c)+"b", got)
		}
	}
}

func TestWritablePaths_EveryInvalidPathIsNamed(t *testing.T) {
	_, err := New(FromCapabilities(&Permissions{WritablePaths: []string{"../a", "b", "/c"}, ShellExecute: LevelAllow, Mode: "yolo"}))
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{`WritablePaths[0] is "../a"`, `WritablePaths[2] is "/c"`, "a command writes anywhere", `invalid Mode "yolo"`} {
		if !strings.Contains(advice.Text(err), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}

// What cannot be enforced is refused before anything starts, also if it is that nothing may be written.
func TestWritablePaths_UnenforceablePathsAreRefused(t *testing.T) {
	for _, paths := range [][]string{{"src"}, {}} {
		for _, tt := range []struct {
			name string
			with Permissions
			want string // empty: it is fine
		}{
			{"nothing set", Permissions{}, ""},
			{"asked about commands", Permissions{ShellExecute: LevelAsk}, ""},
			{"commands denied", Permissions{ShellExecute: LevelDeny, FileWrite: LevelAllow, NetworkAccess: LevelAllow}, ""},
			{"commands allowed", Permissions{ShellExecute: LevelAllow}, "ask about commands, or deny them"},
			{"commands allowed, files denied", Permissions{ShellExecute: LevelAllow, FileWrite: LevelDeny}, "ask about commands"},
			{"bypass", Permissions{Mode: ModeBypass}, `Mode "bypass"`},
			{"auto", Permissions{Mode: ModeAuto}, `Mode "auto"`},
			{"allow", Permissions{Mode: ModeAllow}, "ask about commands, or deny them"},
			{"allow, commands denied", Permissions{Mode: ModeAllow, ShellExecute: LevelDeny}, ""},
		} {
			tt.with.WritablePaths = paths
			_, err := New(FromCapabilities(&tt.with))
			if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(advice.Text(err), tt.want) || !strings.Contains(advice.Text(err), "\n  next: ")) {
				t.Errorf("%s with %q: %v, want %q", tt.name, paths, err, tt.want)
			}
		}
	}
}

// writers are tools of ours that write files.
func writers() Policy {
	saver := tool.Must("save", "Saves.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.FileWrite)
	return Knows("ours", tool.Tools{saver})
}

func TestWritablePaths_WritesElsewhereAreDenied(t *testing.T) {
	const write, save = "Write", "mcp__ours__save"
	workspace := Facts{Dir: "/w"}
	moved := Facts{Dir: "/w/tmp", Workspace: "/w"}
	resolved := func(p string) Facts { return Facts{Dir: "/w", Target: Target{Path: p}} }
	for _, tt := range []struct {
		name, tool, input string
		facts             Facts
		want              string // in the reason of a denial; empty means allowed
	}{
		{"below", write, `{"file_path":"/w/src/a.go"}`, workspace, ""},
		{"far below", "Edit", `{"file_path":"/w/src/a/b/c.go"}`, workspace, ""},
		{"relative", write, `{"file_path":"src/a.go"}`, workspace, ""},
		{"not clean", write, `{"file_path":"/w/x/../src/./a.go"}`, workspace, ""},
		{"a file", write, `{"file_path":"/w/docs/notes.md"}`, workspace, ""},
		{"notebook", "NotebookEdit", `{"notebook_path":"/w/src/n.ipynb"}`, workspace, ""},
		{"ours", save, `{"path":"src/a"}`, workspace, ""},
		{"ours, by its bare name", "save", `{"path":"/w/src/a"}`, workspace, ""},
		{"link to another place that is fine", write, `{"file_path":"/w/src/link"}`, resolved("/w/docs/notes.md"), ""},
		{"from another directory", write, `{"file_path":"../src/a"}`, moved, ""},

		{"elsewhere", write, `{"file_path":"/w/other/a.go"}`, workspace, "Write may not write /w/other/a.go. Write only to src, docs/notes.md in /w."},
		{"the workspace", write, `{"file_path":"/w"}`, workspace, "may not write /w."},
		{"beside", write, `{"file_path":"/w/src2/a"}`, workspace, "/w/src2/a"},
		{"beside a file", write, `{"file_path":"/w/docs/notes.md.bak"}`, workspace, "/w/docs/notes.md.bak"},
		{"another workspace", write, `{"file_path":"/v/src/a"}`, workspace, "/v/src/a"},
		{"its name is longer", write, `{"file_path":"/w2/src/a"}`, workspace, "/w2/src/a"},
		{"up", write, `{"file_path":"/w/src/../x"}`, workspace, "/w/x"},
		{"up, relative", write, `{"file_path":"src/../../x"}`, workspace, "/x"},
		{"other case", write, `{"file_path":"/w/SRC/a"}`, workspace, "/w/SRC/a"},
		{"notebook elsewhere", "NotebookEdit", `{"notebook_path":"/w/n.ipynb"}`, workspace, "/w/n.ipynb"},
		{"ours elsewhere", save, `{"path":"other/a"}`, workspace, "mcp__ours__save may not write /w/other/a"},
		{"two paths, one elsewhere", save, `{"path":"src/a","file_path":"/etc/b"}`, workspace, "/etc/b"},
		{"link to elsewhere", write, `{"file_path":"/w/src/link"}`, resolved("/etc/passwd"), "may not write /etc/passwd"},
		{"link from elsewhere", write, `{"file_path":"/w/link"}`, resolved("/w/src/a"), "may not write /w/link"},
		{"below where a command has gone", write, `{"file_path":"src/a"}`, moved, "/w/tmp/src/a"},

		{"no path", save, `{"destination":"src/a"}`, workspace, "writes to cannot be determined. Use an absolute path."},
		{"no input", write, ``, workspace, "writes to cannot be determined. Use an absolute path."},
		{"invalid path", write, `{"file_path":7}`, workspace, "writes to cannot be determined. Use an absolute path."},
		{"twice", write, `{"file_path":"src/a","file_path":"src/b"}`, workspace, "writes to cannot be determined. Use an absolute path."},
		{"home", write, `{"file_path":"~/src/a"}`, workspace, "writes to cannot be determined. Use an absolute path."},
		{"backslashes", write, `{"file_path":"src\\..\\..\\etc"}`, workspace, "may not write"},
		{"a link in a circle", write, `{"file_path":"/w/src/a"}`, Facts{Dir: "/w", Target: Target{Unresolved: true}}, "writes to cannot be determined. Use an absolute path."},
		{"settings of the agent", "Config", `{"setting":"theme","value":"dark"}`, workspace, "writes to cannot be determined. Use an absolute path."},
		{"unknown folder", write, `{"file_path":"/w/src/a"}`, Facts{}, "is unknown. Continue without writing files. The host program can set Facts.Workspace or Facts.Dir, or the Dir of the call"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := ForClaude(writers(), FromCapabilities(&Permissions{FileWrite: LevelAllow, WritablePaths: []string{"./src/", `docs\notes.md`}}))
			got := g.Decide(event.ToolCall{Name: tt.tool, Input: json.RawMessage(tt.input)}, tt.facts)
			if (got.Verdict == event.Allow) != (tt.want == "") || got.Verdict == event.Ask || !strings.Contains(got.Reason, tt.want) {
				t.Errorf("%s (%s), want %q", got.Verdict, got.Reason, tt.want)
			}
			if got.Policy != "capabilities" {
				t.Errorf("decided by %s", got.Policy)
			}
		})
	}
}

func TestWritablePaths_Windows(t *testing.T) {
	facts := Facts{Dir: `C:\w`, Workspace: `C:\w`}
	for input, want := range map[string]event.Verdict{
		`{"file_path":"C:\\w\\src\\a.go"}`:           event.Allow,
		`{"file_path":"c:/w/src/a.go"}`:              event.Allow,
		`{"file_path":"src\\a.go"}`:                  event.Allow,
		`{"file_path":"C:\\w\\docs\\a.go"}`:          event.Deny,
		`{"file_path":"D:\\w\\src\\a.go"}`:           event.Deny,
		`{"file_path":"C:\\w\\src\\a.go:stream"}`:    event.Deny,
		`{"file_path":"C:\\w\\src\\..\\docs\\a.go"}`: event.Deny,
	} {
		g := ForClaude(FromCapabilities(&Permissions{FileWrite: LevelAllow, WritablePaths: []string{"src"}}))
		if got := g.Decide(event.ToolCall{Name: "Write", Input: json.RawMessage(input)}, facts); got.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", input, got.Verdict, got.Reason, want)
		}
	}
}

// Where writing is fine, its level decides; where it is not, no level helps. Nil is everywhere, and
// empty is nowhere.
func TestWritablePaths_OnlyRestrictTheLevel(t *testing.T) {
	call := func(path string) event.ToolCall {
		return event.ToolCall{Name: "Write", Input: json.RawMessage(`{"file_path":"` + path + `"}`)}
	}
	for _, tt := range []struct {
		level           Level
		paths           []string
		inside, outside event.Verdict
	}{
		{LevelUnset, nil, event.Ask, event.Ask},
		{LevelUnset, []string{"src"}, event.Ask, event.Deny},
		{LevelAsk, []string{"src"}, event.Ask, event.Deny},
		{LevelAllow, nil, event.Allow, event.Allow},
		{LevelAllow, []string{"src"}, event.Allow, event.Deny},
		{LevelAllow, []string{"docs", "src"}, event.Allow, event.Deny},
		{LevelAllow, []string{}, event.Deny, event.Deny},
		{LevelDeny, []string{"src"}, event.Deny, event.Deny},
	} {
		g := ForClaude(FromCapabilities(&Permissions{FileWrite: tt.level, ShellExecute: LevelAsk, NetworkAccess: LevelAllow, WritablePaths: tt.paths}))
		facts := Facts{Dir: "/w"}
		in, out := g.Decide(call("/w/src/a"), facts), g.Decide(call("/w/a"), facts)
		if in.Verdict != tt.inside || out.Verdict != tt.outside {
			t.Errorf("%s below %q: inside %s (%s), outside %s (%s); want %s and %s", tt.level, tt.paths, in.Verdict, in.Reason, out.Verdict, out.Reason, tt.inside, tt.outside)
		}
		for name, want := range map[string]event.Verdict{"Bash": event.Ask, "WebFetch": event.Allow, "Read": event.Allow} {
			if got := g.Decide(event.ToolCall{Name: name, Input: json.RawMessage(`{"file_path":"/w/a"}`)}, facts).Verdict; got != want {
				t.Errorf("%q: %s, which writes no files, is %s, want %s", tt.paths, name, got, want)
			}
		}
	}
}

// A policy keeps what it was given, whatever becomes of the slice.
func TestWritablePaths_AreCopied(t *testing.T) {
	paths := []string{"./src", "src/"}
	policy := FromCapabilities(&Permissions{FileWrite: LevelAllow, WritablePaths: paths})
	if diff := cmp.Diff([]string{"src"}, policy.Permissions.WritablePaths); diff != "" {
		t.Errorf("paths of the policy (-want +got):\n%s", diff)
	}
	paths[0], policy.Permissions.WritablePaths[0] = "etc", "etc"
	g := ForClaude(policy)
	if got := g.Decide(event.ToolCall{Name: "Write", Input: json.RawMessage(`{"file_path":"/w/etc/a"}`)}, Facts{Dir: "/w"}); got.Verdict != event.Deny {
		t.Errorf("a later change gave %s", got.Verdict)
	}
}

// The target that the engine finds: links in all places, and files that are still to be made.
func TestWritablePaths_LinksAreFollowedFirst(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	for _, dir := range []string{"w/src", "out"} {
		if err := os.MkdirAll(at(dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"w/src/away": "out", "w/src/new": "out/not-there", "w/src/round": "w/src/round", "w/way-in": "w/src", "w/src/inner": "w/src"} {
		if err := os.Symlink(at(to), at(from)); err != nil {
			t.Skipf("cannot make links here: %v; run the tests where a user may", err)
		}
	}
	e := NewEngine(ForClaude(FromCapabilities(&Permissions{FileWrite: LevelAllow, WritablePaths: []string{"src"}})), nil)
	for name, want := range map[string]event.Verdict{
		"w/src/a": event.Allow, "w/src/new-dir/a": event.Allow, "w/src/inner/a": event.Allow,
		"w/src/away/a": event.Deny, "w/src/away": event.Deny, "w/src/new": event.Deny, "w/src/round": event.Deny,
		"w/src/away/../a": event.Deny, "w/way-in/a": event.Deny, "out/a": event.Deny,
	} {
		input, err := json.Marshal(map[string]string{"file_path": root + "/" + name})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Decide(t.Context(), event.ToolCall{Name: "Write", Input: input, Dir: at("w")}); got.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", name, got.Verdict, got.Reason, want)
		}
	}
}

func FuzzWritablePath(f *testing.F) {
	for _, s := range []string{"src", "./a/./b/", `a\b`, "..", "/x", "C:x", "./a:", "a//b", "a\x00", "~", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := canonicalPath(text)
		if err != nil {
			return
		}
		if again, err := canonicalPath(got); err != nil || again != got {
			t.Fatalf("%q becomes %q, and that %q (%v)", text, got, again, err)
		}
		if !filepath.IsLocal(filepath.FromSlash(got)) || !utf8.ValidString(got) || strings.ContainsAny(got, notInPaths+`\`) {
			t.Fatalf("%q becomes %q, which is no place in a workspace", text, got)
		}
	})
}

// With writable paths nothing passes that would not pass without them, and nothing is written outside.
func TestWritablePaths_NeverAllowMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(rapid.SampledFrom([]string{"src", "docs", "x", "..", ".", "", " ", "~", `\`, "SRC"}), 0, 6)
		start := rapid.SampledFrom([]string{"", "/", "/w/", "/w/src/", "./"})
		name := start.Draw(t, "start") + strings.Join(segments.Draw(t, "path"), "/")
		level := rapid.SampledFrom([]Level{LevelUnset, LevelAsk, LevelAllow, LevelDeny})
		p := Permissions{FileWrite: level.Draw(t, "files"), ShellExecute: LevelDeny, NetworkAccess: level.Draw(t, "network")}
		input, err := json.Marshal(map[string]string{rapid.SampledFrom([]string{"file_path", "path", "notebook_path"}).Draw(t, "field"): name})
		if err != nil {
			t.Fatal(err)
		}
		call := event.ToolCall{Name: rapid.SampledFrom([]string{"Write", "Edit", "NotebookEdit", "save", "Bash", "Read"}).Draw(t, "tool"), Input: input}
		facts := Facts{Dir: rapid.SampledFrom([]string{"/w", "/w/src", "/"}).Draw(t, "dir"), Workspace: "/w"}
		free := ForClaude(writers(), FromCapabilities(&p)).Decide(call, facts)
		p.WritablePaths = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"src", "docs/x", "x"}), 0, 3, rapid.ID).Draw(t, "writable")
		bound := ForClaude(writers(), FromCapabilities(&p)).Decide(call, facts)
		if bound.Verdict > free.Verdict {
			t.Fatalf("%s without writable paths, %s with %q", free.Verdict, bound.Verdict, p.WritablePaths)
		}
		if call.Name == "Bash" || call.Name == "Read" || bound.Verdict == event.Deny {
			return
		}
		at := path.Clean(name)
		if !path.IsAbs(name) {
			at = path.Join(facts.Dir, name)
		}
		if !slices.ContainsFunc(p.WritablePaths, func(dir string) bool { return isBelow(at, "/w/"+dir) }) {
			t.Fatalf("%s may write %s below %q", call.Name, at, p.WritablePaths)
		}
	})
}
