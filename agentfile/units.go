// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Duration is a time that is written as 90s, 5m or 1h30m.
type Duration time.Duration

// UnmarshalText reads a time above zero.
func (d *Duration) UnmarshalText(text []byte) error {
	got, err := time.ParseDuration(string(text))
	if err != nil || got <= 0 {
		return fmt.Errorf("%q is no time above zero", text)
	}
	*d = Duration(got)
	return nil
}

// Bytes are a size that is written as 800, 64KB, 10MB or 1GB; a KB are 1000 bytes, and a KiB are 1024.
type Bytes int64

var units = []struct {
	name string
	size float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// UnmarshalJSON reads a number of bytes, or a text with a unit.
func (b *Bytes) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	for _, unit := range units {
		number, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		size := n * unit.size
		if err != nil || size < 0 || size >= math.MaxInt64 {
			return fmt.Errorf("%q is no size", text)
		}
		*b = Bytes(size)
		return nil
	}
	return errors.New("it is no size")
}
