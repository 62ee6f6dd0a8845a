// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"sync"
	"time"
)

// relistTimeout bounds how long a change of tools waits for a CLI that has acknowledged it to list
// them. The pinned CLI does so within milliseconds, the oldest never.
const relistTimeout = 2 * time.Second

// A relisting records whether a client has listed the tools of a server since the last notice of a
// change. The zero value is ready to use.
type relisting struct {
	mu       sync.Mutex
	notified uint64        // changes that the client was notified of
	listed   uint64        // of those, the ones that its last listing shows
	deaf     bool          // the client has let a wait time out and not listed since
	over     bool          // the client is closing, or has replaced this server
	moved    chan struct{} // closed when listed or over changes; nil if no caller waits
}

type relistKey struct{}

// A notifiedChange is a change that a client was notified of. The zero value is of an unknown client.
type notifiedChange struct {
	lists  *relisting
	change uint64
}

// isListed reports whether the client has the change, or will not need it.
func (t *notifiedChange) isListed() bool { return t == nil || t.lists == nil || t.lists.has(t.change) }

// untilListed makes the sending of a notice wait until its client has listed the tools, and fills in the change.
func untilListed(ctx context.Context, notice *notifiedChange) context.Context {
	return context.WithValue(ctx, relistKey{}, notice)
}

// notify sends the notice of a change. With a context of [untilListed] it waits for the listing, which
// may come before the notice is acknowledged. A client that is closing needs no notice.
func (l *relisting) notify(ctx context.Context, send func() error) error {
	notice, waits := ctx.Value(relistKey{}).(*notifiedChange)
	if !waits {
		return send()
	}
	l.mu.Lock()
	l.notified++
	change := l.notified
	l.mu.Unlock()
	*notice = notifiedChange{l, change}
	err := send()
	if err == nil {
		l.await(ctx, change)
	} else if l.isOver() {
		return nil
	}
	return err
}

// await returns when the client has listed a change, or will not.
func (l *relisting) await(ctx context.Context, change uint64) {
	late := time.After(relistTimeout)
	for {
		moved := l.moves(change)
		if moved == nil {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		case <-late:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.deaf = l.listed < change
			return
		}
	}
}

// moves returns a channel that is closed when the state has changed; nil means that the wait is over.
func (l *relisting) moves(change uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed >= change || l.over || l.deaf {
		return nil
	}
	if l.moved == nil {
		l.moved = make(chan struct{})
	}
	return l.moved
}

// begin notes that a listing is about to be made, which has every change up to now. The caller calls
// answered when the listing is on its way to the client, ahead of all later answers.
func (l *relisting) begin() (answered func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shows := l.notified
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if shows > l.listed {
			l.listed, l.deaf = shows, false
			l.wakeLocked()
		}
	}
}

func (l *relisting) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.wakeLocked()
}

// has reports whether the client has listed a change, or is closing.
func (l *relisting) has(change uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listed >= change || l.over
}

func (l *relisting) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

func (l *relisting) wakeLocked() {
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}
