// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childRole makes the test binary a process of its own that does one thing to the log named by childLog.
const (
	childRole = "SESSION_TEST_ROLE"
	childLog  = "SESSION_TEST_LOG"
)

var childRoles = map[string]func(path string) error{
	"append":   appendForever,
	"dispatch": dispatchForever,
	"hold":     holdForever,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := childRoles[role](os.Getenv(childLog)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
