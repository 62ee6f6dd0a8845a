// SPDX-License-Identifier: Apache-2.0

package record

import (
	"io"
	"io/fs"
)

// OpenBundleAt opens a bundle that is not a file.
func OpenBundleAt(src io.ReaderAt, size int64) (*Run, error) {
	return openBundle(src, size, "bundle.zip")
}

// ReadFile reads a file of a run.
func ReadFile(r *Run, name string) ([]byte, error) { return fs.ReadFile(r.files, name) }
