// SPDX-License-Identifier: Apache-2.0

package event

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPosition_TextIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Position{rapid.Int64Min(0).Draw(t, "entry"), rapid.IntMin(0).Draw(t, "part")}
		var got Position
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("%s is read as %s: %v", want, got, err)
		}
	})
}

func TestPosition_OtherTextIsRefused(t *testing.T) {
	for _, text := range []string{"", ".", "12.", ".3", "12.0", "012", "-1", "1.-1", "1.2.3", "+1", "x", "99999999999999999999"} {
		var got Position
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}
