// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Many folders are watched at a time; a change wakes the watches of its file alone.
func TestNewWatch_WakesTheWatchesOfTheFile(t *testing.T) {
	base := t.TempDir()
	if !reportsChanges(base) {
		t.Skip("this file system reports no changes")
	}
	var logs, ends []*Watch
	for _, dir := range []string{"a", "b", "a"} {
		must(t, os.MkdirAll(filepath.Join(base, dir), 0o700))
		logs, ends = append(logs, NewWatch(filepath.Join(base, dir), "log")), append(ends, NewWatch(filepath.Join(base, dir), "end"))
	}
	must(t, os.WriteFile(filepath.Join(base, "a", "log"), nil, 0o600))
	for i := range logs {
		if i != 1 {
			awaitChange(t, "log", logs[i])
		}
		ends[i].Close()
	}
	must(t, os.WriteFile(filepath.Join(base, "b", "log"), nil, 0o600))
	awaitChange(t, "log of b", logs[1])
	for i := range logs {
		if i != 1 && len(logs[i].Changed()) > 0 { // its own second change, a close, was before that of b
			<-logs[i].Changed()
		}
		if len(ends[i].Changed()) > 0 {
			t.Errorf("watch %d of another file was woken", i)
		}
		logs[i].Close()
	}
}
