// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/drover-agents/drover/record"
)

// Patterns are those of the operations of the API.
func Patterns() (all []string) {
	for _, r := range apiRoutes {
		all = append(all, r.pattern)
	}
	return all
}

var OpenAPI, Page = openAPI, page

// LiftRates takes any number of requests, for tests that make many.
func LiftRates(s *Server) {
	for _, l := range s.keys.rates {
		l.SetLimit(rate.Inf)
	}
}

// SetSystem has sockets as on another system, until its result is called.
func SetSystem(name string) (restore func()) {
	own := system
	system = name
	return func() { system = own }
}

// SetControlTime is how long the program of a run may take to answer, until its result is called.
func SetControlTime(limit time.Duration) (restore func()) {
	own := controlTime
	controlTime = limit
	return func() { controlTime = own }
}

// SetFeedEntries is how many entries a feed keeps, until its result is called.
func SetFeedEntries(n int) (restore func()) {
	own := maxFeedEntries
	maxFeedEntries = n
	return func() { maxFeedEntries = own }
}

// HoldIndex has the index stay as it is while no run begins or ends.
func HoldIndex(s *Server) {
	s.syncing.mu.Lock()
	defer s.syncing.mu.Unlock()
	s.syncing.until = time.Now().Add(time.Hour)
}

// Watchers is how many watch a Live.
func Watchers(l *Live) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.watchers)
}

// Describe is what the server answers of a run.
func (s *Server) Describe(ctx context.Context, run *record.Run) (Run, error) {
	return s.describe(ctx, run)
}

// Pass makes a request to the program of a run as it was when it was opened.
func (s *Server) Pass(ctx context.Context, run *record.Run, path string, body any) error {
	return s.pass(ctx, run, path, body, nil)
}

// Waiting is how many messages wait to be sent.
func Waiting(l *Live) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// SetMaxBundle is how large a bundle may be, until its result is called.
func SetMaxBundle(size int64) (restore func()) {
	own := maxBundle
	maxBundle = size
	return func() { maxBundle = own }
}

// FillExports has as many bundles being made as may be, until its result is called.
func FillExports(s *Server) (leave func()) {
	var all []func()
	for one, ok := s.exports.take(); ok; one, ok = s.exports.take() {
		all = append(all, one)
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// Known is how many questions a watched run has, or -1 if it is not watched.
func Known(s *Server, dir string) int {
	state, known := s.watch.state(dir)
	if !known {
		return -1
	}
	return len(state.Questions)
}
