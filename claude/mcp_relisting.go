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

// A relisting knows whether a client has listed the tools of a server since it was last told that they
// changed. The zero value is ready to use.
type relisting struct {
	mu     sync.Mutex
	told   uint64        // changes that the client was told of
	listed uint64        // of those, the ones that its last listing shows
	deaf   bool          // the client has let a wait time out and not listed since
	over   bool          // the client is closing, or has another server in the place of this one
	moved  chan struct{} // closed when listed or over changes, if anybody waits
}

type relistKey struct{}

// A toldChange is a change that a client was told of. The zero value is that of a client of which
// nothing is known.
type toldChange struct {
	lists  *relisting
	change uint64
}

// isListed reports whether the client has the change, or will not need it.
func (t *toldChange) isListed() bool { return t == nil || t.lists == nil || t.lists.has(t.change) }

// untilListed makes the sending of a notice wait until its client has listed the tools, and fills in
// what the client was told.
func untilListed(ctx context.Context, told *toldChange) context.Context {
	return context.WithValue(ctx, relistKey{}, told)
}

// tell sends the notice of a change that has been made. If the context says so it waits for the
// listing, which may come at any time from now on, also before the notice is acknowledged. A client
// that is going needs no notice.
func (l *relisting) tell(ctx context.Context, notify func() error) error {
	told, waits := ctx.Value(relistKey{}).(*toldChange)
	if !waits {
		return notify()
	}
	l.mu.Lock()
	l.told++
	change := l.told
	l.mu.Unlock()
	*told = toldChange{l, change}
	err := notify()
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

// moves is closed when it is time to look again; nil says that there is nothing to wait for.
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

// begin notes that a listing is about to be made. It shows every change that was told before; what it
// returns is to be called when the listing is on its way to the client, ahead of all later answers.
func (l *relisting) begin() (answered func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shows := l.told
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if shows > l.listed {
			l.listed, l.deaf = shows, false
			l.wakeLocked()
		}
	}
}

// end lets those go who wait.
func (l *relisting) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.wakeLocked()
}

// has reports whether the client has listed a change, or is going.
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
