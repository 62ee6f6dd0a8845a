// SPDX-License-Identifier: Apache-2.0

//go:build wirebench_profile

package rig

import (
	"fmt"
	"os"
	"runtime/pprof"
)

// profile writes a CPU profile to path, if there is one.
func profile(path string) (stop func()) {
	if path == "" {
		return func() {}
	}
	f, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no profile:", err)
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}
}
