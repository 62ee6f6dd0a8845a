// SPDX-License-Identifier: Apache-2.0

package isolation

import "time"

// Limits are what one run may use of the machine. Zero means the default of each field, a negative value no limit.
type Limits struct {
	// Memory is what all processes of the run may have in memory together, in bytes. The kernel keeps
	// it where this program may make control groups. Elsewhere a watchdog ends the run: when its
	// processes have more, or when the machine has less than 256 MiB left, since a cell can take memory
	// that is in no process. Zero means 8 GiB; the CLI alone needs about 0.3.
	Memory int64
	// Processes is how many processes and threads the cell may have at once. Zero means 512.
	Processes int
	// FileSize is the largest file that can be written, in bytes. Zero means 4 GiB.
	FileSize int64
	// CPUTime is how long all processes of the run may compute together; a watchdog ends the run that
	// breaks it, and the kernel the single process that does. Zero means 4 hours.
	CPUTime time.Duration
	// OpenFiles is how many files one process may have open. Zero means 4096.
	OpenFiles int
	// TempBytes is the size of a cell's private /tmp. Zero means 1 GiB. At other levels temporary files are
	// in the home, and count with it.
	TempBytes int64
	// WorkspaceBytes and WorkspaceFiles bound what the workspace, the home and all other folders that
	// the agent can write grow by during the run; a watchdog ends the run that breaks them. Zero means 16 GiB and 1,000,000.
	WorkspaceBytes int64
	WorkspaceFiles int
	// FreeSpace is what must stay free, in bytes, on the file system of the workspace; a watchdog
	// ends the run that goes below. Zero means 512 MiB.
	FreeSpace int64
}

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

var defaultLimits = Limits{
	Memory:         8 * gibibyte,
	Processes:      512,
	FileSize:       4 * gibibyte,
	CPUTime:        4 * time.Hour,
	OpenFiles:      4096,
	TempBytes:      1 * gibibyte,
	WorkspaceBytes: 16 * gibibyte,
	WorkspaceFiles: 1_000_000,
	FreeSpace:      512 * mebibyte,
}

// resolved returns the limits in effect: the defaults are filled in, and zero means no limit.
func (l Limits) resolved() Limits {
	d := defaultLimits
	return Limits{
		Memory:         resolve(l.Memory, d.Memory),
		Processes:      resolve(l.Processes, d.Processes),
		FileSize:       resolve(l.FileSize, d.FileSize),
		CPUTime:        resolve(l.CPUTime, d.CPUTime),
		OpenFiles:      resolve(l.OpenFiles, d.OpenFiles),
		TempBytes:      resolve(l.TempBytes, d.TempBytes),
		WorkspaceBytes: resolve(l.WorkspaceBytes, d.WorkspaceBytes),
		WorkspaceFiles: resolve(l.WorkspaceFiles, d.WorkspaceFiles),
		FreeSpace:      resolve(l.FreeSpace, d.FreeSpace),
	}
}

func resolve[T ~int | ~int64](given, byDefault T) T {
	if given == 0 {
		return byDefault
	}
	return max(given, 0)
}
