// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package isolation

import (
	"errors"
	"os"
)

type linkError struct{ link string }

func (e *linkError) Error() string { return e.link + " is a symbolic link" }

var errNoHandles = errors.New("handles are for cells, which are on Linux only")

func openPath(string, func(*os.File, string) bool) (*os.File, string, error) {
	return nil, "", errNoHandles
}

func openBeneath(*os.File, string) (*os.File, error) { return nil, errNoHandles }

func openHere() (*os.File, error) { return nil, errNoHandles }

func handleName(handle *os.File) string { return handle.Name() }

func realName(*os.File) (string, error) { return "", errNoHandles }

func agentsCannotWrite(*os.File, string) bool { return true }
