// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package files_test

import "errors"

func makeNull(string) error { return errors.ErrUnsupported }

func exchange(string, string) error { return errors.ErrUnsupported }
