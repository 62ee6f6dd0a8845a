// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/internal/leftover"
)

// HomePrefix begins the name of every home.
const HomePrefix = "claude-agent-"

// HomeOptions are what the settings of a [Home] are made from. The zero value is a cell without network
// for tools.
type HomeOptions struct {
	Network *NetworkPolicy
	Sandbox *Sandbox
	// Level is which walls the CLI will have.
	Level Level
	// Workspace is what relative paths of Sandbox are meant from. AddDirs are further folders of the
	// agent.
	Workspace string
	AddDirs   []string
	// CLI is the agent's program, and HostHome the home of the host's user. Both matter to the CLI's
	// own sandbox, which hides HostHome but for what is needed.
	CLI, HostHome string
	// ProxyPort and SOCKSPort are where Drover's proxy listens inside of a cell. They matter to the
	// CLI's own sandbox when it is nested.
	ProxyPort, SOCKSPort int

	dir string
}

// A Home is the private home of one run: settings, skills, transcripts, temporary files. Nobody else
// can read it, and Close removes it. A program that is killed before it calls Close leaves it behind
// for [SweepHomes].
type Home struct{ folder *leftover.Folder }

// NewHome makes a home in the folder parent; empty means [os.TempDir]. Call Close when the run is over,
// whatever became of it.
func NewHome(parent string, o HomeOptions) (*Home, error) {
	folder, err := homes.Make(parent)
	if err != nil {
		return nil, fmt.Errorf("isolation: a private home for the run: %w\n  next: set Isolation.TempDir to a folder that can be written to", err)
	}
	h := &Home{folder}
	if err := h.fill(o); err != nil {
		return nil, errors.Join(fmt.Errorf("isolation: the private home %s: %w\n  next: make room there, or set Isolation.TempDir to another folder", h.Path(), err), h.Close())
	}
	return h, nil
}

func (h *Home) fill(o HomeOptions) error {
	for _, dir := range []string{h.ClaudeDir(), h.SkillsDir(), h.TempDir()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	o.dir = h.Path()
	content, err := settingsFor(o).Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(h.SettingsPath(), content, 0o600)
}

// Path is the home itself.
func (h *Home) Path() string { return h.folder.Path() }

// ClaudeDir is the CLI's configuration folder in it.
func (h *Home) ClaudeDir() string { return filepath.Join(h.Path(), ".claude") }

// SettingsPath is the settings file that was generated.
func (h *Home) SettingsPath() string { return settingsFile(h.ClaudeDir()) }

// SkillsDir is where skills belong: each in a folder of its name.
func (h *Home) SkillsDir() string { return filepath.Join(h.ClaudeDir(), "skills") }

// TempDir is for temporary files.
func (h *Home) TempDir() string { return filepath.Join(h.Path(), "tmp") }

// share shows what was put into the configuration folder, such as skills, in another one too: that of a
// conversation which is continued. What is there already stays.
func (h *Home) share(config string) error {
	if config == "" || config == h.ClaudeDir() {
		return nil
	}
	entries, err := os.ReadDir(h.ClaudeDir())
	for _, entry := range entries {
		link := os.Symlink(filepath.Join(h.ClaudeDir(), entry.Name()), filepath.Join(config, entry.Name()))
		if !errors.Is(link, os.ErrExist) {
			err = errors.Join(err, link)
		}
	}
	if err != nil {
		return fmt.Errorf("isolation: showing the home's configuration in %s: %w\n  next: see that the folder is there and can be written", config, err)
	}
	return nil
}

// Close removes the home and everything in it, also what the agent made unreadable. It may be called
// more than once and from several goroutines; all get the same answer, after the home is gone.
func (h *Home) Close() error {
	if err := h.folder.Remove(); err != nil {
		return fmt.Errorf("isolation: removing the private home: %w\n  next: remove %s by hand", err, h.Path())
	}
	return nil
}
