// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever arrives: a worker takes a request if one waits, a level has its share while it waits, and it gives way only for
// the shares of lower ones.
func TestOrder_NoLevelStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var waiting, since [len(levels)]int // requests, and takes since the level was empty or had one
		limit := [...]int{1, 3, turns - 1}  // how many takes in a row pass a level that waits
		turn := rapid.IntRange(0, turns-1).Draw(t, "turn")
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			for l := range waiting {
				waiting[l] += rapid.IntRange(0, 2).Draw(t, "arrivals")
			}
			taken := -1
			order := orderOf(turn)
			for _, l := range order {
				if waiting[l] > 0 {
					taken = l
					break
				}
			}
			if taken < 0 {
				if waiting != [len(levels)]int{} {
					t.Fatalf("nothing is taken of %v in the order %v", waiting, order)
				}
				continue
			}
			turn++
			waiting[taken]--
			for l := range since {
				if since[l]++; l == taken || waiting[l] == 0 {
					since[l] = 0
				}
				if since[l] > limit[l] {
					t.Fatalf("%s waits for %d takes in a row", levels[l], since[l])
				}
			}
		}
	})
	var share [len(levels)]int
	for turn := range turns {
		share[orderOf(turn)[0]]++
	}
	if share != [...]int{11, 4, 1} {
		t.Errorf("the shares are %v, want 11, 4 and 1 as documented", share)
	}
}
