// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"
)

// A Meter takes the figures of one conversation. It is used by one goroutine.
type Meter struct {
	sample  Sample
	started time.Time
	before  uint64

	ended   bool
	endedAt time.Time
	endErr  error
}

// Start begins the measurement; it is called just before the prompt is sent.
func (m *Meter) Start() {
	m.before = mallocs()
	m.started = time.Now()
}

// Message counts a message with so much text.
func (m *Meter) Message(text int) {
	m.sample.Messages++
	m.sample.Text += text
}

// Stop ends the measurement; it is called when the consumer has the result.
func (m *Meter) Stop() {
	m.sample.Seconds = time.Since(m.started).Seconds()
	m.sample.Mallocs = mallocs() - m.before
}

// Ended notes that the consumer knows that the CLI has ended, and returns err. A nil err means that messages just stopped.
func (m *Meter) Ended(err error) error {
	m.ended, m.endedAt, m.endErr = true, time.Now(), err
	if err == nil {
		err = fmt.Errorf("the messages ended without a result")
	}
	return err
}

func mallocs() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs
}

// peakKB is the largest resident size of this process so far, or zero where the system does not report it.
func peakKB() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		var kb int
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kb); n == 1 {
			return kb
		}
	}
	return 0
}
