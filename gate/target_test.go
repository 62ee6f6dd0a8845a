// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

func TestFindTarget_FollowsLinks(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	for _, err := range []error{
		os.MkdirAll(in("project/src"), 0o755), os.MkdirAll(in("secret"), 0o755), os.WriteFile(in("secret/key"), nil, 0o644),
		os.Symlink(in("secret"), in("project/src/door")), os.Symlink(in("nowhere"), in("project/broken")),
		os.Symlink(in("project/loop"), in("project/loop")),
	} {
		if err != nil {
			t.Skipf("cannot make links here: %v; run the tests where a user may", err)
		}
	}
	for name, c := range map[string]struct {
		input string
		want  gate.Target
	}{
		"a file":                    {`{"file_path":"` + in("secret/key") + `"}`, gate.Target{Path: in("secret/key")}},
		"behind a link":             {`{"file_path":"` + in("project/src/door/key") + `"}`, gate.Target{Path: in("secret/key")}},
		"a new file":                {`{"file_path":"` + in("project/new/file") + `"}`, gate.Target{Path: in("project/new/file"), Missing: true}},
		"a new file behind a link":  {`{"file_path":"` + in("project/src/door/new") + `"}`, gate.Target{Path: in("secret/new"), Missing: true}},
		"relative":                  {`{"path":"src/door"}`, gate.Target{Path: in("secret")}},
		"a notebook, out and in":    {`{"notebook_path":"../secret/key"}`, gate.Target{Path: in("secret/key")}},
		"a link to nothing":         {`{"file_path":"` + in("project/broken") + `"}`, gate.Target{Path: in("nowhere"), Missing: true}},
		"up from a link":            {`{"file_path":"` + in("project/src/door") + `/../key"}`, gate.Target{Unresolved: true}},
		"up from a link, relative":  {`{"path":"src/door/../key"}`, gate.Target{Unresolved: true}},
		"up from a directory":       {`{"path":"src/../src/../../secret/key"}`, gate.Target{Path: in("secret/key")}},
		"one file, named twice":     {`{"file_path":"../secret/key","path":"` + in("secret/key") + `"}`, gate.Target{Path: in("secret/key")}},
		"two files":                 {`{"file_path":"../secret/key","path":"src/new"}`, gate.Target{Unresolved: true}},
		"a link to itself":          {`{"file_path":"` + in("project/loop") + `"}`, gate.Target{Unresolved: true}},
		"a file where a folder was": {`{"file_path":"` + in("secret/key/x") + `"}`, gate.Target{Unresolved: true}},
		"nothing":                   {`{"command":"ls"}`, gate.Target{}},
		"two of one name":           {`{"file_path":"a","file_path":"b"}`, gate.Target{Unresolved: true}},
	} {
		t.Run(name, func(t *testing.T) {
			call := gate.ClaudesCall(event.ToolCall{Input: json.RawMessage(c.input)})
			if diff := cmp.Diff(c.want, gate.FindTarget(call, in("project"))); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a function for facts the engine looks itself: a link out of what is allowed is not allowed.
func TestEngine_FollowsLinksWithoutFacts(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	for name, to := range map[string]string{"door": outside, "new": filepath.Join(outside, "new"), "loop": "loop", "inside": "plain.txt"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Skipf("cannot make links here: %v; run the tests where a user may", err)
		}
	}
	e := gate.NewEngine(gate.ForClaude(gate.Rules(gate.RuleOptions{Allow: []string{"Write(/**)"}})), nil)
	for name, want := range map[string]event.Verdict{"plain.txt": event.Allow, "inside": event.Allow, "door/plain.txt": event.Deny, "new": event.Deny, "loop": event.Deny} {
		call := event.ToolCall{Name: "Write", Dir: root, Input: json.RawMessage(`{"file_path":"` + name + `"}`)}
		if d := e.Decide(t.Context(), call); d.Verdict != want {
			t.Errorf("%s: got %s (%s), want %s", name, d.Verdict, d.Reason, want)
		}
	}
}
