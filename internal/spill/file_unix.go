// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package spill

import "os"

// createUnnamed returns a file that no name leads to: the system frees it with the process.
func createUnnamed(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "drover-spill-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close() // the file is gone with it
		return nil, err
	}
	return file, nil
}
