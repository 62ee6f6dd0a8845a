// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
)

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func TestBlockedTools_Decide(t *testing.T) {
	g := ForClaude(known("ours", "find"), Blocked(), Default(event.Allow))
	cases := []struct {
		name    string
		blocked []string
		want    bool
	}{
		{"Bash", nil, false},
		{"Bash", []string{"Bash"}, true},
		{"Bash(ls)", []string{"Bash"}, true},
		{"find", []string{"find"}, true},
		{"mcp__ours__find", []string{"find"}, true},
		{"find", []string{"mcp__ours__find"}, true},
		{"mcp__ours__find", []string{"mcp__ours__find"}, true},
		{"mcp__other__find", []string{"find"}, false},
		{"mcp__other__find", []string{"mcp__other__find"}, true},
		{"mcp__other__find", []string{"mcp__ours__find"}, false},
		{"Bash", []string{"Read"}, false},
	}
	for _, c := range cases {
		got := g.Decide(event.ToolCall{Name: c.name}, Facts{Blocked: set(c.blocked...)})
		if (got.Verdict == event.Deny) != c.want {
			t.Errorf("%s, blocked %v: got %s, want denied %v", c.name, c.blocked, got.Verdict, c.want)
		}
		if text := "Tool " + c.name + " blocked by session policy"; c.want && got.Reason != text {
			t.Errorf("got %q, want %q", got.Reason, text)
		}
	}
	if got := g.Decide(event.ToolCall{Name: "Bash"}, Facts{Blocked: map[string]bool{"Bash": false}}); got.Verdict != event.Allow {
		t.Errorf("blocked false: got %s, want allow", got.Verdict)
	}
}

func TestAllowedTools_BlockAllOthers(t *testing.T) {
	g := ForClaude(known("ours", "find", "count"), Blocked(), Default(event.Allow))
	cases := []struct {
		name    string
		allowed map[string]bool
		want    event.Verdict
	}{
		{"Bash", nil, event.Allow},
		{"Bash", set(), event.Deny},
		{"Bash", set("Bash"), event.Allow},
		{"Bash(ls)", set("Bash"), event.Allow},
		{"Write", set("Bash"), event.Deny},
		{"mcp__ours__find", set("find"), event.Allow},
		{"mcp__ours__find", set("mcp__ours__find"), event.Allow},
		{"find", set("mcp__ours__find"), event.Allow},
		{"mcp__ours__count", set("find"), event.Deny},
		{"mcp__other__find", set("find"), event.Deny}, // a bare name means no tool of another server
		{"mcp__other__find", set("mcp__other__find"), event.Allow},
		{"ToolSearch", set("Bash"), event.Allow}, // the others cannot be used without it
		{"StructuredOutput", set(), event.Allow},
	}
	for _, c := range cases {
		got := g.Decide(event.ToolCall{Name: c.name}, Facts{Allowed: c.allowed})
		if got.Verdict != c.want || c.want == event.Deny && got.Reason != "Tool "+c.name+" blocked by session policy" {
			t.Errorf("%s where %v are allowed: got %s %q, want %s", c.name, c.allowed, got.Verdict, got.Reason, c.want)
		}
	}
	both := Facts{Allowed: set("Bash"), Blocked: set("Bash")}
	if got := g.Decide(event.ToolCall{Name: "Bash"}, both); got.Verdict != event.Deny {
		t.Errorf("blocked and allowed: got %s", got.Verdict)
	}
	if got := ForClaude(Blocked()).Decide(event.ToolCall{Name: "Bash"}, Facts{Allowed: set("Bash")}); got.Verdict != event.Deny {
		t.Errorf("a tool that is not blocked was allowed for that alone")
	}
}

func TestRequireBefore_Decide(t *testing.T) {
	g := ForClaude(known("ours", "deploy"), Default(event.Allow), RequireBefore(map[string][]string{
		"deploy": {"test", "build", "mcp__ci__check"}, "mcp__ours__deploy": {"build", "approve"}, "Write": {"Read"},
	}))
	cases := []struct {
		tool    string
		invoked []string
		missing string
	}{
		{"deploy", nil, "approve, build, mcp__ci__check, test"},
		{"mcp__ours__deploy", []string{"build"}, "approve, mcp__ci__check, test"},
		{"deploy", []string{"build", "approve", "mcp__ci__check"}, "test"},
		{"deploy", []string{"build", "approve", "check", "test"}, ""},
		{"mcp__other__deploy", nil, ""},
		{"Write", nil, "Read"},
		{"Write", []string{"Read"}, ""},
		{"Edit", nil, ""},
	}
	for _, c := range cases {
		got := g.Decide(event.ToolCall{Name: c.tool}, Facts{Invoked: set(c.invoked...)})
		want := ""
		if c.missing != "" {
			want = "Tool " + c.tool + " needs these tools to succeed first: " + c.missing + ". Call them, then call it again."
		}
		if got.Reason != want || (got.Verdict == event.Allow) != (want == "") {
			t.Errorf("%s after %v: got %s %q, want %q", c.tool, c.invoked, got.Verdict, got.Reason, want)
		}
	}
	if _, err := New(RequireBefore(map[string][]string{"a b": {"x"}, "x": {"*"}})); err == nil || strings.Count(advice.Text(err), "\n") != 1 {
		t.Errorf("got %v, want two errors", err)
	}
}

