// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"os"
	"path/filepath"
	"strings"
)

// A Host is the machine as far as a run may look at it. The zero value is this process and its user.
type Host struct {
	// Environ are the variables, as "NAME=value". Nil means [os.Environ]. In [Isolation.Open], and so in a
	// run, nil means the environment of the CLI's options ([claude.Options.Environ]), which may be exact.
	Environ func() []string
	// Home is the folder of the user. Empty means [os.UserHomeDir].
	Home string
}

func (h Host) environ() []string {
	if h.Environ != nil {
		return h.Environ()
	}
	return os.Environ()
}

// lookup is like [os.LookupEnv]; where a name is there twice, the last one counts.
func (h Host) lookup(name string) (value string, there bool) {
	for _, entry := range h.environ() {
		if n, v, ok := strings.Cut(entry, "="); ok && n == name {
			value, there = v, true
		}
	}
	return value, there
}

func (h Host) get(name string) string {
	value, _ := h.lookup(name)
	return value
}

func (h Host) home() (string, error) {
	if h.Home != "" {
		return h.Home, nil
	}
	return os.UserHomeDir()
}

// claudeDir is where the host's claude keeps its settings, or "" if that cannot be known.
func (h Host) claudeDir() string {
	if dir := h.get("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	home, err := h.home()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".claude")
}
