// SPDX-License-Identifier: Apache-2.0

package watchdog

import "os"

// entryOf knows sizes only: what a file takes and its other names are not in what Windows lists, so
// that each name of a file counts.
func entryOf(info os.FileInfo) entry {
	return entry{isFolder: info.IsDir(), bytes: info.Size(), apparent: info.Size()}
}
