// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/drover-agents/drover/advice"
)

const (
	logMark = "session-log"
	// headStart begins every log that this package wrote.
	headStart = `{"drover":"` + logMark + `"`
)

type headLine struct {
	Drover string `json:"drover"`
	Head
}

// encodeHead returns the first line of a log with its newline.
func encodeHead(head Head) ([]byte, error) {
	if head.Version < 1 || head.Version > EncodingVersion {
		return nil, fmt.Errorf("session: a log of version %d cannot be begun; versions go from 1 to %d", head.Version, EncodingVersion)
	}
	line, err := json.Marshal(headLine{logMark, head})
	return append(line, '\n'), err
}

// readHead returns the head of a log and its line. A file that is empty, or that ends within its first
// line because it was torn when it was begun, has none.
func readHead(path string, f io.ReaderAt, size int64) (Head, []byte, error) {
	l, err := newLineReader(f, 0, size).next()
	if errors.Is(err, io.EOF) {
		return Head{}, nil, nil
	}
	if err != nil {
		return Head{}, nil, fmt.Errorf("session: reading %s: %w", path, err)
	}
	if !l.whole && !l.long && isTornHead(l.text) {
		return Head{}, nil, nil
	}
	head, fault := decodeHead(path, l)
	switch {
	case errors.Is(fault, ErrVersion):
		return Head{}, nil, fault
	case fault != nil && bytes.HasPrefix(l.text, []byte(headStart)):
		return Head{}, nil, &CorruptError{Path: path, Line: 1, Reason: fault.Error()}
	case fault != nil:
		return Head{}, nil, advice.Wrap(fmt.Errorf("session: %s is not a session log; it was left as it is", path),
			"give the path of a session log, or of a file that does not exist yet")
	}
	return head, append(l.text, '\n'), nil
}

// isTornHead reports whether text is the beginning of a header. A crash can leave zeros for the missing rest.
func isTornHead(text []byte) bool {
	written := string(bytes.TrimRight(text, "\x00"))
	return strings.HasPrefix(written, headStart) || strings.HasPrefix(headStart, written)
}

// decodeHead reads a head. Only the version is read of one that is newer: the rest may mean anything.
func decodeHead(path string, l logLine) (Head, error) {
	var mark struct {
		Drover  string `json:"drover"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(l.text, &mark); err != nil {
		return Head{}, err
	}
	switch {
	case mark.Drover != logMark:
		return Head{}, fmt.Errorf("not a header")
	case mark.Version > EncodingVersion:
		return Head{}, advice.Wrap(fmt.Errorf("%w: %s has version %d, this program reads versions up to %d", ErrVersion, path, mark.Version, EncodingVersion),
			"open it with a newer version of this package")
	case mark.Version < 1:
		return Head{}, errors.New("it has no version")
	case !l.whole:
		return Head{}, errors.New("it has no end")
	}
	var head headLine
	err := json.Unmarshal(l.text, &head)
	return head.Head, err
}
