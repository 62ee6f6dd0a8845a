// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"
	"strings"
)

// Plural is a number of things: "1 line", "1,200 lines".
func Plural(n int, thing string) string {
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
