// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

func TestTurns_OverlappingClaimsExcludeEachOther(t *testing.T) {
	for _, c := range []struct {
		name     string
		one, two []string
		together bool
	}{
		{"other files", []string{"a"}, []string{"b"}, true},
		{"the same file", []string{"a"}, []string{"a"}, false},
		{"a folder and what is in it", []string{"a"}, []string{"a/b"}, false},
		{"what is in a folder and the folder", []string{"a/b"}, []string{"a"}, false},
		{"names that only begin alike", []string{"a"}, []string{"ab"}, true},
		{"one of several", []string{"a", "b"}, []string{"c", "b/d"}, false},
		{"a command and a file", nil, []string{"a"}, false},
		{"two commands", nil, nil, false},
		{"the whole workspace and a file", []string{"."}, []string{"a"}, false},
		{"nothing", []string{}, nil, false},
		{"nothing and a file", []string{}, []string{"a"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all turns
				first, err := all.take(t.Context(), c.one)
				if err != nil {
					t.Fatal(err)
				}
				got := make(chan *claim, 1)
				go func() {
					second, err := all.take(t.Context(), c.two)
					if err != nil {
						t.Error(err)
					}
					got <- second
				}()
				synctest.Wait()
				if together := len(got) == 1; together != c.together {
					t.Errorf("at the same time: %t, want %t", together, c.together)
				}
				all.give(first)
				all.give(<-got)
				if len(all.claims) != 0 {
					t.Errorf("%d claims are left", len(all.claims))
				}
			})
		})
	}
}

// A call that waits for everything is not overtaken for ever by calls that want little.
func TestTurns_AreTakenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all turns
		little, _ := all.take(t.Context(), []string{"a"})
		order := make(chan string, 2)
		for _, c := range []struct {
			name  string
			paths []string
		}{{"everything", nil}, {"another file", []string{"b"}}} {
			go func() {
				mine, _ := all.take(t.Context(), c.paths)
				order <- c.name
				all.give(mine)
			}()
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Fatalf("%q went before its turn", <-order)
		}
		all.give(little)
		if first, second := <-order, <-order; first != "everything" || second != "another file" {
			t.Errorf("the order is %q, %q", first, second)
		}
	})
}

func TestTurns_CancelledWaitBlocksNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all turns
		first, _ := all.take(t.Context(), []string{"a"})
		impatient, giveUp := context.WithCancelCause(t.Context())
		why := errors.New("too long")
		failed := make(chan error, 1)
		go func() {
			_, err := all.take(impatient, nil)
			failed <- err
		}()
		synctest.Wait()
		giveUp(why)
		if err := <-failed; !errors.Is(err, why) {
			t.Errorf("giving up: %v, want the reason", err)
		}
		third, err := all.take(t.Context(), []string{"b"})
		if err != nil {
			t.Fatal(err)
		}
		all.give(third)
		all.give(first)
		all.give(first) // twice is harmless
	})
}

// However claims come and go: working claims never overlap, and a claim without an overlap does not wait.
func TestTurns_ActiveClaimsNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all turns
		var claims []*claim
		paths := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a/b", "b", "b/c/d", "."}), 0, 2)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if len(claims) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(claims)-1).Draw(t, "which")
				all.give(claims[i])
				claims = append(claims[:i:i], claims[i+1:]...)
			} else {
				c := &claim{working: make(chan struct{})}
				if rapid.Bool().Draw(t, "known") {
					c.paths = paths.Draw(t, "paths")
				}
				all.claims = append(all.claims, c)
				all.wakeLocked()
				claims = append(claims, c)
			}
			checkClaims(t, all.claims)
		}
	})
}

func checkClaims(t *rapid.T, claims []*claim) {
	for i, c := range claims {
		free := true
		for _, before := range claims[:i] {
			free = free && !c.overlaps(before)
		}
		if working := isClosed(c.working); working != free {
			t.Fatalf("claim %d of %v works: %t; overlaps no earlier claim: %t", i, c.paths, working, free)
		}
	}
}