func TestReadBeforeWrite_Decide(t *testing.T) {
	read := set("/w/a.go", "/real/b.go")
	cases := []struct {
		name, tool, input string
		facts             Facts
		want              string // in the reason; empty means allowed
	}{
		{"read", "Write", `{"file_path":"/w/a.go"}`, Facts{}, ""},
		{"not read", "Write", `{"file_path":"/w/x.go"}`, Facts{}, "/w/x.go has not been read"},
		{"what to do", "Edit", `{"file_path":"/w/x.go"}`, Facts{}, "read it first"},
		{"new", "Write", `{"file_path":"/w/x.go"}`, Facts{Target: Target{Missing: true}}, ""},
		{"relative", "Edit", `{"file_path":"./sub/../a.go"}`, Facts{Dir: "/w"}, ""},
		{"relative to another", "Edit", `{"file_path":"a.go"}`, Facts{Dir: "/v"}, "/v/a.go"},
		{"relative to nothing", "Edit", `{"file_path":"a.go"}`, Facts{}, "absolute"},
		{"not clean", "MultiEdit", `{"file_path":"//w/./x/../a.go/"}`, Facts{}, ""},
		{"notebook", "NotebookEdit", `{"notebook_path":"/w/n.ipynb"}`, Facts{}, "/w/n.ipynb"},
		{"path", "write_file", `{"path":"/w/n"}`, Facts{}, "/w/n"},
		{"of a registry", "mcp__ours__edit_file", `{"path":"/w/n"}`, Facts{}, "/w/n"},
		{"foreign", "mcp__other__edit_file", `{"path":"/w/n"}`, Facts{}, ""},
		{"through a link", "Write", `{"file_path":"/w/link"}`, Facts{Target: Target{Path: "/real/b.go"}}, ""},
		{"through a link to another", "Write", `{"file_path":"/w/link"}`, Facts{Target: Target{Path: "/real/c.go"}}, "/w/link"},
		{"two paths", "Write", `{"file_path":"/w/a.go","path":"/w/x"}`, Facts{}, "/w/x"},
		{"no path", "Write", `{"content":"x"}`, Facts{}, "cannot be determined; give its absolute path"},
		{"no input", "Write", ``, Facts{}, "cannot be determined; give its absolute path"},
		{"twice", "Write", `{"file_path":"/w/a.go","file_path":"/w/a.go"}`, Facts{}, "cannot be determined; give its absolute path"},
		{"home", "Write", `{"file_path":"~/a.go"}`, Facts{Dir: "/w"}, "cannot be determined; give its absolute path"},
		{"not a writer", "Read", `{"file_path":"/w/x.go"}`, Facts{}, ""},
		{"escaped", "Write", `{"file_path":"\/w\/a\u002ego"}`, Facts{}, ""},
		{"on Windows", "Write", `{"file_path":"C:\\W\\a.go"}`, Facts{Dir: `C:\w`, ReadPaths: set(`c:\w\a.go`)}, ""},
		{"on Windows, not read", "Write", `{"file_path":"x.go"}`, Facts{Dir: `C:\w`, ReadPaths: set(`C:\w\a.go`)}, "/c/w/x.go"},
	}
	g := ForClaude(known("ours", "edit_file"), ReadBeforeWrite(ReadBeforeWriteOptions{}), Default(event.Allow))
	for _, c := range cases {
		if c.facts.ReadPaths == nil {
			c.facts.ReadPaths = read
		}
		got := g.Decide(event.ToolCall{Name: c.tool, Input: json.RawMessage(c.input)}, c.facts)
		if (got.Verdict == event.Allow) != (c.want == "") || !strings.Contains(got.Reason, c.want) {
			t.Errorf("%s: got %s %q, want %q", c.name, got.Verdict, got.Reason, c.want)
		}
	}
}

func TestReadBeforeWrite_OtherTools(t *testing.T) {
	g := ForClaude(ReadBeforeWrite(ReadBeforeWriteOptions{WriteTools: []string{"patch", "mcp__fs__write"}}), Default(event.Allow))
	for name, want := range map[string]event.Verdict{"patch": event.Deny, "mcp__fs__write": event.Deny, "Write": event.Deny, "edit_file": event.Deny, "Read": event.Allow} {
		if got := g.Decide(event.ToolCall{Name: name, Input: json.RawMessage(`{"path":"/x"}`)}, Facts{}); got.Verdict != want {
			t.Errorf("%s: got %s, want %s", name, got.Verdict, want)
		}
	}
	if _, err := New(ReadBeforeWrite(ReadBeforeWriteOptions{WriteTools: []string{"a b"}})); err == nil {
		t.Error("got no error")
	}
}
