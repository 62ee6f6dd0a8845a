// SPDX-License-Identifier: Apache-2.0

package gateway

// A Meter reads a streamed answer beside its reader, in whatever pieces it comes, and keeps what the model
// reported so far. It never fails: an answer that it cannot read counts as zero, and [Reading.Metered] is false.
type Meter interface {
	// Feed reads p and returns the length of the longest beginning of p after which an answer may be cut: up to the end of
	// an event, so that a following event is understood. It is -1 if there is no such position in p.
	Feed(p []byte) (boundary int)
	// Close marks the end of the answer.
	Close()
	// Reading returns what was reported.
	Reading() *Reading
}

// A Reading is what an answer has reported about itself. Names are as the API spells them.
type Reading struct {
	Model      string
	StopReason string
	// Error is what the API calls an error that it reported.
	Error string
	// Tokens never become less: what was spent does not come back.
	Tokens Tokens
	// Metered means that the answer reported usage.
	Metered bool
	// Finished means that the model has reported its end; only closing events follow.
	Finished bool

	pieces int64 // an estimate of the output tokens in the pieces that came
}

// AddPiece counts a piece of an answer, of so many bytes of text, for the estimate of an answer whose end does not come.
func (r *Reading) AddPiece(bytes int) { r.pieces += max(1, tokensIn(bytes, outputBytes)) }

// maxTokens is more than any answer has, and little enough to be priced and added up.
const maxTokens = 1e9

// maxName is how much is kept of a name that others have chosen.
const maxName = 128

func clip(name string) string {
	if len(name) > maxName {
		return name[:maxName]
	}
	return name
}

// maxKept bounds what a meter keeps of an answer to understand it.
const maxKept = 64 << 20

// A wholeMeter reads an answer that is not streamed.
type wholeMeter struct {
	reading Reading
	read    func(r *Reading, body []byte)
	kept    []byte
	lost    bool
}

func (m *wholeMeter) Feed(p []byte) int {
	if m.lost = m.lost || len(m.kept)+len(p) > maxKept; !m.lost {
		m.kept = append(m.kept, p...)
	}
	return -1
}

func (m *wholeMeter) Close() {
	if !m.lost {
		m.read(&m.reading, m.kept)
	}
}

func (m *wholeMeter) Reading() *Reading { return &m.reading }
