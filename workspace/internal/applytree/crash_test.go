// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/internal/testkit"
)

var errInjected = errors.New("injected")

// failAt makes the nth change fail. It reports whether there were so many.
func failAt(n int, run func()) (reached bool) {
	count := 0
	testFault = func(string, string) error {
		count++
		if count == n {
			reached = true
			return errInjected
		}
		return nil
	}
	defer func() { testFault = nil }()
	run()
	return reached
}

// death is what a test panics with to end a run as a crash would: nothing is tidied up.
type death struct{}

// dieAt ends the run before its nth change. It reports whether it came to that.
func dieAt(n int, run func()) (died bool) {
	count := 0
	testFault = func(string, string) error {
		count++
		if count == n {
			panic(death{})
		}
		return nil
	}
	defer func() {
		testFault = nil
		if e := recover(); e != nil {
			if _, ok := e.(death); !ok {
				panic(e)
			}
			died = true
		}
	}()
	run()
	return false
}

func TestApply_FaultUndoesAllOrNothing(t *testing.T) {
	eachChange(t, inMemory(), func(t *testing.T, b *bench) {
		for n := 1; ; n++ {
			var err error
			var res Result
			if !failAt(n, func() { res, err = b.apply(true) }) {
				break
			}
			if recoverAll(t, b); err == nil || cmp.Equal(b.after, picture(t, b.dir)) && !cmp.Equal(b.before, b.after) && !res.Undone {
				// Only our own rubbish was left to remove.
				same(t, b.dir, b.after)
				return
			}
			same(t, b.dir, b.before)
			b.tidy(t)
			b.steps = planFor(sketchOf(t, b.dir), sketchOf(t, b.wanted)) // stamps are new
		}
	})
}

// recoverAll recovers, and fails unless that leaves nothing to recover.
func recoverAll(t tester, b *bench) Result {
	t.Helper()
	res, _, err := Recover(b.root, b.work)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Conflicts) > 0 {
		t.Fatalf("conflicts: %+v", res.Conflicts)
	}
	if _, more, err := Recover(b.root, b.work); more || err != nil {
		t.Fatalf("still something to recover: %v, error %v", more, err)
	}
	return res
}

func TestRecover_CrashAtEachStep(t *testing.T) {
	for name, allOrNothing := range map[string]bool{"rolls forward": false, "all or nothing": true} {
		t.Run(name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(changes)) {
				t.Run(name, func(t *testing.T) {
					crashEverywhere(t, func() *bench { return setUp(t, changes[name].before, changes[name].after) }, allOrNothing)
				})
			}
		})
	}
}

// crashEverywhere lets each run die at each of its changes, and each recovery from that, too.
func crashEverywhere(t tester, fresh func() *bench, allOrNothing bool) {
	t.Helper()
	stride := testkit.Size(4, 1)
	for n := 1; ; n++ {
		for m := 1; ; m++ {
			b := fresh()
			contents := slices.Collect(maps.Values(sketchOf(t, b.dir).content))
			died := dieAt(n, func() { _, _ = b.apply(allOrNothing) })
			again := died && n%stride == 0 && dieAt(m, func() { _, _, _ = Recover(b.root, b.work) })
			began := pathExists(filepath.Join(b.work, string(applying)))
			recoverAll(t, b)
			wholly(t, b, allOrNothing, began)
			b.tidy(t)
			b.nothingLost(t, contents)
			if !died {
				return
			}
			if !again {
				break
			}
		}
	}
}

// wholly fails unless the tree is as wanted, or as before if nothing had begun. What had begun is brought
// to its end, or undone if it is all or nothing.
func wholly(t tester, b *bench, allOrNothing, began bool) {
	t.Helper()
	got := picture(t, b.dir)
	switch {
	case began && allOrNothing:
		if diff := cmp.Diff(b.before, got); diff != "" {
			t.Fatalf("the tree is not as before: (-want +got)\n%s", diff)
		}
	case began || !cmp.Equal(got, b.before):
		if diff := cmp.Diff(b.after, got); diff != "" {
			t.Fatalf("the tree is not as wanted: (-want +got)\n%s", diff)
		}
	}
}

func TestRecover_CrashWhileAFaultIsUndone(t *testing.T) {
	stride := testkit.Size(3, 1)
	for _, name := range []string{"folders that allow nothing", "a linked file changed", "a folder was renamed", "a file for a folder"} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n += stride {
				reached := false
				for m := 1; ; m++ {
					b := setUp(t, changes[name].before, changes[name].after)
					count := 0
					died := dieAt(n+m, func() {
						die := testFault
						testFault = func(what, path string) error {
							if count++; count == n {
								reached = true
								_ = die(what, path)
								return errInjected
							}
							return die(what, path)
						}
						_, _ = b.apply(true)
					})
					began := pathExists(filepath.Join(b.work, string(applying))) || pathExists(filepath.Join(b.work, string(undoing)))
					recoverAll(t, b)
					wholly(t, b, true, began)
					b.tidy(t)
					if !died {
						break
					}
				}
				if !reached {
					return
				}
			}
		})
	}
}

func TestApply_FaultOfOnePathLeavesTheOthers(t *testing.T) {
	for _, what := range []string{"displace", "place", "link", "meta"} {
		t.Run(what, func(t *testing.T) {
			b := setUp(t,
				layout{"a": {content: "new"}, "b": {content: "1"}, "m": {time: 3}},
				layout{"a": {content: "old"}, "b": {content: "2"}, "l": {link: "b"}, "m": {time: 4}})
			failed := ""
			testFault = func(w, p string) error {
				if w == what && failed == "" {
					failed = p
					return errInjected
				}
				return nil
			}
			defer func() { testFault = nil }()
			res, err := b.apply(false)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(res.Done, failed) || !slices.ContainsFunc(res.Conflicts, func(c Conflict) bool { return c.Path == failed }) {
				t.Errorf("got %+v, want a conflict about %q", res, failed)
			}
			b.nothingLost(t, []string{"new", "1", "old", "2"})
			b.tidy(t)
			now := picture(t, b.dir)
			for _, p := range res.Done {
				if b.after[p] != now[p] {
					t.Errorf("%q: got %s, want %s", p, now[p], b.after[p])
				}
			}
		})
	}
}
