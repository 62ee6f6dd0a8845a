// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"testing"
)

func TestVerdict_UnknownValuesDeny(t *testing.T) {
	if got := (Decision{}).Verdict; got != Deny {
		t.Errorf("the zero verdict is %v, want deny", got)
	}
	for v := range 256 {
		want := map[int]string{1: "ask", 2: "allow"}[v]
		if want == "" {
			want = "deny"
		}
		text, err := Verdict(v).MarshalText()
		if err != nil || string(text) != want || Verdict(v).String() != want {
			t.Errorf("Verdict(%d) is %q (%s) and %v, want %q", v, text, Verdict(v), err, want)
		}
	}
}

func TestVerdict_StricterIsLess(t *testing.T) {
	if Deny >= Ask || Ask >= Allow {
		t.Error("the order is not deny, ask, allow")
	}
}

func TestVerdict_Text(t *testing.T) {
	for text, want := range map[string]Verdict{"deny": Deny, "ask": Ask, "allow": Allow} {
		got := Verdict(7)
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q gave %v and %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "Allow", "allow ", "yes", "2", "denied"} {
		got := Deny
		if err := got.UnmarshalText([]byte(text)); err == nil || got != Deny {
			t.Errorf("%q gave %v and %v, want an error and no change", text, got, err)
		}
	}
}

func TestDecision_WithoutAVerdictDenies(t *testing.T) {
	for _, text := range []string{`{}`, `{"verdict":null}`, `{"reason":"fine","policy":"x"}`} {
		var d Decision
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.Verdict != Deny {
			t.Errorf("%s gave %v and %v, want deny", text, d.Verdict, err)
		}
	}
}
