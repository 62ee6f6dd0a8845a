// SPDX-License-Identifier: Apache-2.0

package plainjson

import (
	"math"
	"strings"
	"testing"
)

func TestRounds_IntegersBeyondDoubles(t *testing.T) {
	for _, tc := range []struct {
		text                 string
		rounds, mayBeRounded bool
	}{
		{`{}`, false, false},
		{`{"a":9007199254740991,"b":-9007199254740991,"c":0}`, false, false},
		{`9007199254740992`, false, true},
		{`9007199254740993`, true, true},
		{`[1,[-9007199254740993]]`, true, true},
		{`{"id": 18446744073709551615 }`, true, true},
		{`18446744073709551616`, true, true}, // a double, but written 18446744073709552000
		{`100000000000000000000`, false, true},
		{`1e300`, false, false},
		{`9007199254740993.5`, false, false},
		{`"9007199254740993"`, false, false},
		{`{"9007199254740993\"":"\\"}`, false, false},
		{`["\\",9007199254740993]`, true, true},
		{strings.Repeat("9", 400), true, true},
	} {
		if got := Rounds([]byte(tc.text)); got != tc.rounds {
			t.Errorf("Rounds(%s) = %t", tc.text, got)
		}
		if got := MayBeRounded([]byte(tc.text)); got != tc.mayBeRounded {
			t.Errorf("MayBeRounded(%s) = %t", tc.text, got)
		}
	}
}

// What Go writes of a double is read again as it was: no value of a float64 is ever given as text.
func FuzzRounds_DoublesStay(f *testing.F) {
	f.Add(math.Float64bits(1e20))
	f.Fuzz(func(t *testing.T, bits uint64) {
		text, err := Marshal(math.Float64frombits(bits))
		if err == nil && Rounds(text) {
			t.Errorf("%s is rounded", text)
		}
	})
}
