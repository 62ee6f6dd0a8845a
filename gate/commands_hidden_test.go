// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// Where a shell and the parser do not read a command alike, what is denied stays denied.
func TestADenialSeesWhatOnlyTheShellTakesForACommand(t *testing.T) {
	g := gate.Must(gate.DenyTools("Bash(rm:*)"), gate.FromCapabilities(&gate.Permissions{Mode: gate.ModeBypass}))
	for command, want := range map[string]event.Verdict{
		"coproc rm x":              event.Deny,
		"coproc rm x | cat":        event.Deny,
		"coproc rm x |& cat":       event.Deny,
		"coproc copy { rm x; }":    event.Deny,
		"coproc copy { cat x; }":   event.Allow,
		"let a&rm x":               event.Deny,
		"let a=1&&rm x":            event.Deny,
		"let a||rm x":              event.Deny,
		"let a|rm x":               event.Deny,
		"let ${a@P}&rm x":          event.Deny,
		"let a=1+2 b=a*3":          event.Allow,
		"let a=1; rm x":            event.Deny,
		"let 'a = 1 > 0' && cat x": event.Allow,
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if d := g.Decide(event.ToolCall{Name: "Bash", Input: input}, gate.Facts{}); d.Verdict != want {
			t.Errorf("%q: %s, %q; want %s", command, d.Verdict, d.Reason, want)
		}
	}
}
