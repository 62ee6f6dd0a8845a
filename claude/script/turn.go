// SPDX-License-Identifier: Apache-2.0

package script

import "time"

// Forever, as [Turn.Repeat], keeps a turn in use for every request it matches.
const Forever = -1

const (
	stopEndTurn   = "end_turn"
	stopToolUse   = "tool_use"
	stopMaxTokens = "max_tokens"
	stopRefusal   = "refusal"
)

// StructuredOutputTool is the tool that the CLI offers when it was given an output schema.
const StructuredOutputTool = "StructuredOutput"

// A Turn is one answer of the scripted model. The zero value answers with an empty message.
// Constructors such as [Text] and [Call] build the usual ones; the methods return changed copies.
type Turn struct {
	// Name appears in failures and in [Request.Turn]. Empty means "turn N", counted from 1.
	Name string
	// Match is the condition on requests that this turn answers. The zero value has none: the turn is taken in order.
	Match Match
	// Repeat is how many requests the turn answers. Zero means one, [Forever] all.
	Repeat int

	// Content is the message, block by block.
	Content []Block
	// StopReason is sent with the message. Empty means "tool_use" if Content holds a tool call, "end_turn" otherwise.
	StopReason string
	// StopSequence is sent beside StopReason; empty means null.
	StopSequence string
	// Model is the model that the answer names. Empty means the one that was asked for.
	Model string
	// Usage is the usage in the answer. The zero value means 10 input and 10 output tokens.
	Usage Usage
	// Headers are added to the answer.
	Headers map[string]string

	// Delay is the time before the first byte of the answer.
	Delay time.Duration
	// DeltaDelay is the time before each content delta of a stream.
	DeltaDelay time.Duration
	// ChunkSize is the number of characters in each delta of a stream. Zero means that a block comes in one delta.
	ChunkSize int

	// Error answers with an HTTP error instead of a message.
	Error *APIError
	// Fault breaks the answer.
	Fault *Fault
	// Func computes the answer from the request; this turn's own Name, Match and Repeat hold, and
	// all else comes from the result. A panic, or a result that is not valid, becomes a [Failure].
	Func func(*Request) Turn
}

// Usage counts tokens as the API reports them.
type Usage struct {
	Input         int `yaml:"input,omitempty"`
	Output        int `yaml:"output,omitempty"`
	CacheRead     int `yaml:"cache_read,omitempty"`
	CacheCreation int `yaml:"cache_creation,omitempty"`
}

// Reply is a turn of blocks, in order. Several [ToolCall] blocks are parallel calls.
func Reply(blocks ...Block) Turn { return Turn{Content: blocks} }

// Text is a turn that answers with text and ends.
func Text(text string) Turn { return Reply(TextBlock{Text: text}) }

// Think is a turn that thinks, answers with text and ends.
func Think(thinking, text string) Turn {
	return Reply(ThinkingBlock{Thinking: thinking}, TextBlock{Text: text})
}

// Call is a turn that calls one tool. For parallel calls use [Reply] with several [ToolCall].
func Call(tool string, input any) Turn { return Reply(ToolCall{Name: tool, Input: input}) }

// Structured is a turn that gives value as structured output, the way the CLI expects it.
func Structured(value any) Turn { return Call(StructuredOutputTool, value) }

// Refusal is a turn that answers with text and stops because the model refuses.
func Refusal(text string) Turn {
	return Turn{Content: []Block{TextBlock{Text: text}}, StopReason: stopRefusal}
}

// MaxTokens is a turn that answers with text and stops because the output limit was reached.
func MaxTokens(text string) Turn {
	return Turn{Content: []Block{TextBlock{Text: text}}, StopReason: stopMaxTokens}
}

// Fail is a turn that answers with an HTTP error. The error type follows from the status.
func Fail(status int, message string) Turn {
	return Turn{Error: &APIError{Status: status, Message: message}}
}

// Hang is a turn that does not answer until the client goes away or the server is closed.
func Hang() Turn { return Turn{Fault: &Fault{Kind: FaultHang, After: Nothing}} }

// Func is a turn that is computed from the request.
func Func(f func(*Request) Turn) Turn { return Turn{Func: f} }

// When returns t restricted to requests for which all of matches hold, in addition to its own Match.
func (t Turn) When(matches ...Match) Turn {
	if !t.Match.isZero() {
		matches = append([]Match{t.Match}, matches...)
	}
	t.Match = Match{All: matches}
	if len(matches) == 1 {
		t.Match = matches[0]
	}
	return t
}

// WhenFunc returns t restricted to requests for which f reports true.
func (t Turn) WhenFunc(f func(*Request) bool) Turn { return t.When(Match{Func: f}) }

// Times returns t answering n requests.
func (t Turn) Times(n int) Turn { t.Repeat = n; return t }

// Always returns t answering every request that it matches.
func (t Turn) Always() Turn { return t.Times(Forever) }

// Metered returns t reporting usage.
func (t Turn) Metered(usage Usage) Turn { t.Usage = usage; return t }

// Delayed returns t answering after d.
func (t Turn) Delayed(d time.Duration) Turn { t.Delay = d; return t }

// Chunked returns t streaming its blocks in deltas of size characters, each after the delay.
func (t Turn) Chunked(size int, each time.Duration) Turn {
	t.ChunkSize, t.DeltaDelay = size, each
	return t
}

// Breaking returns t with a fault.
func (t Turn) Breaking(fault Fault) Turn { t.Fault = &fault; return t }

// RetryAfter returns t, an error turn, with a retry-after header of whole seconds.
func (t Turn) RetryAfter(d time.Duration) Turn {
	return t.withHeader("retry-after", wholeSeconds(d))
}

func (t Turn) withHeader(name, value string) Turn {
	headers := map[string]string{name: value}
	for k, v := range t.Headers {
		if k != name {
			headers[k] = v
		}
	}
	t.Headers = headers
	return t
}

func (t Turn) stopReason() string {
	if t.StopReason != "" {
		return t.StopReason
	}
	for _, b := range t.Content {
		if _, ok := b.(ToolCall); ok {
			return stopToolUse
		}
	}
	return stopEndTurn
}

func (t Turn) usage() Usage {
	if t.Usage == (Usage{}) {
		return Usage{Input: 10, Output: 10}
	}
	return t.Usage
}
