// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/drover-agents/drover/advice"
)

// checkOwner refuses a file that another user has put there, or that others may use.
func checkOwner(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if of, ok := info.Sys().(*syscall.Stat_t); !ok || int(of.Uid) != os.Geteuid() {
		return &fs.PathError{Op: "open", Path: path, Err: advice.Wrap(errors.New("it belongs to another user"), "remove it, and look who can write in this folder")}
	}
	if info.Mode().Perm()&0o077 != 0 {
		return &fs.PathError{Op: "open", Path: path, Err: advice.Wrap(errors.New("other users may use it"), "remove it: a run makes it for its owner alone")}
	}
	return nil
}
