// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/server"
)

// Those who follow a run share the reading of its log and of what its program says. Each gets every event behind its position once,
// also when it is further behind than what they share.
func TestEvents_FollowersShareTheReading(t *testing.T) {
	defer server.SetFeedEntries(3)()
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	const followers, texts = 20, 120
	more := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(more) })
	defer goOn()
	var steps []agenttest.Step
	for i := range texts {
		steps = append(steps, agenttest.Emit(event.Text{Content: "text " + strconv.Itoa(i) + "."}))
		if i == texts/2 {
			steps = append(steps, func(*agenttest.Run) { <-more })
		}
	}
	r := start(t, store, nil, server.LiveOptions{}, append(steps, agenttest.Done("token-1"))...)
	half := "text " + strconv.Itoa(texts/2) + "."
	var got [followers][]int64
	var ends [followers]string
	var caughtUp, over sync.WaitGroup
	for i := range followers {
		caughtUp.Add(1)
		over.Go(func() {
			s.follow(t.Context(), r.id, int64(i), func(m message) bool {
				switch m.name {
				case "entry":
					pos, err := strconv.ParseInt(m.id, 10, 64)
					if err != nil {
						t.Error(err)
					}
					got[i] = append(got[i], pos)
					if strings.Contains(m.data, half) {
						caughtUp.Done()
					}
				case "end", "failed":
					ends[i] = m.name
				}
				return true
			})
		})
	}
	over.Go(func() {
		s.follow(t.Context(), r.id, 1<<40, func(m message) bool { // it has seen more than there is
			if m.name == "entry" {
				t.Errorf("behind its position a follower gets %s", m.id)
			}
			return true
		})
	})
	caughtUp.Wait()
	waitFor(t, "one who watches the program for all", func() bool { return server.Watchers(r.live) == 1 })
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		waitFor(t, "one who reads the log for all, beside its writer", func() bool {
			n := 0
			for _, fd := range open {
				if at, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasSuffix(at, r.id+"/events.jsonl") {
					n++
				}
			}
			open, _ = os.ReadDir("/proc/self/fd")
			return n == 2
		})
	}
	goOn()
	over.Wait()
	for i, all := range got {
		for k, pos := range all {
			if pos != int64(i+k+1) {
				t.Fatalf("follower %d: entry %d has the position %d", i, k, pos)
			}
		}
		if len(got[0]) < texts || len(all)+i != len(got[0]) || ends[i] != "end" {
			t.Errorf("follower %d has %d entries behind %d, and then %q; the first has %d", i, len(all), i, ends[i], len(got[0]))
		}
	}
}
