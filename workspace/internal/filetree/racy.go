// SPDX-License-Identifier: Apache-2.0

package filetree

import "time"

// tick is longer than one tick of any clock by which the kernel stamps files.
const tick = 20 * time.Millisecond

// Racy reports whether the entry could have been written after it was read without a trace in its stamp: it was
// changed so shortly before that the clock may not have ticked since, or, by a clock that was set, after it. Its
// content has to be compared again.
func Racy(e Entry, looked time.Time) bool {
	return e.Stamp.Changed >= looked.Add(-tick).UnixNano()
}
