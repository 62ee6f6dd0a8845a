// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainjson"
)

// line is the entry as a line of JSON. What the agent wrote is in it byte for byte, but for spaces between
// tokens. A detail that is the whole line is not written twice.
func (e TranscriptEntry) line() ([]byte, error) {
	if bytes.Equal(e.Detail, e.Raw) {
		e.Detail = nil
	}
	line, err := plainjson.Marshal(e)
	return append(line, '\n'), err
}

// ReadTranscript yields the entries that [Transcript.WriteTo], or [TranscriptOptions].File, has written. A
// line that is no entry yields an error, and reading goes on behind it; the error of r is the last pair.
func ReadTranscript(r io.Reader) iter.Seq2[TranscriptEntry, error] {
	return func(yield func(TranscriptEntry, error) bool) {
		in := lines.NewReader(r, 0)
		for {
			line, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			tooLong, skipped := errors.AsType[*lines.TooLongError](err)
			switch {
			case skipped:
				err = tooLong
			case err == nil && len(bytes.TrimSpace(line)) == 0:
				continue
			}
			var e TranscriptEntry
			if err == nil {
				e, err = parseEntry(line)
				skipped = err != nil
			}
			if err != nil {
				err = fmt.Errorf("drover: line %d of the transcript: %w", in.Number(), err)
			}
			if !yield(e, err) || err != nil && !skipped {
				return
			}
		}
	}
}

var errNoEntry = errors.New("it is no entry")

func parseEntry(line []byte) (TranscriptEntry, error) {
	var e TranscriptEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return TranscriptEntry{}, err
	}
	if e.Type == "" || e.Sequence < 1 {
		return TranscriptEntry{}, errNoEntry
	}
	if e.Detail == nil {
		e.Detail = e.Raw
	}
	return e, nil
}
