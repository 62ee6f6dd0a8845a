// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// A link that an agent has left in its workspace does not choose what the next one gets to see, although
// the caller names it.
func TestWorkspace_LinkIsNotFollowed(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(root, "work")
	mustMake(t, filepath.Join(root, "host", "file"), "secret")
	mustMake(t, filepath.Join(work, "folder", "file"), "harmless")
	for link, to := range map[string]string{"out": filepath.Join(root, "host"), "folder/up": "../../host", "settings": filepath.Join(root, "host", "file"), "in": "folder"} {
		if err := os.Symlink(to, filepath.Join(work, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		in      isolation.Isolation
		dirs    []string
		files   []isolation.File
		refused bool
	}{
		"a writable path":             {in: isolation.Isolation{Sandbox: &isolation.Sandbox{WritablePaths: []string{"out"}}}, refused: true},
		"a readable path":             {in: isolation.Isolation{Sandbox: &isolation.Sandbox{ReadablePaths: []string{"folder/up"}}}, refused: true},
		"a path through a link":       {in: isolation.Isolation{Sandbox: &isolation.Sandbox{ReadablePaths: []string{"out/file"}}}, refused: true},
		"a folder of the CLI":         {dirs: []string{filepath.Join(work, "out")}, refused: true},
		"a socket":                    {in: isolation.Isolation{Network: &isolation.NetworkPolicy{UnixSockets: []string{filepath.Join(work, "settings")}}}, refused: true},
		"settings":                    {files: []isolation.File{{Path: filepath.Join(work, "settings"), Optional: true}}, refused: true},
		"a link within the workspace": {dirs: []string{filepath.Join(work, "in")}},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.TempDir = root
			p := programIn(work)
			p.AddDirs, p.Files = c.dirs, c.files
			cell, err := c.in.Open(t.Context(), p, isolation.OpenOptions{})
			if err == nil {
				_ = cell.Close()
			}
			if refused := err != nil && strings.Contains(advice.Text(err), "is a link to"); refused != c.refused {
				t.Errorf("got %v, want refused: %v", err, c.refused)
			}
		})
	}
}

// The CLI is run outside of the cell too, to ask for its version.
func TestCLI_ReplaceableIsNotRun(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/true", filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	mustMake(t, filepath.Join(work, "bin", "claude"), "#!/bin/sh\n")
	opts := programIn(work)
	cell, err := (&isolation.Isolation{TempDir: filepath.Dir(work), APIKey: "key"}).Open(t.Context(), opts, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	for _, name := range []string{"bin/claude", "link"} {
		_, err := cell.Spawn(t.Context(), launch.Command{Path: filepath.Join(work, name), Dir: work, Env: cell.Inside().Environ()})
		if err == nil || !strings.Contains(advice.Text(err), "could replace it") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}

// A CLI that is installed in the project can be run, and the agent can change neither it nor the way to it.
func TestCLI_InTheProjectCannotBeReplaced(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const attempts = "#!/bin/sh\nfor try in \"rm -f tools/cli/claude\" \"mv tools/cli tools/old\" \"mv tools old\" \"ln -sfn /bin/true tools/bin/claude\" \"touch tools/new\"; do $try 2>/dev/null && echo \"OPEN: $try\"; done\ntouch beside && echo done\n"
	mustMake(t, filepath.Join(work, "tools", "cli", "claude"), attempts)
	program, link := filepath.Join(work, "tools", "cli", "claude"), filepath.Join(work, "tools", "bin", "claude")
	if err := errors.Join(os.Chmod(program, 0o700), os.Mkdir(filepath.Dir(link), 0o700), os.Symlink("../cli/claude", link)); err != nil {
		t.Fatal(err)
	}
	opts := programIn(work)
	opts.Path = link
	cell, err := (&isolation.Isolation{TempDir: filepath.Dir(work), APIKey: "key"}).Open(t.Context(), opts, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	p, err := cell.Spawn(t.Context(), launch.Command{Path: link, Dir: work, Env: cell.Inside().Environ()})
	if err != nil {
		t.Fatal(err)
	}
	output, err := io.ReadAll(p.Stdout())
	if err != nil || string(output) != "done\n" {
		t.Errorf("the agent printed %q (%v), want that it could change nothing but what is beside", output, err)
	}
	if now, err := os.ReadFile(program); err != nil || string(now) != attempts {
		t.Errorf("the CLI has become %q (%v)", now, err)
	}
}
