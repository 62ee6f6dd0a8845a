// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/advice"
)

// ErrNoAnswer is the error of a turn that came to its end without a result of its own.
var ErrNoAnswer = errors.New("claude: the turn ended without a result")

var errNoObject = errors.New("it is not an object")

// A TurnEnd reports that a turn is over: everything the CLI will do by itself is done. It is made by
// the client and has no raw JSON.
type TurnEnd struct {
	internalMessage
	// Answer is the last result that answers a prompt of ours, or nil if the turn began by itself,
	// such as when a background task reports.
	Answer *ResultMessage
	// Results are all results of the turn, those of background tasks included.
	Results []*ResultMessage
	// Forced is true if background work was still running when Options.BackgroundCeiling passed.
	Forced bool
	// StderrTail is the redacted end of the CLI's standard error, if Err is not nil: up to a pause of
	// 20 milliseconds, or 250 milliseconds after the end of the turn.
	StderrTail string

	upTo    int   // number of the newest prompt that the turn covers
	torn    error // the line that may have been the missing result
	noValue bool  // a structured answer was asked for and is missing
	secrets noSecrets
}

type turnMark struct {
	UpTo   int  `json:"up_to"`
	Forced bool `json:"forced"`
	// Skipped is the last line that did not begin like one of the CLI's.
	Skipped string `json:"skipped"`
}

func (c *conn) turnEnded(upTo int, forced bool) {
	mark := turnMark{UpTo: upTo, Forced: forced}
	if !forced { // otherwise this is not the goroutine that reads
		mark.Skipped, c.skipped = c.skipped, ""
	}
	text, _ := json.Marshal(mark) // numbers and texts always encode
	c.push(tagTurnEnd, text)
}

// Err is nil if the turn has an answer that is not an error result. With Options.OutputSchema an answer without a structured
// value is [ErrStructuredOutput]. A turn in which a line could not be read, and no result came, is a [ProtocolError].
func (e *TurnEnd) Err() error {
	switch {
	case e.torn != nil:
		return fmt.Errorf("%w\n  so %w", e.torn, ErrNoAnswer)
	case e.Answer == nil:
		return advice.Wrap(ErrNoAnswer,
			"if it began by itself there is nothing to do; else read on: the answer comes in a later turn, or raise Options.BackgroundCeiling")
	case e.noValue:
		return advice.Wrap(fmt.Errorf("%w: the model answered in words: %q", ErrStructuredOutput, e.secrets.text(e.Answer.Result)),
			"state in the prompt that the answer must be given with the StructuredOutput tool")
	}
	return e.Answer.errWithout(e.secrets)
}

// turnEnd makes the message for a mark, with the results that came since the last one.
func (c *Client) turnEnd(item []byte) *TurnEnd {
	var mark turnMark
	_ = json.Unmarshal(item, &mark) // we wrote it
	end := &TurnEnd{Results: c.results, Forced: mark.Forced, upTo: mark.UpTo, secrets: c.conn.secrets}
	if len(c.results) == 0 {
		end.torn = c.torn
		if end.torn == nil && !mark.Forced { // nothing else ends a turn without a result
			end.torn = &ProtocolError{Line: mark.Skipped, Err: errNoObject}
		}
	}
	c.results, c.torn = nil, nil
	for _, r := range end.Results {
		if r.IsAnswer() {
			end.Answer = r
		}
	}
	end.noValue = c.opts.OutputSchema != nil && lacksValue(end.Answer)
	if end.Err() != nil {
		c.conn.stderr.await()
		end.StderrTail = c.conn.stderr.text()
	}
	return end
}

// lacksValue reports whether an answer lacks its structured value, which the CLI reports as a success.
// A slash command has no answer, and a deferred tool has none yet.
func lacksValue(r *ResultMessage) bool {
	return r != nil && !r.Failed() && r.StructuredOutput == nil && r.LocalCommand == "" && r.DeferredToolUse == nil
}

// internalMessage is the header of a [Message] that the client makes itself. It has no raw JSON.
type internalMessage struct{ MessageHeader }
