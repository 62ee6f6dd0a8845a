// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// libraryAttack waits for libraries that the CLI writes to load them: who exchanges one runs code in the CLI. It
// makes the first file once it waits, and writes what it sees to the second.
func libraryAttack(args []string) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, "/tmp", unix.IN_CREATE|unix.IN_MOVED_TO)
	}
	if err == nil {
		err = os.WriteFile(args[0], nil, 0o600)
	}
	events := make([]byte, 64<<10)
	for err == nil {
		var n int
		n, err = unix.Read(fd, events)
		if err == nil && bytes.Contains(events[:n], []byte(".node\x00")) {
			err = os.WriteFile(args[1], events[:n], 0o600)
		}
	}
	fmt.Println(err)
}

const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// The oldest CLI has a library for images, which it writes to its temporary folder and loads. Commands can write
// there, and change the settings that name the folder.
func TestCLI_LoadsNoLibraryThatACommandCanExchange(t *testing.T) {
	h := newTargetWith(t, claudetest.OldestCLI(t))
	pixel, err := base64.StdEncoding.DecodeString(onePixel)
	if err != nil {
		t.Fatal(err)
	}
	image := h.WriteFile(t, "pixel.png", string(pixel))
	watch := "(setsid env " + attacker("library", "waits", "seen") + " >/dev/null 2>&1 &) ; while [ ! -e waits ]; do " + attacker("blink") + "; done; "
	settings := `echo '{"env":{"BUN_TMPDIR":"/tmp","TMPDIR":"/tmp"}}' > $CLAUDE_CONFIG_DIR/settings.json; ` + attacker("pause")
	model := h.agent(t,
		script.Call("Bash", script.Input{"command": watch + settings}),
		script.Call("Read", script.Input{"file_path": image}),
		script.Text("Seen."),
	)
	done := h.run(t, h.isolation(), nil).done(t)
	if _, err := os.Stat(filepath.Join(h.Work, "waits")); err != nil {
		t.Errorf("no process waited for libraries: %v", err)
	}
	if requests := model.Requests(); len(requests) == 0 || !strings.Contains(string(requests[len(requests)-1].Body), onePixel) {
		t.Errorf("the image was not read: %+v", done)
	}
	if seen, err := os.ReadFile(filepath.Join(h.Work, "seen")); err == nil {
		t.Errorf("the CLI loads a library that commands can exchange: %q", seen)
	}
}
