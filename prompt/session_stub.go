// SPDX-License-Identifier: Apache-2.0

package prompt

func (r *renderer) sessionVisibility(*node) (Visibility, bool) { return Full, false }
