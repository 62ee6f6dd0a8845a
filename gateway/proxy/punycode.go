// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// toASCII gives the form in which a part of a name is looked up: "bücher" is "xn--bcher-kva". ASCII
// stays as it is. Characters that the standards of international names treat differently are refused.
func toASCII(label string) (string, error) {
	if isASCII(label) {
		return label, nil
	}
	if !utf8.ValidString(label) {
		return "", errors.New("it is not UTF-8")
	}
	if strings.ContainsAny(label, "ßẞς\u200c\u200d") {
		return "", errors.New("it has a character that not all programs write the same way in ASCII")
	}
	label = norm.NFKC.String(strings.ToLower(norm.NFKC.String(label)))
	for _, r := range label {
		if r >= utf8.RuneSelf && !unicode.In(r, unicode.Ll, unicode.Lo, unicode.Lm, unicode.M, unicode.Nd) {
			return "", fmt.Errorf("%q does not belong into a name", r)
		}
	}
	if isASCII(label) {
		return label, nil
	}
	if strings.HasPrefix(label, "xn--") {
		return "", errors.New("it is half in ASCII form")
	}
	return "xn--" + punycode([]rune(label)), nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// The numbers of RFC 3492, section 5.
const (
	punyBase    = 36
	punyMin     = 1
	punyMax     = 26
	punySkew    = 38
	punyDamp    = 700
	punyBias    = 72
	punyInitial = rune(utf8.RuneSelf)
)

// punycode is the encoding of RFC 3492: the ASCII characters in their order, then for every other
// one, from the smallest on, how far the pair of character and place has moved since the last.
func punycode(text []rune) string {
	var out []byte
	for _, r := range text {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	ascii := len(out)
	if ascii > 0 {
		out = append(out, '-')
	}
	threshold, bias, delta, done := punyInitial, punyBias, 0, ascii
	for _, r := range othersInOrder(text) {
		delta += int(r-threshold) * (done + 1)
		for _, at := range text {
			if at < r {
				delta++
			}
			if at == r {
				out = appendPunyNumber(out, delta, bias)
				bias = adaptBias(delta, done+1, done == ascii)
				delta = 0
				done++
			}
		}
		delta++
		threshold = r + 1
	}
	return string(out)
}

// othersInOrder are the characters that are not ASCII, each once.
func othersInOrder(text []rune) []rune {
	others := slices.DeleteFunc(slices.Clone(text), func(r rune) bool { return r < utf8.RuneSelf })
	slices.Sort(others)
	return slices.Compact(others)
}

// appendPunyNumber writes n with digits of variable weight, the lowest first.
func appendPunyNumber(out []byte, n, bias int) []byte {
	for k := punyBase; ; k += punyBase {
		limit := min(max(k-bias, punyMin), punyMax)
		if n < limit {
			return append(out, punyDigit(n))
		}
		out = append(out, punyDigit(limit+(n-limit)%(punyBase-limit)))
		n = (n - limit) / (punyBase - limit)
	}
}

func punyDigit(n int) byte { return "abcdefghijklmnopqrstuvwxyz0123456789"[n] }

func adaptBias(delta, count int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / count
	k := 0
	for ; delta > (punyBase-punyMin)*punyMax/2; k += punyBase {
		delta /= punyBase - punyMin
	}
	return k + (punyBase-punyMin+1)*delta/(delta+punySkew)
}
