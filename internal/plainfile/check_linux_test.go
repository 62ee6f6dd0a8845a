// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"errors"
	"os"
	"testing"
)

// What a name led to a moment ago may be something else once it is open.
func TestCheck_LooksAtWhatIsOpen(t *testing.T) {
	for path, want := range map[string]error{t.TempDir(): ErrNotPlain, "/dev/null": ErrNotPlain, "/proc/self/status": ErrNotPlain, "check_linux_test.go": nil} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(file); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		_ = file.Close()
	}
}
