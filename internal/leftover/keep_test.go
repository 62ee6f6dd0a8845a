// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"errors"
	"os"
	"testing"
)

func TestFolder_FailedKeepReturnsTheErrorEachTime(t *testing.T) {
	folder, err := Kind{Prefix: "test-", Text: "a test\n"}.Make(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.mark.file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := folder.Keep(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Keep: %v, want that the marker cannot be written", err)
		}
	}
}
