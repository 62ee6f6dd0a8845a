// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"errors"
	"io"
	"iter"
)

// QueryStream is Query for a stream of prompts, sent as they come. It ends when the stream has
// ended and the last turn is over. An error of the stream closes the process and is the last pair.
// The stream must end when ctx does: until it does, the goroutine that reads it remains.
func QueryStream(ctx context.Context, prompts iter.Seq2[Prompt, error], opts *Options) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		c, err := Connect(ctx, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		defer c.dispose()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go c.feed(ctx, prompts)
		c.deliver(ctx, yield)
	}
}

// streamEnd is how a stream of prompts ended. It has its position in the queue of messages and is never delivered.
type streamEnd struct {
	internalMessage
	last int // number of the last prompt; 0 before the first
	err  error
}

// feed sends the prompts of a stream, then leaves a streamEnd in the queue.
func (c *Client) feed(ctx context.Context, prompts iter.Seq2[Prompt, error]) {
	end := &streamEnd{}
	for p, err := range prompts {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			end.last, err = c.send(ctx, p)
		}
		if err != nil {
			end.err = err
			break
		}
	}
	c.fed = end // before the push, which orders it before the pop
	c.conn.push(tagStreamEnd, nil)
}

// deliver yields messages until the stream of prompts has ended and its last turn is over.
func (c *Client) deliver(ctx context.Context, yield func(Message, error) bool) {
	c.reader.Lock()
	defer c.reader.Unlock()
	var stream *streamEnd
	var turn *TurnEnd
	for {
		m, err := c.next(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				yield(nil, err)
			}
			return
		}
		switch m := m.(type) {
		case *streamEnd:
			stream = m
		case *TurnEnd:
			turn = m
			if !yield(m, nil) {
				return
			}
		default:
			if !yield(m, nil) {
				return
			}
		}
		if over, err := streamOver(stream, turn); over {
			if err != nil {
				yield(nil, err)
			}
			return
		}
	}
}

// streamOver reports whether the stream and its last turn are over, and the error that ends the run.
func streamOver(stream *streamEnd, turn *TurnEnd) (bool, error) {
	switch {
	case stream == nil:
		return false, nil
	case stream.err != nil:
		return true, stream.err
	case stream.last == 0:
		return true, nil
	case turn == nil || turn.upTo < stream.last:
		return false, nil
	}
	return true, turn.Err()
}
