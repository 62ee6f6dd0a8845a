// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/drover-agents/drover/claude"
)

// A conversation is a CLI with one prompt, on a goroutine of its own: a reader that is told to stop
// must not wait for a CLI that does not answer.
type conversation struct {
	said   chan said // closed when nothing more will be said; the CLI may still be ending then
	client atomic.Pointer[claude.Client]
	cancel context.CancelFunc // of the start
	left   chan struct{}      // closed when nobody listens any longer
	tasks  sync.WaitGroup
}

// A said is one thing that comes out of a conversation: a message, why it could not begin, or why it
// broke.
type said struct {
	message         claude.Message
	refused, failed error
}

// heldAhead is how many messages may wait to be made events of.
const heldAhead = 64

// converse begins the conversation of a run.
func (r *run) converse(ctx context.Context) *conversation {
	c := &conversation{said: make(chan said, heldAhead), left: make(chan struct{})}
	starting, cancel := context.WithCancel(ctx)
	c.cancel = cancel
	c.tasks.Go(func() { c.run(ctx, starting, r) })
	return c
}

// run starts the CLI, sends the prompt, passes on the messages and closes the CLI. The contexts are for
// the start alone; the turn is ended by interrupt, the messages by leave.
func (c *conversation) run(ctx, starting context.Context, r *run) {
	client, err := r.connect(starting)
	if err != nil {
		c.say(said{refused: err})
		close(c.said)
		return
	}
	defer func() { _ = client.Close() }()
	defer close(c.said) // before the CLI is closed, which takes a while
	c.client.Store(client)
	if ctx.Err() != nil || starting.Err() != nil { // whoever interrupts may have come too early
		return
	}
	if err := client.Send(starting, claude.Text(r.prompt)); err != nil {
		c.unsent(client, err)
		return
	}
	for m, err := range client.Messages() {
		if !c.say(said{message: m, failed: err}) {
			return
		}
	}
}

// unsent passes on what a CLI said that did not take the prompt, which may be why, and then the error.
func (c *conversation) unsent(client *claude.Client, failed error) {
	_ = client.Close()
	for m, err := range client.Messages() {
		if err != nil || !c.say(said{message: m}) {
			break
		}
	}
	c.say(said{failed: failed})
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

// say reports false when nobody listens any longer.
func (c *conversation) say(s said) bool {
	select {
	case c.said <- s:
		return true
	case <-c.left:
		return false
	}
}

// interrupt asks the CLI to end its turn, and does not wait for it. It reports false if there is no turn
// yet: the CLI is still starting.
func (c *conversation) interrupt() bool {
	client := c.client.Load()
	if client == nil {
		return false
	}
	c.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, _ = client.Interrupt(ctx) // a CLI that does not answer is closed anyway
	})
	return true
}

// leave ends the conversation and waits until nothing of it is left.
func (c *conversation) leave() {
	close(c.left)
	c.cancel()
	if client := c.client.Load(); client != nil {
		_ = client.Close()
	}
	c.tasks.Wait()
}
