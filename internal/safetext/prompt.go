// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// PromptProblem returns why a text cannot be sent to a model as it is, or "". JSON would replace bytes that are not UTF-8
// without a word, and a NUL byte ends a text for many programs.
func PromptProblem(text string) string {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return fmt.Sprintf("has a NUL byte at byte %d, so it is not text; remove it", at)
	}
	if utf8.ValidString(text) {
		return ""
	}
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return fmt.Sprintf("is not UTF-8: byte %d is 0x%02x; convert the text to UTF-8", at, text[at])
}
