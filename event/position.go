// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"strconv"
	"strings"
)

// A Position is where a live event is in the log of a session. Its text is the number of the entry, "12". A part of a
// text has no entry: its position is the entry before it and the number of the part, "12.3".
type Position struct {
	Entry int64 // from 1
	Part  int   // from 1; zero for an event that is an entry
}

// String is the text of a position; that of the zero value is "0".
func (p Position) String() string {
	text := strconv.FormatInt(p.Entry, 10)
	if p.Part > 0 {
		text += "." + strconv.Itoa(p.Part)
	}
	return text
}

// MarshalText implements [encoding.TextMarshaler].
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the text of MarshalText alone.
func (p *Position) UnmarshalText(text []byte) error {
	entry, part, _ := strings.Cut(string(text), ".")
	var read Position
	read.Entry, _ = strconv.ParseInt(entry, 10, 64)
	read.Part, _ = strconv.Atoi(part)
	if read.String() != string(text) || read.Entry < 0 {
		return fmt.Errorf("event: %q is not a position; one is an entry (12), or an entry and a part (12.3)", text)
	}
	*p = read
	return nil
}
