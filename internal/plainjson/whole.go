// SPDX-License-Identifier: Apache-2.0

package plainjson

import (
	"iter"
	"math"
	"strconv"
	"strings"
)

// MaxWhole is the largest integer up to which doubles represent every one. A program whose numbers are
// doubles, as in JavaScript, rounds larger ones.
const MaxWhole = 1<<53 - 1

// Rounds reports whether a program whose numbers are doubles would change a whole number of a JSON text.
func Rounds(text []byte) bool {
	for literal, f := range beyond(text) {
		if strconv.FormatFloat(f, 'f', -1, 64) != literal {
			return true
		}
	}
	return false
}

// MayBeRounded reports whether a JSON text has a whole number beyond ±[MaxWhole].
func MayBeRounded(text []byte) bool {
	for range beyond(text) {
		return true
	}
	return false
}

// beyond yields the whole numbers of a valid text that are beyond ±[MaxWhole], and the doubles nearest to
// them. One with a fraction or an exponent is meant as a double.
func beyond(valid []byte) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for i := 0; i < len(valid); i++ {
			switch c := valid[i]; {
			case c == '"':
				for i++; i < len(valid) && valid[i] != '"'; i++ {
					if valid[i] == '\\' {
						i++
					}
				}
			case c == '-' || c >= '0' && c <= '9':
				end := i + 1
				for end < len(valid) && strings.IndexByte("0123456789.eE+-", valid[end]) >= 0 {
					end++
				}
				literal := string(valid[i:end])
				i = end - 1
				if strings.ContainsAny(literal, ".eE") {
					continue
				}
				f, _ := strconv.ParseFloat(literal, 64) // one beyond all doubles is infinite
				if math.Abs(f) > MaxWhole && !yield(literal, f) {
					return
				}
			}
		}
	}
}
