// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-agents/drover/internal/plainfile"
)

// A SyncPolicy is when a [FileStore] forces its records to the disk. With every policy, the death of the process
// loses no acknowledged record; the policies differ in the records that a loss of power may lose.
type SyncPolicy uint8

// The policies.
const (
	// SyncAlways forces every Append to the disk before it returns: nothing acknowledged is lost.
	SyncAlways SyncPolicy = iota
	// SyncInterval forces the log to the disk soon after it grew, and on Close: at most what was
	// acknowledged in the last Interval is lost.
	SyncInterval
	// SyncNever leaves it to the operating system.
	SyncNever
)

var syncNames = [...]string{SyncAlways: "always", SyncInterval: "interval", SyncNever: "never"}

// String gives "always", "interval" or "never".
func (p SyncPolicy) String() string {
	if int(p) < len(syncNames) {
		return syncNames[p]
	}
	return fmt.Sprintf("SyncPolicy(%d)", uint8(p))
}

// MarshalText implements encoding.TextMarshaler.
func (p SyncPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An empty text is "always".
func (p *SyncPolicy) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = SyncAlways
		return nil
	}
	for i, name := range syncNames {
		if name == string(text) {
			*p = SyncPolicy(i)
			return nil
		}
	}
	return fmt.Errorf("session: %q is not a sync policy: use always, interval or never", text)
}

// makeDir creates a directory and those above it, and makes their names durable unless the policy is SyncNever.
func makeDir(dir string, policy SyncPolicy) error {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || filepath.Dir(d) == d {
			break
		}
		missing = append(missing, d)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil || policy == SyncNever {
		return err
	}
	for _, d := range missing {
		if err := plainfile.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// A syncer forces a file to the disk some time after notify. It runs one goroutine, which sleeps while there is no work.
type syncer struct {
	grown, quit, done chan struct{}
}

func startSyncer(interval time.Duration, sync func()) *syncer {
	s := &syncer{make(chan struct{}, 1), make(chan struct{}), make(chan struct{})}
	go s.run(interval, sync)
	return s
}

func (s *syncer) run(interval time.Duration, sync func()) {
	defer close(s.done)
	for {
		select {
		case <-s.grown:
		case <-s.quit:
			return
		}
		select {
		case <-time.After(interval):
		case <-s.quit:
			return
		}
		// Later records are for the next round.
		select {
		case <-s.grown:
		default:
		}
		sync()
	}
}

func (s *syncer) notify() {
	select {
	case s.grown <- struct{}{}:
	default:
	}
}

// stop ends the goroutine and waits for it. It does not sync.
func (s *syncer) stop() {
	close(s.quit)
	<-s.done
}
