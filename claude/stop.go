// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/drover-agents/drover/advice"
)

const (
	inputGrace   = 2 * time.Second // from closing its input to SIGTERM
	termGrace    = 2 * time.Second // from SIGTERM to SIGKILL
	killGrace    = 5 * time.Second // from SIGKILL to giving up on a spawner that does not reap
	handlerGrace = 5 * time.Second // for callbacks that do not heed their context
)

// ErrStillRunning is returned by Close when the spawner could not end the process.
var ErrStillRunning = advice.Wrap(errors.New("claude: the CLI could not be ended"), "end it by hand; if the spawner is your own, make its Kill and Wait work")

// Close ends the conversation and its process. It interrupts the running turn and asks the CLI to end, then sends SIGTERM,
// then kills it with all processes it has started. Close returns when the process is reaped and the callbacks have returned:
// usually in 0.1 seconds, at most in about 15. It may be called repeatedly and from any goroutine; all calls wait for the
// end. Called by a hook or tool, it waits for that callback until its limit.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		c.closeErr = c.stop()
	})
	return c.closeErr
}

func (c *Client) stop() error {
	c.conn.setClosing()
	c.endTurn()
	c.endSession()
	_ = c.conn.out.close(errInputClosed)
	err := c.awaitEnd()
	c.conn.asked.close() // again, for a process that would not end
	if !c.conn.asked.wait(handlerGrace) {
		c.log.Warn("claude: a hook, permission callback or tool did not return when its context ended")
	}
	return errors.Join(err, c.closeServers(), c.cleanUp())
}

// endTurn interrupts the turn under way, so that its result is not lost.
func (c *Client) endTurn() {
	resting := c.conn.turns.resting()
	if resting == nil || c.conn.ended() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), interruptGrace)
	defer cancel()
	if _, err := c.Interrupt(ctx); err != nil {
		return // the steps that follow need no answer
	}
	select {
	case <-resting:
	case <-c.conn.done:
	case <-ctx.Done():
	}
}

// endSession asks the CLI to end by itself. It does not wait for the answer: closing the input has the
// same effect on a CLI that does not know the request.
func (c *Client) endSession() {
	if c.conn.ended() || !c.conn.isReady() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), interruptGrace)
	defer cancel()
	_ = c.conn.out.send(ctx, requestLine("end", []byte(`{"subtype":"end_session"}`)), nil)
}

// awaitEnd waits for the process, with more and more force.
func (c *Client) awaitEnd() error {
	if c.conn.within(inputGrace) {
		return nil
	}
	_ = c.conn.proc.Signal(syscall.SIGTERM)
	if c.conn.within(termGrace) {
		return nil
	}
	_ = c.conn.proc.Kill()
	if c.conn.within(killGrace) {
		return nil
	}
	return ErrStillRunning
}

// closeServers detaches the in-process servers. Their calls have ended already.
func (c *Client) closeServers() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return c.mux.close(ctx)
}

func (c *Client) cleanUp() error {
	var errs []error
	if c.mirror != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		errs = append(errs, c.mirror.Close(ctx))
		c.flushes.Wait()
	}
	if c.store != nil {
		errs = append(errs, c.store.release(true))
	}
	if c.resumed != nil {
		errs = append(errs, c.resumed.Close())
	}
	return errors.Join(errs...)
}

func (c *conn) setClosing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
}

func (c *conn) setReady() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = true
}

func (c *conn) isReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

func (c *conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *conn) within(limit time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// endError is why the connection ended, for a call that failed because it did; err if it has not.
func (c *conn) endError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, errInputClosed) || errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	if !c.within(time.Second) {
		return err
	}
	return c.goneError()
}
