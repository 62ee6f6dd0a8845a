// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"fmt"
	"strings"
	"time"
)

// Plural is a number of things: "1 line", "1,200 lines".
func Plural[N ~int | ~int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Thousands(int64(n)) + " " + thing + "s"
}

// Thousands writes 1234567 as 1,234,567.
func Thousands(n int64) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Dollars is an amount of money. Small amounts have more digits.
func Dollars(usd float64) string {
	switch {
	case usd == 0 || usd >= 1:
		return fmt.Sprintf("$%.2f", usd)
	case usd < 0.01:
		return fmt.Sprintf("$%.4f", usd)
	}
	text := fmt.Sprintf("$%.3f", usd)
	return strings.TrimSuffix(text, "0")
}

// Span writes a duration with the figures that matter.
func Span(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond && d%time.Millisecond != 0:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return Clock(d)
}

// Clock writes whole seconds: "7 s", "3:05", "1:03:05".
func Clock(d time.Duration) string {
	s := int(max(0, d).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
