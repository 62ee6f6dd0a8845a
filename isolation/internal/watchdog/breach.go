// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/internal/safetext"
)

// What names a limit.
type What string

// The limits.
const (
	Bytes     What = "bytes"
	Files     What = "files"
	FreeSpace What = "free space"
	Memory    What = "memory"
	CPUTime   What = "CPU time"

	SpareMemory What = "memory of the machine"
	SetID       What = "set-id program"
)

// A Breach is a limit that was broken.
type Breach struct {
	What         What
	Limit, Found int64 // bytes, files, or nanoseconds
	// Path is the largest file for bytes, the folder with the most entries for files, the watched
	// folder for free space, the program for set-id programs, and empty otherwise. The cell chose its names, and its length.
	Path string
}

// Error describes the broken limit.
func (b Breach) Error() string {
	switch b.What {
	case Bytes:
		return fmt.Sprintf("the cell took %s on the disk, allowed are %s; the largest file is %s", size(b.Found), size(b.Limit), shown(b.Path))
	case Files:
		return fmt.Sprintf("the cell made %d files, allowed are %d; the folder with the most is %s", b.Found, b.Limit, shown(b.Path))
	case FreeSpace:
		return fmt.Sprintf("the disk of %s has %s free, %s must stay free", shown(b.Path), size(b.Found), size(b.Limit))
	case SetID:
		return fmt.Sprintf("%s runs with the rights of its owner or group (set-id) or with capabilities, and the cell could write another program into it", shown(b.Path))
	case Memory:
		return fmt.Sprintf("the cell used %s of memory, allowed are %s", size(b.Found), size(b.Limit))
	case SpareMemory:
		return fmt.Sprintf("the machine has %s of memory left, %s must stay available; the kernel does not report which process took it", size(b.Found), size(b.Limit))
	default:
		return fmt.Sprintf("the cell used %s of CPU time, allowed are %s", time.Duration(b.Found), time.Duration(b.Limit))
	}
}

// Advice implements [advice.Adviser].
func (b Breach) Advice() string {
	switch b.What {
	case Bytes:
		return "look at what it wrote, or raise the limit on bytes"
	case Files:
		return "look at what it made, or raise the limit on files"
	case FreeSpace:
		return "make room there, or lower the floor"
	case SetID:
		return "take the bit away with chmod ug-s and the capabilities with setcap -r, or work on a copy without it"
	case Memory:
		return "let it work on less at once, or raise the limit on memory"
	case SpareMemory:
		return "let less run at once, or run where control groups limit the memory of each cell"
	default:
		return "look at what it ran, or raise the limit on CPU time"
	}
}

func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// maxShown is how much of a path is shown at each of its ends.
const maxShown = 200

// shown is a path that cannot pass for anything else in a message, nor fill it.
func shown(path string) string {
	if len(path) > 2*maxShown {
		path = strings.ToValidUTF8(path[:maxShown], "") + "…" + strings.ToValidUTF8(path[len(path)-maxShown:], "")
	}
	return safetext.Line(path)
}
