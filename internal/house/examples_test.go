// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every example runs its agent in a cell: by the adapter, or by opening one.
func TestEveryExampleIsInACell(t *testing.T) {
	programs, err := filepath.Glob("../../examples/*/main.go")
	if err != nil || len(programs) < 9 {
		t.Fatalf("found %d examples (%v)", len(programs), err)
	}
	for _, path := range programs {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(source)
		opened := strings.Contains(text, "isolation.Isolation") && strings.Contains(text, ".Open(")
		if !opened && !strings.Contains(text, "claudecode.New(") {
			t.Errorf("%s starts a CLI without a cell", path)
		}
		if strings.Contains(text, "Spawner") || strings.Contains(text, "LevelHost") || strings.Contains(text, "isolation.Development") {
			t.Errorf("%s gives up the walls", path)
		}
	}
}
