// SPDX-License-Identifier: Apache-2.0

package ident

import "testing"

func TestNewUUID_IsValidAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewUUID()
		if !ValidUUID(id) || id[14] != '4' || seen[id] {
			t.Fatalf("%q is no fresh UUID of version 4", id)
		}
		seen[id] = true
	}
}

func TestValidUUID_Forms(t *testing.T) {
	for s, want := range map[string]bool{
		"5ca1ab1e-0000-4000-8000-00000000000F":     true,
		"":                                         false,
		"5ca1ab1e-0000-4000-8000-00000000000":      false,
		"5ca1ab1e-0000-4000-8000-00000000000g":     false,
		"5ca1ab1e00000-4000-8000-000000000000":     false,
		"5ca1ab1e-0000-4000-8000-0000000000/.":     false,
		"../../../etc/passwd-000-000-000-000-":     false,
		"{5ca1ab1e-0000-4000-8000-000000000000}":   false,
		"5ca1ab1e-0000-4000-8000-000000000000\x00": false,
	} {
		if got := ValidUUID(s); got != want {
			t.Errorf("ValidUUID(%q) = %v, want %v", s, got, want)
		}
	}
}
