// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"crypto/sha256"
	"io"
	"os"
	"syscall"
	"testing"
)

type unixStat = syscall.Stat_t

// differ reports whether two files differ in content.
func differ(t testing.TB, a, b string) bool {
	t.Helper()
	return sum(t, a) != sum(t, b)
}

func sum(t testing.TB, path string) [32]byte {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	must(t, err)
	return [32]byte(h.Sum(nil))
}
