// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace"
)

func TestEncoding_IsIndependentOfReadBoundaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := []byte(strings.Repeat("x", rapid.SampledFrom([]int{0, 5, 32<<10 - 2, 64<<10 - 1}).Draw(t, "before")))
		content = append(content, rapid.String().Draw(t, "text")...)
		if rapid.Bool().Draw(t, "broken") {
			content = append(content, rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "bytes")...)
		}
		content = append(content, rapid.SampledFrom([]string{"", "€", "end"}).Draw(t, "after")...)
		for name, r := range map[string]interface {
			Read(p []byte) (int, error)
		}{
			"at once": bytes.NewReader(content), "in halves": iotest.HalfReader(bytes.NewReader(content)),
			"error with the data": iotest.DataErrReader(bytes.NewReader(content)),
		} {
			got, err := workspace.IsUTF8(r)
			if want := utf8.Valid(content); err != nil || got != want {
				t.Errorf("%s: %t, %v, want %t for %q", name, got, err, want, content[max(0, len(content)-20):])
			}
		}
	})
}
