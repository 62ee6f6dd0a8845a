// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"fmt"
	"testing"
)

// A file with an override for each of 221 sections.
func BenchmarkFile(b *testing.B) {
	p := writerTemplate(b)
	f := mustFile(b, b.TempDir(), p, "")
	must(b, f.Seed(b.Context(), false))
	b.Run("Resolve", func(b *testing.B) {
		for b.Loop() {
			mustResolve(b, f)
		}
	})
	b.Run("SetText", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			must(b, f.SetText(b.Context(), "big", fmt.Sprint("text ", i)))
		}
	})
}
