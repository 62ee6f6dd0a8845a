// SPDX-License-Identifier: Apache-2.0

package isolation

import "os"

// A Host is the machine as far as a run may look at it. The zero value is this process and its user.
type Host struct {
	// Environ are the variables, as "NAME=value". Nil means [os.Environ], and in [Isolation.Open] [Program.HostEnviron].
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

// or is the host with these variables, if it has none of its own.
func (h Host) or(environ []string) Host {
	if h.Environ == nil && environ != nil {
		h.Environ = func() []string { return environ }
	}
	return h
}

// Getenv is like [os.Getenv]; where a name is there twice, the last one counts.
func (h Host) Getenv(name string) string { return variable(h.environ(), name) }

// HomeDir is the folder of the user.
func (h Host) HomeDir() (string, error) {
	if h.Home != "" {
		return h.Home, nil
	}
	return os.UserHomeDir()
}
