// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"strings"
)

// A MalformedLine is a line of the CLI that starts like an object but is not JSON. It does not end the run.
type MalformedLine struct {
	MessageHeader
	// Err is a [ProtocolError].
	Err error
}

func newMalformedLine(line []byte) *MalformedLine {
	err := json.Unmarshal(line, new(json.RawMessage))
	shown := strings.ToValidUTF8(string(line[:min(len(line), 200)]), "\uFFFD")
	return &MalformedLine{MessageHeader: MessageHeader{raw: line}, Err: &ProtocolError{Line: shown, Err: err}}
}
