// SPDX-License-Identifier: Apache-2.0

package session

// Pos is the number of the last entry that the snapshot has seen.
func (snap *Snapshot) Pos() int64 { return snap.pos }
