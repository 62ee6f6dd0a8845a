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
