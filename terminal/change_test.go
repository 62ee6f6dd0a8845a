// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
)

func TestChange_OfACall(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	writeFile(t, filepath.Join(dir, "a.txt"), []byte("one\ntwo\nthree\ntwo\n"))
	writeFile(t, outside, []byte("the secret\n"))
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	opts := &Options{Catalogue: catalogue.Tools(), Dir: dir}
	edit := func(path, rest string) string { return `{"file_path":"` + path + `",` + rest + `}` }
	for _, x := range []struct {
		name, tool, input string
		ahead             bool
		want              []string
	}{
		{"an edit ahead has the lines of the file", "Edit", edit("a.txt", `"old_string":"three","new_string":"3"`), true, []string{"@@ -1,4 +1,4 @@", " one", " two", "-three", "+3", " two"}},
		{"an edit of the first text", "Edit", edit("a.txt", `"old_string":"two","new_string":"2"`), true, []string{"@@ -1,4 +1,4 @@", " one", "-two", "+2", " three", " two"}},
		{"an edit of every text", "Edit", edit("a.txt", `"old_string":"two","new_string":"2","replace_all":true`), true, []string{"@@ -1,4 +1,4 @@", " one", "-two", "+2", " three", "-two", "+2"}},
		{"a path from the root", "Edit", edit(dir+"/a.txt", `"old_string":"three","new_string":"3"`), true, []string{"@@ -1,4 +1,4 @@", " one", " two", "-three", "+3", " two"}},
		{"a text that is not there", "Edit", edit("a.txt", `"old_string":"four","new_string":"4"`), true, []string{"-four", "+4"}},
		{"an edit that is over", "Edit", edit("a.txt", `"old_string":"  a\n\tb","new_string":"  a\n\tc"`), false, []string{"   a", "-    b", "+    c"}},
		{"several edits", "MultiEdit", edit("a.txt", `"edits":[{"old_string":"one","new_string":"1"},{"old_string":"x","new_string":""}]`), false, []string{"-one", "+1", "…", "-x"}},
		{"a file that is written again", "Write", edit("a.txt", `"content":"one\ntwo\ntwo\n"`), true, []string{"@@ -1,4 +1,3 @@", " one", " two", "-three", " two"}},
		{"a new file", "Write", edit("new.txt", `"content":"x\n"`), true, []string{"@@ -0,0 +1 @@", "+x"}},
		{"a file that was written", "Write", edit("a.txt", `"content":"x\ny"`), false, []string{"+x", "+y"}},
		{"a link to the outside is not read", "Write", edit("link", `"content":"x\n"`), true, []string{"+x"}},
		{"a path to the outside is not read", "Write", edit(outside, `"content":"x\n"`), true, []string{"+x"}},
		{"a folder", "Write", edit(dir, `"content":"x\n"`), true, []string{"+x"}},
		{"control characters", "Write", edit("new.txt", `"content":"\u001b[2J\r\n"`), false, []string{`+\x1b[2J\r`}},
		{"no change", "Edit", edit("a.txt", `"old_string":"one","new_string":"one"`), true, nil},
		{"too large", "Write", edit("a.txt", `"content":"`+strings.Repeat("x", maxChange)+`"`), true, nil},
		{"another tool", "Bash", `{"command":"ls"}`, true, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			if diff := cmp.Diff(x.want, opts.changeOf(toolCall("1", x.tool, x.input), x.ahead)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReason_IsShownWhileItIsTyped(t *testing.T) {
	q := &question{open: true, reason: new("use the other tool, which is much faster")}
	for room, want := range map[int]string{
		79: "  no, with the reason: …ol, which is much faster_   [enter] send it  [esc] back",
		30: "  no: …, which is much faster_",
	} {
		if got := q.line(room); got != want {
			t.Errorf("%d columns: %q, want %q", room, got, want)
		}
	}
}
