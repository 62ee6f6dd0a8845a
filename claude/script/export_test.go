// SPDX-License-Identifier: Apache-2.0

package script

import "time"

// SetCloseLimit lets a test see what Close does when its time is up.
func (s *Server) SetCloseLimit(d time.Duration) { s.limit = d }

// Holds reports whether m holds for r.
func (m Match) Holds(r *Request) bool { return m.holds(r) }
