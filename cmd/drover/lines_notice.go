// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/drover-agents/drover/event"

// notice is the row of a kind that only one agent has, if it tells a person something.
func (l *lines) notice(r row, p event.Payload) []row { return nil }
