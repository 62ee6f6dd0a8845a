// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/leftover"
)

// HomePrefix begins the names of homes.
const HomePrefix = "drover-home-"

// HomeOptions configures [NewHome]. The zero value is ready to use.
type HomeOptions struct {
	// TempDir is the folder in which the home is made. Empty means [os.TempDir].
	TempDir string
	// Prefix begins the name of the home. Empty means [HomePrefix].
	Prefix string
	// ConfigDir is the name of the folder in the home for the configuration of a program. Empty means none.
	ConfigDir string
}

// A Home is the private home of one run: settings, skills, transcripts, temporary files. No other user can read it, and
// Close removes it. A program that is killed before it calls Close leaves it behind for [SweepHomes].
type Home struct {
	folder *leftover.Folder
	config string
}

// NewHome makes a home. In it is a folder for temporary files. Call Close when the run is over, also if it failed.
func NewHome(o HomeOptions) (*Home, error) {
	if strings.ContainsAny(o.Prefix, `/\`) {
		return nil, advice.Wrap(fmt.Errorf("isolation: the prefix %q of homes has a slash", o.Prefix),
			"set Isolation.TempDir to choose the folder")
	}
	folder, err := homes(o.Prefix).Make(o.TempDir)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("isolation: a private home for the run: %w", err),
			"set Isolation.TempDir to a folder that can be written to")
	}
	h := &Home{folder, o.ConfigDir}
	err = os.Mkdir(h.TempDir(), 0o700)
	if o.ConfigDir != "" {
		err = errors.Join(err, os.Mkdir(h.ConfigDir(), 0o700))
	}
	if err != nil {
		return nil, errors.Join(advice.Wrap(fmt.Errorf("isolation: the private home %s: %w", h.Path(), err),
			"make room there, or set Isolation.TempDir to another folder"), h.Close())
	}
	return h, nil
}

// Path is the home itself.
func (h *Home) Path() string { return h.folder.Path() }

// ConfigDir is the folder of the program's configuration, or the home itself if it has none.
func (h *Home) ConfigDir() string { return filepath.Join(h.Path(), h.config) }

// TempDir is for temporary files.
func (h *Home) TempDir() string { return filepath.Join(h.Path(), "tmp") }

// share shows what was put into the configuration folder, such as skills, in another one too: that of a
// conversation which is continued. What is there already stays.
func (h *Home) share(config string) error {
	if config == "" || config == h.ConfigDir() {
		return nil
	}
	entries, err := os.ReadDir(h.ConfigDir())
	for _, entry := range entries {
		link := os.Symlink(filepath.Join(h.ConfigDir(), entry.Name()), filepath.Join(config, entry.Name()))
		if !errors.Is(link, os.ErrExist) {
			err = errors.Join(err, link)
		}
	}
	if err != nil {
		return advice.Wrap(fmt.Errorf("isolation: showing the home's configuration in %s: %w", config, err),
			"see that the folder is there and can be written")
	}
	return nil
}

// Close removes the home and everything in it, also what the agent made unreadable. It may be called
// more than once and from several goroutines; all get the same answer, after the home is gone.
func (h *Home) Close() error {
	if err := h.folder.Remove(); err != nil {
		return advice.Wrap(fmt.Errorf("isolation: removing the private home: %w", err), "remove %s by hand", h.Path())
	}
	return nil
}
