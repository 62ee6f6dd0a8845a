// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

const deleteOnClose = 0x04000000 // FILE_FLAG_DELETE_ON_CLOSE

// createUnnamed returns a file that the system deletes when its handle is closed, at the latest with the process.
func createUnnamed(dir string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprintf("drover-spill-%016x", rand.Uint64()))
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE,
		syscall.FILE_SHARE_READ|syscall.FILE_SHARE_WRITE, nil, syscall.CREATE_NEW,
		syscall.FILE_ATTRIBUTE_NORMAL|deleteOnClose, 0)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}
