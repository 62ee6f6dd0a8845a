// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// lastWords is how long an answer may take, when the run is over, to end an event, or itself if the model reported its end.
const lastWords = time.Second

// slowReader is how long an agent may take to read the end of its answer when the run is over.
const slowReader = 5 * time.Second

// stuckReader is how long an agent may take to read a piece of its answer: the call keeps a slot that other runs wait for.
const stuckReader = 20 * time.Second

// readOnTime and readOnBytes bound the reading of an answer after its agent has gone: only its end reports its cost.
const (
	readOnTime  = 10 * time.Second
	readOnBytes = 8 << 20
)

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// pass hands the answer on as it comes. It reports whether it broke off in the middle.
func (c *call) pass(resp *http.Response) (broken bool) {
	defer func() { _ = resp.Body.Close() }()
	c.headAt = time.Now()
	c.firstByte = c.headAt.Sub(c.began)
	c.status, c.upstreamStatus = statusFor(resp.StatusCode), resp.StatusCode
	if c.run.wire.isBusy(resp.StatusCode) {
		c.retryAfter, _ = retryAfter(resp.Header, time.Now())
	}
	if !finalStatus(resp.StatusCode) {
		c.problem = fmt.Sprintf("invalid upstream status %d", resp.StatusCode)
		c.status = http.StatusBadGateway
		c.run.wire.writeError(c.w, c.status, c.problem)
		return false
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		c.problem = "the upstream answered in " + clip(encoding) + ", which cannot be metered"
		c.status = http.StatusBadGateway
		c.run.wire.writeError(c.w, c.status, c.problem)
		return false
	}
	c.open(resp)
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	for {
		n, err := resp.Body.Read(buffer[:])
		if n > 0 && !c.forward(buffer[:n]) {
			return c.unread
		}
		if err != nil {
			return c.ended(err)
		}
	}
}

// finalStatus reports whether a status can be the one of an answer. Others would be a panic, or no answer to HTTP.
func finalStatus(status int) bool { return status >= 200 && status <= 999 }

// statusFor reports a refused credential, which is the gateway's, as 403 so that the agent does not retry.
func statusFor(status int) int {
	if status == http.StatusUnauthorized {
		return http.StatusForbidden
	}
	return status
}

func (c *call) open(resp *http.Response) {
	h := c.w.Header()
	for name, values := range passed(resp.Header) {
		h[name] = values
	}
	c.mu.Lock()
	c.out = http.NewResponseController(c.w)
	c.stream, c.meter = c.run.wire.newMeter(resp.Header.Get("Content-Type"))
	c.clean = c.stream != nil
	c.mu.Unlock()
	c.allowTime()
	c.w.WriteHeader(c.status)
	_ = c.out.Flush() // the head is news, too
}

// forward meters and passes on p, up to the cut if the run is over. It reports whether the answer goes on.
func (c *call) forward(p []byte) bool {
	c.mu.Lock()
	wasClean, wasFinished := c.clean, c.meter.Reading().Finished
	boundary := c.meter.Feed(p)
	c.clean = boundary == len(p)
	finished := c.meter.Reading().Finished
	c.mu.Unlock()
	c.count()
	err := c.run.spent()
	if c.left(p) {
		return c.goOn(wasFinished)
	}
	if err == nil || finished || (boundary < 0 && !wasClean) {
		if !c.write(p) {
			c.leave()
			return !c.left(p) || c.goOn(wasFinished)
		}
		return true
	}
	if c.write(p[:max(boundary, 0)]) {
		c.sayStopped(err)
	}
	return false
}

// allowTime gives the agent its time for the next piece, unless the run is over.
func (c *call) allowTime() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hurried {
		_ = c.out.SetWriteDeadline(time.Now().Add(stuckReader))
	}
}

// write reports whether the agent is still there.
func (c *call) write(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	c.allowTime()
	if _, err := c.w.Write(p); err != nil || c.out.Flush() != nil {
		c.problem = problemGone
		return false
	}
	return true
}

// depart reports whether the call may go out: not if the agent has gone meanwhile.
func (c *call) depart() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = !c.gone
	return c.sent
}

// wait marks the call as with the gateway again, and ends it if the agent has disconnected.
func (c *call) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = false
	if c.gone {
		c.cancel()
	}
}

// leave marks the agent as disconnected. A call that is not with the upstream ends; the answer to one that is
// gets read on, within bounds, since the upstream charges for it all the same.
func (c *call) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired || c.gone {
		return
	}
	c.gone = true
	switch {
	case !c.sent:
		c.cancel()
	case c.late == nil:
		c.late = time.AfterFunc(readOnTime, c.cancel)
		c.run.leaving(c)
	}
}

// left reports whether the agent has gone, and counts p, which it does not get.
func (c *call) left(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		c.readOn += len(p)
	}
	return c.gone
}

// goOn reports whether more of an answer is read that no agent gets.
func (c *call) goOn(finished bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = problemGone
	c.unread = c.unread || !finished
	return c.readOn <= readOnBytes
}

func (c *call) ended(err error) (broken bool) {
	if errors.Is(err, io.EOF) {
		return c.unread
	}
	if c.left(nil) || c.client.Err() != nil || c.run.life.Err() != nil {
		c.problem = problemGone
		c.unread = true
		return true
	}
	stopped := c.run.Stopped()
	if stopped == nil {
		c.problem = c.run.safe(err)
		return true
	}
	c.mu.Lock()
	clean := c.clean
	c.mu.Unlock()
	if !clean {
		if c.stream == nil || c.stream.EndEvent == "" {
			return true
		}
		c.write([]byte(c.stream.EndEvent))
	}
	c.sayStopped(stopped)
	return false
}

func (c *call) sayStopped(err error) {
	c.problem = problemStopped
	c.write(c.stream.ErrorEvent(http.StatusPaymentRequired, firstLine(err)))
}

// cut ends the answer because the run is over: at once between events, else at a boundary in [call.forward], or soon after.
func (c *call) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		return
	}
	if c.late != nil {
		c.late.Stop()
	}
	if c.meter == nil || (c.clean && !c.meter.Reading().Finished) {
		c.cancel()
	} else {
		c.late = time.AfterFunc(lastWords, c.cancel)
	}
	c.hurried = true
	if c.out != nil {
		_ = c.out.SetWriteDeadline(time.Now().Add(slowReader))
	}
}

// retire marks the call as over: the connection may be used again.
func (c *call) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
	if c.late != nil {
		c.late.Stop()
	}
	if c.out != nil {
		_ = c.out.SetWriteDeadline(time.Time{})
	}
}
