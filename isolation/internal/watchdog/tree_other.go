// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package watchdog

import "os"

func readable(path string) error {
	_, err := os.ReadDir(path)
	return err
}

func openTree(w *walk, root string) tree { return openPathTree(w, root) }
