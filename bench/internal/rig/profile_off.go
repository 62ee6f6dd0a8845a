// SPDX-License-Identifier: Apache-2.0

//go:build !wirebench_profile

package rig

// profile does nothing: the profiler is only linked where it is asked for, because its size counts in
// the memory of every client.
func profile(string) (stop func()) { return func() {} }
