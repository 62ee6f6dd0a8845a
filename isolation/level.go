// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"strings"

	"github.com/drover-agents/drover/advice"
)

// A Level is how strongly an agent is isolated. Smaller is stronger.
type Level int

// The levels, strongest first. A private home and a private environment are part of each.
const (
	// LevelCell is a bubblewrap jail around the whole CLI: own files, processes, network.
	LevelCell Level = iota
	// LevelLandlock limits files and TCP with the kernel's Landlock, on Linux 6.7 without bubblewrap,
	// and never for root; a filter refuses all other network. Sockets in the file system and the
	// sight of other processes stay open, and more, which the Protection event lists.
	LevelLandlock
	// LevelSandbox is only the CLI's own sandbox, which confines commands of the Bash tool.
	LevelSandbox
	// LevelHost has no isolation.
	LevelHost
)

var levelNames = []string{"cell", "landlock", "sandbox", "host"}

// LevelNames are the names of the levels, strongest first.
func LevelNames() []string { return append([]string(nil), levelNames...) }

// ParseLevel is the inverse of [Level.String].
func ParseLevel(name string) (Level, error) {
	for i, known := range levelNames {
		if name == known {
			return Level(i), nil
		}
	}
	return 0, advice.Wrap(fmt.Errorf("there is no isolation level %q", name), "choose among %s", strings.Join(levelNames, ", "))
}

func (l Level) valid() bool { return l >= LevelCell && l <= LevelHost }

// String is the name of the level: "cell", "landlock", "sandbox" or "host".
func (l Level) String() string {
	if !l.valid() {
		return fmt.Sprintf("Level(%d)", int(l))
	}
	return levelNames[l]
}

// MarshalText implements [encoding.TextMarshaler].
func (l Level) MarshalText() ([]byte, error) {
	if !l.valid() {
		return nil, fmt.Errorf("isolation level %d does not exist", int(l))
	}
	return []byte(l.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *Level) UnmarshalText(text []byte) error {
	level, err := ParseLevel(string(text))
	if err != nil {
		return err
	}
	*l = level
	return nil
}
