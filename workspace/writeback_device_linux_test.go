// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWriteBack_DeviceIsSkipped(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make devices: run as root")
	}
	null := 1<<8 | 3 // the null device
	c := writeBackCase{
		host: map[string]string{"a": "1"},
		agent: func(t *testing.T, p string) {
			must(t, syscall.Mknod(filepath.Join(p, "null"), syscall.S_IFCHR|0o666, null))
			plant(t, p, map[string]string{"a": "2"})
		},
		want:    map[string]string{"a": "0644 2"},
		skipped: []string{"p/null: is a device, which is never written back"},
	}
	c.run(t)
}
