// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"sync"
)

// maxConnections bounds the connections of a run at one time: each is an open file of this program,
// which has only so many for all its runs. Further ones wait until there is room.
const maxConnections = 256

// A room is a listener that has only so many connections open at once.
type room struct {
	net.Listener
	places  chan struct{}
	closed  chan struct{}
	closing sync.Once
}

func newRoom(l net.Listener, places chan struct{}) *room {
	return &room{Listener: l, places: places, closed: make(chan struct{})}
}

// Accept waits for a connection, and before that for room.
func (r *room) Accept() (net.Conn, error) {
	select {
	case r.places <- struct{}{}:
	case <-r.closed:
		return nil, net.ErrClosed
	}
	conn, err := r.Listener.Accept()
	if err != nil {
		<-r.places
		return nil, err
	}
	return &guest{Conn: conn, leave: func() { <-r.places }}, nil
}

// Close may be called more than once.
func (r *room) Close() error {
	r.closing.Do(func() { close(r.closed) })
	return r.Listener.Close()
}

// A guest is a connection that takes a place in a room.
type guest struct {
	net.Conn
	leave   func()
	leaving sync.Once
}

// Close may be called more than once.
func (g *guest) Close() error {
	err := g.Conn.Close()
	g.leaving.Do(g.leave)
	return err
}

// CloseWrite tells the other side that nothing more comes, so that it reads the last answer to its end.
func (g *guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
