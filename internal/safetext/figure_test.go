// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"testing"
	"time"
)

func TestFigures_Format(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Dollars(0), "$0.00"},
		{Dollars(0.00042), "$0.0004"},
		{Dollars(0.0213), "$0.021"},
		{Dollars(0.5), "$0.50"},
		{Dollars(12.345), "$12.35"},
		{Thousands(0), "0"},
		{Thousands(999), "999"},
		{Thousands(1000), "1,000"},
		{Thousands(1234567), "1,234,567"},
		{Plural(1, "line"), "1 line"},
		{Plural(1200, "line"), "1,200 lines"},
		{Span(0), "0 ms"},
		{Span(200 * time.Microsecond), "0.2 ms"},
		{Span(61 * time.Millisecond), "61 ms"},
		{Span(1400 * time.Millisecond), "1.4 s"},
		{Span(time.Hour + 62*time.Second), "1:01:02"},
		{Clock(59 * time.Second), "59 s"},
		{Clock(65 * time.Second), "1:05"},
		{Clock(-time.Second), "0 s"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
