// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plainfile

// reported are the watches whose changes the system reports: none here.
var reported nothing

type nothing struct{}

func (nothing) add(*Watch) bool { return false }
func (nothing) remove(*Watch)   {}
