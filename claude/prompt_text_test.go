// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
)

func TestPrompt_TextThatWouldNotArriveAsItIsIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"caf\xe9": "is not UTF-8: byte 3 is 0xe9", "\xed\xa0\x80": "is not UTF-8: byte 0 is 0xed", "a\x00": "has a NUL byte at byte 1",
		"café \u2028 \ufffd \t": "",
	} {
		for name, prompt := range map[string]Prompt{"text": {Text: text}, "part": {Text: "a", Content: []Content{TextContent(text)}}} {
			_, err := prompt.line(false)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(advice.Text(err), want) {
				t.Errorf("%s %q: got %v, want %q", name, text, err, want)
			}
		}
	}
}
