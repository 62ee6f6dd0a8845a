// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/drover-agents/drover/claude"
)

// A conversation is a connected CLI on its own goroutines: a reader that stops must not wait for a CLI that does not answer.
type conversation struct {
	started chan struct{}  // closed when the CLI has started, or could not
	refused error          // why it could not
	outputs chan cliOutput // closed after the last; the CLI may still be ending then
	client  atomic.Pointer[claude.Client]
	cancel  context.CancelFunc    // of the start
	left    context.Context       // ends when the reader has left
	unsent  atomic.Pointer[error] // why the CLI did not take a prompt

	mu    sync.Mutex
	gone  bool          // no task may begin
	last  chan struct{} // closed when the last order was carried out
	tasks sync.WaitGroup
	end   context.CancelFunc // of left
}

// A cliOutput is a message of the CLI, why it could not begin, or why it broke.
type cliOutput struct {
	message         claude.Message
	refused, failed error
}

// heldAhead is how many messages may wait to be made events of.
const heldAhead = 64

// converse starts the CLI of a run. The context is for the start alone.
func (r *run) converse(ctx context.Context) *conversation {
	c := &conversation{started: make(chan struct{}), outputs: make(chan cliOutput, heldAhead)}
	c.left, c.end = context.WithCancel(context.Background())
	starting, cancel := context.WithCancel(ctx)
	c.cancel = cancel
	c.tasks.Go(func() { c.run(starting, r) })
	return c
}

// run starts the CLI, passes on its messages until leave, and closes it.
func (c *conversation) run(starting context.Context, r *run) {
	client, err := r.connect(starting)
	if err != nil {
		c.refused = err
		close(c.started)
		c.deliver(cliOutput{refused: err})
		close(c.outputs)
		return
	}
	defer func() { _ = client.Close() }()
	defer close(c.outputs) // before the CLI is closed, which takes a while
	c.client.Store(client)
	close(c.started)
	if starting.Err() == nil { // a caller that cancels may have come too early to see the client
		c.passOn(client, r)
	}
}

// passOn passes on the CLI's messages. If it did not take a prompt, they may have the reason, and the error comes last.
func (c *conversation) passOn(client *claude.Client, r *run) {
	for m, err := range client.Messages() {
		if err != nil && c.unsent.Load() != nil {
			break
		}
		endOfCalls(r.calls, m)
		if !c.deliver(cliOutput{message: m, failed: err}) {
			return
		}
	}
	if unsent := c.unsent.Load(); unsent != nil {
		c.deliver(cliOutput{failed: *unsent})
	}
}

// connect starts a CLI that is not too old.
func (r *run) connect(ctx context.Context) (*claude.Client, error) {
	client, err := claude.Connect(ctx, &r.opts)
	if err != nil {
		return nil, r.connectError(ctx, err)
	}
	if err := r.checkVersion(ctx, client.Initialized().Version); err != nil {
		_ = client.Close()
		return nil, err
	}
	return client, nil
}

// deliver reports false when the reader has left.
func (c *conversation) deliver(s cliOutput) bool {
	select {
	case c.outputs <- s:
		return true
	case <-c.left.Done():
		return false
	}
}

func (c *conversation) isUp() bool {
	select {
	case <-c.started:
		return c.refused == nil
	default:
		return false
	}
}

// order sends something to the CLI after all earlier orders, and does not wait for it.
func (c *conversation) order(do func(*claude.Client)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	before, done := c.last, make(chan struct{})
	c.last = done
	c.tasks.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		do(c.client.Load())
	})
}

// send sends a prompt to a started CLI. A CLI that does not take it is closed.
func (c *conversation) send(prompt string) {
	c.order(func(client *claude.Client) {
		if err := client.Send(c.left, claude.Text(prompt)); err != nil {
			c.unsent.Store(&err)
			_ = client.Close()
		}
	})
}

// interrupt asks the CLI to end its turn. A CLI that does not answer is closed later.
func (c *conversation) interrupt() {
	c.order(func(client *claude.Client) {
		ctx, cancel := context.WithTimeout(c.left, patience)
		defer cancel()
		_, _ = client.Interrupt(ctx)
	})
}

// leave ends the conversation and waits until nothing of it is left.
func (c *conversation) leave() {
	c.cancel()
	if client := c.client.Load(); client != nil {
		_ = client.Close()
	}
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	c.end()
	c.tasks.Wait()
}
