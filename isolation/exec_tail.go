// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"io"
	"sync"

	"github.com/drover-agents/drover/guard"
)

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	max  int
	kept []byte // up to twice max, so that it is seldom moved
	all  int64
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all += int64(len(p))
	t.kept = append(t.kept, p[max(0, len(p)-t.max):]...)
	if len(t.kept) > 2*t.max {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-t.max:]...)
	}
	return len(p), nil
}

func (t *tail) drain(readers ...io.Reader) {
	var reading sync.WaitGroup
	for _, r := range readers {
		if r != nil {
			reading.Go(func() { _, _ = io.Copy(t, r) }) // what cannot be read is not there
		}
	}
	reading.Wait()
}

func (t *tail) executed(code int) guard.Executed {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.kept[max(0, len(t.kept)-t.max):]
	if cut := t.all - int64(len(end)); cut > 0 {
		end = append(fmt.Appendf(nil, textOutputCut, cut), end...)
	}
	return guard.Executed{ExitCode: code, Output: end}
}

// ended adds why the command did not end by itself.
func (t *tail) ended(code int, why string) guard.Executed {
	done := t.executed(code)
	done.Output = fmt.Appendf(done.Output, "\n[%s]\n", why)
	return done
}
