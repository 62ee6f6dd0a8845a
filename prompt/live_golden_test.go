// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/drover-agents/drover/tool"
)

// conversations are what the model sees and does, by the name of the file that has it.
var conversations = map[string]struct {
	restart bool
	taken   []*tool.Tool // that the registry has already
	calls   []tool.Call
}{
	"opening": {calls: []tool.Call{
		{Name: ReadSection, Input: json.RawMessage(`{"section_key":"manual.history"}`)},
		{Name: ReadSection, Input: json.RawMessage(`{"section_key":"manual"}`)},
		{Name: OpenSections, Input: json.RawMessage(`{"section_keys":["manual"],"reason":"r"}`)},
		{Name: OpenSections, Input: json.RawMessage(`{"section_keys":["manual"],"reason":"r"}`)},
		{Name: OpenSections, Input: json.RawMessage(`{"section_keys":["notes","manual.deploy"],"reason":"r"}`)},
		{Name: OpenSections, Input: json.RawMessage(`{"section_keys":[],"reason":"r"}`)},
		{Name: OpenSections, Input: json.RawMessage(`{"section_keys":["attic"],"reason":"r"}`)},
	}},
	"restart": {restart: true, calls: []tool.Call{
		{Name: OpenSections, Input: json.RawMessage(`{"section_keys":["attic"],"reason":"r"}`)},
		{Name: OpenSections, Input: json.RawMessage(`{"section_keys":["manual"],"reason":"r"}`)},
	}},
	"conflict": {taken: []*tool.Tool{named("build")}, calls: []tool.Call{
		{Name: OpenSections, Input: json.RawMessage(`{"section_keys":["manual"],"reason":"r"}`)},
	}},
}

// What the model reads is the same to the byte in every run, so that its provider can keep it.
func TestLive_TextsForTheModelAreStable(t *testing.T) {
	for name, c := range conversations {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "live", name+".txtar")
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(archive.Comment)) == 0 {
				t.Errorf("%s does not say why it is there", path)
			}
			l := mustLive(t, library(), &LiveOptions{Restart: c.restart, Registry: tool.MustRegistry(nil, c.taken...)})
			got := []txtar.File{{Name: "tools", Data: describeTools(t, l)}}
			for i, call := range c.calls {
				result := l.registry.Execute(t.Context(), call)
				text := fmt.Sprintf("%s\n%s\n", result.Outcome, result.Render())
				got = append(got, txtar.File{Name: fmt.Sprintf("%d %s %s", i+1, call.Name, call.Input), Data: []byte(text)})
			}
			if *update {
				archive.Files = got
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := string(txtar.Format(&txtar.Archive{Files: archive.Files}))
			if diff := cmp.Diff(want, string(txtar.Format(&txtar.Archive{Files: got}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// describeTools writes the tools of disclosure as the model has them.
func describeTools(t testing.TB, l *Live) []byte {
	var b strings.Builder
	for _, have := range l.registry.Tools() {
		if have.Name != OpenSections && have.Name != ReadSection {
			continue
		}
		var schema bytes.Buffer
		if err := json.Indent(&schema, have.Input.JSON(), "", "  "); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n%s\n", have.Name, have.Description, &schema)
	}
	return []byte(b.String())
}
