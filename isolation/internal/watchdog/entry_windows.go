// SPDX-License-Identifier: Apache-2.0

package watchdog

import "os"

// entryOf knows sizes only: Windows lists neither what a file takes nor its other names, so that each name counts.
func entryOf(info os.FileInfo) entry {
	return entry{isFolder: info.IsDir(), bytes: info.Size(), apparent: info.Size()}
}
