// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http/httptest"
	"testing"
	"time"
)

// deadlineWriter notes the deadline that it is given.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (w *deadlineWriter) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// A stream without events stays open: each beat extends the deadline that the event before has set.
func TestStream_BeatExtendsTheDeadline(t *testing.T) {
	w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
	s := newStream(w)
	for _, write := range []func() error{func() error { return s.send("runs", "", []byte("{}")) }, s.beat} {
		w.deadline = time.Time{}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(w.deadline); left < slowClient-5*time.Second {
			t.Errorf("the client has %v to read after %q, want about %v", left, w.Body, slowClient)
		}
	}
}
