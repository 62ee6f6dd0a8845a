// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/spill"
)

// Send writes a prompt. It returns when the operating system has the line; the answer comes as
// messages. Prompts sent while a turn runs are queued by the CLI and may be answered together, so
// to have one answer for each prompt wait for [TurnEnd] in between, or use [Client.Turn].
func (c *Client) Send(ctx context.Context, prompt Prompt) error {
	_, err := c.send(ctx, prompt)
	return err
}

// send returns the number of the prompt, for the turn rule.
func (c *Client) send(ctx context.Context, prompt Prompt) (int, error) {
	if init := c.Initialized(); prompt.Verbatim && init != nil && lacks(init.Version, verbatimSince) {
		return 0, fmt.Errorf("%w: %w", ErrTooOld, &OptionError{"Prompt.Verbatim", "the CLI would expand the prompt; it needs " + verbatimSince})
	}
	line, err := prompt.line(c.opts.VerbatimPrompts)
	if err != nil {
		return 0, err
	}
	number := 0
	if prompt.NoTurn {
		c.conn.turns.quietPrompt()
	} else {
		number = c.conn.turns.prompt()
		c.conn.clearFailed()
	}
	if err := c.conn.out.send(ctx, line, c.recorder.Prompt); err != nil {
		return number, c.conn.endError(err)
	}
	return number, nil
}

// ErrReading is the error of a loop over messages while there is another one, also inside of it.
var ErrReading = advice.Wrap(errors.New("claude: the messages of this client are being read already"), "leave that loop first; inside of it, use Client.Send and read the answer there")

// Messages yields the messages of the conversation until it ends: when the client is closed, or
// the CLI ends. A [TurnEnd] marks the end of a turn. An error is the last pair; an orderly end
// has none. Messages that arrived before Close are still delivered.
//
// Breaking out of the loop closes the client. A slow loop never delays the CLI, and memory stays
// bounded: messages beyond Options.MaxBufferedBytes wait on disk.
func (c *Client) Messages() iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if !c.reader.TryLock() {
			yield(nil, ErrReading)
			return
		}
		defer c.reader.Unlock()
		for {
			m, err := c.next(context.Background())
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(m, err) {
				_ = c.Close()
				return
			}
			if err != nil {
				return
			}
		}
	}
}

// Lines is Messages without the decoding: each line of the CLI with its type, to be decoded on
// demand. It has no TurnEnd; a line that is not JSON has no type.
func (c *Client) Lines() iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if !c.reader.TryLock() {
			yield(Line{}, ErrReading)
			return
		}
		defer c.reader.Unlock()
		c.conn.lazy.Store(true)
		defer c.conn.lazy.Store(false)
		for {
			item, err := c.pop(context.Background())
			if errors.Is(err, io.EOF) {
				return
			}
			if item.Tag == tagTurnEnd || item.Tag == tagStreamEnd {
				continue
			}
			if !yield(lineOf(item), err) {
				_ = c.Close()
				return
			}
			if err != nil {
				return
			}
		}
	}
}

// lineOf is the line of an entry. A line that is not JSON has no type.
func lineOf(item spill.Item) Line {
	if item.Tag == tagMalformed {
		return Line{raw: item.Data}
	}
	return taggedLine(item.Data, item.Tag)
}

// pop takes one entry from the queue, or from the batch that was taken from it last: a lock for
// each message would cost more than its decoding.
func (c *Client) pop(ctx context.Context) (spill.Item, error) {
	if len(c.batch) == 0 {
		if ctx.Err() != nil { // a busy CLI always has something in the queue
			return spill.Item{}, context.Cause(ctx)
		}
		n, err := c.conn.queue.PopBatch(ctx, c.space[:])
		if err != nil {
			return spill.Item{}, err
		}
		c.batch = c.space[:n]
	}
	item := c.batch[0]
	c.batch[0] = spill.Item{}
	c.batch = c.batch[1:]
	return item, nil
}

// next takes one message from the queue.
func (c *Client) next(ctx context.Context) (Message, error) {
	item, err := c.pop(ctx)
	if err != nil {
		return nil, err
	}
	switch item.Tag {
	case tagTurnEnd:
		return c.turnEnd(item.Data), nil
	case tagStreamEnd:
		return c.fed, nil
	case tagMalformed:
		return c.malformedLine(item.Data), nil
	}
	m, err := taggedLine(item.Data, item.Tag).Decode()
	if err != nil {
		c.log.Warn("claude: a line of the CLI is not valid JSON", "error", err)
		return c.malformedLine(item.Data), nil
	}
	switch m := m.(type) {
	case *ResultMessage:
		c.results = append(c.results, m)
	case *SystemInit:
		c.warnTools.Do(func() { c.warnMissingTools(m) })
	}
	return m, nil
}

func (c *Client) malformedLine(line []byte) *MalformedLine {
	m := newMalformedLine(line)
	c.torn = m.Err
	return m
}

// Turn sends a prompt and yields the messages up to the [TurnEnd] of its turn. If the answer is an
// error result, a [ResultError] follows as the last pair; the client stays usable. If ctx ends, the
// turn is interrupted and the context's error is the last pair. A prompt with NoTurn yields nothing.
//
// Breaking out of the loop closes the client.
func (c *Client) Turn(ctx context.Context, prompt Prompt) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if !c.reader.TryLock() {
			yield(nil, ErrReading)
			return
		}
		defer c.reader.Unlock()
		number, err := c.send(ctx, prompt)
		if err != nil {
			yield(nil, err)
			return
		}
		if prompt.NoTurn {
			return // there is no answer to a prompt with NoTurn
		}
		for {
			m, err := c.next(ctx)
			if err != nil {
				yield(nil, c.turnError(ctx, number, err))
				return
			}
			if !yield(m, nil) {
				_ = c.Close()
				return
			}
			if end, ok := m.(*TurnEnd); ok && end.upTo >= number {
				if err := end.Err(); err != nil {
					yield(nil, err)
				}
				return
			}
		}
	}
}

// turnError returns why no more messages of a turn came. A turn whose context has ended is
// interrupted, and its remaining messages are dropped, so that the next turn starts clean.
func (c *Client) turnError(ctx context.Context, number int, err error) error {
	if errors.Is(err, io.EOF) {
		return c.conn.goneError()
	}
	if ctx.Err() == nil {
		return err
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), interruptGrace)
	defer cancel()
	if _, ierr := c.Interrupt(bye); ierr != nil {
		c.log.Warn("claude: interrupting a turn whose context ended", "error", ierr)
	}
	for {
		m, nerr := c.next(bye)
		if end, ok := m.(*TurnEnd); nerr != nil || (ok && end.upTo >= number) {
			return err
		}
	}
}

// Query runs one prompt in a process of its own and yields its messages. The process is gone when
// the loop ends, however it ends. An error is the last pair: a [ResultError] if the answer is an
// error result, which is then delivered as a message too.
func Query(ctx context.Context, prompt string, opts *Options) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		c, err := Connect(ctx, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		defer c.dispose()
		for m, err := range c.Turn(ctx, Text(prompt)) {
			if !yield(m, err) {
				return
			}
		}
	}
}

// dispose closes a client that has no reader any more, and drops the messages on disk.
func (c *Client) dispose() {
	_ = c.Close()
	c.conn.queue.Discard()
}

// interruptGrace is how long an interrupted turn may take to give its result.
const interruptGrace = time.Second
