// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// Where a shell and the parser do not read a command alike, what is denied stays denied.
func TestDenial_MatchesCommandsThatOnlyTheShellRecognises(t *testing.T) {
	g := gate.ForClaude(gate.DenyTools("Bash(rm:*)"), gate.FromCapabilities(&gate.Permissions{Mode: gate.ModeBypass}))
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

// A shell looks into words in which it expects the name of a variable, quoted or not.
func TestPermission_BuiltinOfTheShellDoesNotCoverTextItEvaluates(t *testing.T) {
	g := gate.ForClaude(gate.AllowTools("Bash(test:*)", "Bash([ *)", "Bash(printf:*)", "Bash(read:*)", "Bash(unset:*)", "Bash(wait:*)", "Bash(mapfile:*)", "Bash(echo:*)"))
	for command, want := range map[string]event.Verdict{
		"test -v 'a[$(rm x)]'":                event.Deny,
		"[ -v 'a[`rm x`]' ]":                  event.Deny,
		`x='a[$(rm x)]'; test -v "$x"`:        event.Deny,
		`x='a[$(rm x)]'; o=-v; [ "$o" "$x" ]`: event.Deny,
		`x='-v a[$(rm${IFS}x)]'; [ $x ]`:      event.Deny,
		`x='a[$(rm x)]'; [ "$x" -eq 1 ]`:      event.Deny,
		"printf -v 'a[$(rm x)]' y":            event.Deny,
		"printf '-va[$(rm x)]' y":             event.Deny,
		`x='-va[$(rm x)]'; printf "$x" y`:     event.Deny,
		"read 'a[$(rm x)]' <<< 1":             event.Deny,
		"unset 'a[$(rm x)]'":                  event.Deny,
		"wait -n -p 'a[$(rm x)]'":             event.Deny,
		"mapfile -C 'rm x' -c 1 <<< 1":        event.Deny,
		"test -f x":                           event.Allow,
		`x=$(echo y); [ -n "$x" ]`:            event.Allow,
		`[ "$x" = y -a "$y" != z ]`:           event.Allow,
		"[ 2 -gt 1 ]":                         event.Allow,
		`printf '%s [$]\n' "$x"`:              event.Allow,
		"printf -v a b":                       event.Allow,
		"read -r x <<< 1":                     event.Allow,
		"unset a; wait; mapfile a <<< 1":      event.Allow,
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
