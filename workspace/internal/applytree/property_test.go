// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

// drawLayout draws a small tree.
func drawLayout(t *rapid.T, label string) layout {
	l := layout{}
	for range rapid.IntRange(0, 10).Draw(t, label) {
		edit(t, l)
	}
	return l
}

// edit changes one path of a tree: what was there is gone, and so is what is in the way above it.
func edit(t *rapid.T, l layout) {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a-", "\xff"}), 1, 3).Draw(t, "path")
	p := path.Join(names...)
	cut(l, p)
	if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
		return
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if _, blocked := l[dir]; blocked {
			cut(l, dir)
		}
		if _, there := l[dir+"/"]; !there {
			l[dir+"/"] = node{}
		}
	}
	drawNode(t, l, p)
}

func drawNode(t *rapid.T, l layout, p string) {
	n := node{time: int64(rapid.IntRange(1, 3).Draw(t, "time"))}
	switch rapid.SampledFrom([]string{"file", "file", "dir", "link", "hard", "pipe"}).Draw(t, "kind") {
	case "dir":
		n.perm = rapid.SampledFrom([]fs.FileMode{0o755, 0o555, 0o500, 0o700}).Draw(t, "mode")
		l[p+"/"] = n
		return
	case "link":
		n.target = rapid.SampledFrom([]string{"a", "..", "/nowhere/at/all"}).Draw(t, "target")
	case "pipe":
		n.pipe, n.perm = true, 0o600
	case "hard":
		n.link = leaderIn(t, l)
	}
	if n.target == "" && n.link == "" && !n.pipe {
		n.content = rapid.SampledFrom([]string{"", "1", "2", "three"}).Draw(t, "content")
		n.perm = rapid.SampledFrom([]fs.FileMode{0o644, 0o400, 0o755, 0o200}).Draw(t, "mode")
	}
	l[p] = n
}

// leaderIn draws a file to link to, or nothing.
func leaderIn(t *rapid.T, l layout) string {
	var files []string
	for _, p := range slices.Sorted(maps.Keys(l)) {
		if n := l[p]; n.target == "" && n.link == "" && !n.pipe && !strings.HasSuffix(p, "/") {
			files = append(files, p)
		}
	}
	if len(files) == 0 {
		return ""
	}
	return rapid.SampledFrom(files).Draw(t, "leader")
}

// cut removes a path with everything below it. A file with other names lives on under one of them.
func cut(l layout, p string) {
	for _, q := range slices.Sorted(maps.Keys(l)) {
		if q != p && !strings.HasPrefix(q, p+"/") {
			continue
		}
		gone := l[q]
		delete(l, q)
		heir := ""
		for _, other := range slices.Sorted(maps.Keys(l)) {
			if n := l[other]; n.link == q {
				if heir == "" {
					heir, n = other, gone
				} else {
					n.link = heir
				}
				l[other] = n
			}
		}
	}
}

// drawBench draws a tree, and a changed copy of it.
func drawBench(rt *rapid.T) func() *bench {
	before := drawLayout(rt, "paths")
	after := maps.Clone(before)
	for range rapid.IntRange(1, 6).Draw(rt, "edits") {
		edit(rt, after)
	}
	return func() *bench { return setUp(rt, before, after) }
}

func TestApply_IsExactForRandomTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := drawBench(rt)()
		contents := slices.Collect(maps.Values(sketchOf(rt, b.dir).content))
		res, err := b.apply(rapid.Bool().Draw(rt, "all or nothing"))
		if err != nil || len(res.Conflicts) > 0 {
			rt.Fatalf("got %+v, error %v", res, err)
		}
		same(rt, b.dir, b.after)
		b.nothingLost(rt, contents)
	})
}

func TestApply_FaultIsUndoneForRandomTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := drawBench(rt)()
		var err error
		failAt(rapid.IntRange(1, 20).Draw(rt, "fault"), func() { _, err = b.apply(true) })
		began := pathExists(b.work + "/" + string(applying))
		recoverAll(rt, b)
		if err != nil {
			wholly(rt, b, true, began)
		} else {
			same(rt, b.dir, b.after)
		}
	})
}

func TestRecover_CrashInRandomTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := drawBench(rt)()
		allOrNothing := rapid.Bool().Draw(rt, "all or nothing")
		contents := slices.Collect(maps.Values(sketchOf(rt, b.dir).content))
		died := dieAt(rapid.IntRange(1, 20).Draw(rt, "crash"), func() { _, _ = b.apply(allOrNothing) })
		if died {
			dieAt(rapid.IntRange(1, 10).Draw(rt, "crash again"), func() { _, _, _ = Recover(b.root, b.work) })
		}
		began := pathExists(b.work + "/" + string(applying))
		recoverAll(rt, b)
		wholly(rt, b, allOrNothing, began)
		b.nothingLost(rt, contents)
		b.tidy(rt)
	})
}
