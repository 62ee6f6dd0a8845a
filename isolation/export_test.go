// SPDX-License-Identifier: Apache-2.0

package isolation

// Resolved is resolved, for tests.
func (l Limits) Resolved() Limits { return l.resolved() }
