// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"fmt"
	"io"
)

// These limits bound the memory that an agent can use in this program; the limits of its cell do not count here.
const (
	maxConnections = 256
	maxHeader      = 64 << 10
	maxHeld        = 4 * maxBody // of all requests under way
)

var errTooMuchHeld = fmt.Errorf(textHeld, maxHeld)

// An upload is the body of a request, kept until the request is answered.
type upload struct {
	run  *Run
	from io.Reader
	size int64
}

// read reads the whole body. The space for one of a usual size is made at once.
func (u *upload) read(announced int64) ([]byte, error) {
	var buffer bytes.Buffer
	buffer.Grow(int(min(max(announced, 0), 1<<20)) + bytes.MinRead)
	_, err := buffer.ReadFrom(u)
	return buffer.Bytes(), err
}

// Read counts what it reads.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.size += int64(n)
	if u.run.held.Add(int64(n)) > maxHeld {
		return n, errTooMuchHeld
	}
	return n, err
}

func (u *upload) release() { u.run.held.Add(-u.size) }
