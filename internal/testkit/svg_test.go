// SPDX-License-Identifier: Apache-2.0

package testkit_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
)

func TestSVG_KeepsTextColoursAndColumns(t *testing.T) {
	got := testkit.SVG("  Write  a<b>.go  \x1b[31mdenied\x1b[0m\n\x1b[2mquiet\nstill\x1b[39m\n\n")
	for _, want := range []string{
		`<text x="31.7" y="29">Write  a&lt;b&gt;.go</text>`, `<text x="156.9" y="29" class="b">denied</text>`,
		`<text x="16.0" y="47" class="q">quiet</text>`, `<text x="16.0" y="65" class="q">still</text>`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
