// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"maps"
	"slices"
	"testing"
)

// changes are plans of every kind, by what they change.
var changes = map[string]struct{ before, after layout }{
	"a file is made":               {layout{}, layout{"d/a": {content: "a"}, "d/": {time: 7}}},
	"a file goes":                  {layout{"d/a": {content: "a"}, "d/": {time: 7}, "b": {}}, layout{"d/": {time: 7}, "b": {}}},
	"a content changes":            {layout{"a": {content: "new"}}, layout{"a": {content: "old"}}},
	"a content grows within times": {layout{"d/a": {content: "xx"}, "d/": {time: 9}}, layout{"d/a": {content: "x"}, "d/": {time: 9}}},
	"only a mode":                  {layout{"a": {perm: 0o600}}, layout{"a": {perm: 0o755}}},
	"only a time":                  {layout{"a": {time: 1}}, layout{"a": {time: 2}}},
	"only a folder":                {layout{"d/a": {}, "d/": {perm: 0o700, time: 1}}, layout{"d/a": {}, "d/": {perm: 0o755, time: 2}}},
	"a folder for a file":          {layout{"x": {content: "x"}}, layout{"x/": {}, "x/y": {content: "y"}, "x/e/": {time: 3}}},
	"a file for a folder":          {layout{"x/": {}, "x/y": {content: "y"}, "x/e/f": {content: "f"}, "x/e/": {}}, layout{"x": {content: "x"}}},
	"a link for a folder":          {layout{"x/": {}, "x/y": {content: "y"}}, layout{"x": {target: "y"}}},
	"a folder for a link":          {layout{"x": {target: "/nowhere"}}, layout{"x/": {time: 4}, "x/y": {content: "y"}}},
	"a file for a link":            {layout{"x": {target: "gone"}}, layout{"x": {content: "x"}}},
	"a link for a file":            {layout{"x": {content: "x"}}, layout{"x": {target: "gone"}}},
	"a link that leads elsewhere":  {layout{"x": {target: "a"}}, layout{"x": {target: "b"}}},
	"a link's time":                {layout{"x": {target: "a", time: 3}}, layout{"x": {target: "a", time: 4}}},
	"a pipe is made":               {layout{"p": {content: "x"}}, layout{"p": {pipe: true, perm: 0o620}}},
	"a pipe goes":                  {layout{"p": {pipe: true}}, layout{"p": {content: "x"}}},
	"a file was renamed":           {layout{"d/b": {content: "same"}, "d/": {}}, layout{"d/a": {content: "same", time: 8}, "d/": {}}},
	"a folder was renamed":         {layout{"e/": {}, "e/a": {content: "1"}, "e/b": {content: "2"}}, layout{"d/": {}, "d/a": {content: "1"}, "d/b": {content: "2"}}},
	"two files changed places":     {layout{"a": {content: "1"}, "b": {content: "2"}}, layout{"a": {content: "2"}, "b": {content: "1"}}},
	"folders that allow nothing": {
		layout{"r/": {perm: 0o555}, "r/a": {content: "1", perm: 0o400}, "r/s/": {perm: 0o500}, "r/s/b": {content: "2"}, "r/s/t/": {perm: 0o500}, "r/s/t/u": {content: "3"}},
		layout{"r/": {perm: 0o555}, "r/a": {content: "x", perm: 0o400}, "r/s/": {perm: 0o500}, "r/s/c": {content: "4", perm: 0o400}},
	},
	"a hard link is made":     {layout{"a": {content: "1"}}, layout{"a": {content: "1"}, "b": {link: "a"}}},
	"a hard link is broken":   {layout{"a": {content: "1"}, "b": {link: "a"}}, layout{"a": {content: "1"}, "b": {content: "1"}}},
	"a hard link is put back": {layout{"a": {content: "1"}, "b": {content: "2"}, "c": {link: "a"}}, layout{"a": {content: "1"}, "b": {link: "a"}, "c": {link: "a"}}},
	"a linked file changed":   {layout{"a": {content: "new"}, "d/b": {link: "a"}, "d/": {}}, layout{"a": {content: "old"}, "d/b": {link: "a"}, "d/": {}}},
	"a linked file's mode":    {layout{"a": {perm: 0o600, time: 1}, "b": {link: "a"}}, layout{"a": {perm: 0o640, time: 2}, "b": {link: "a"}}},
	"linked files go":         {layout{"a": {content: "1"}, "b": {link: "a"}, "d/c": {link: "a"}, "d/": {}}, layout{"b": {content: "1"}}},
	"names that are no text":  {layout{"\xff\n": {content: "1"}}, layout{"\xff\n": {content: "2"}, "\xfe/": {}, "\xfe/\" ": {target: "\xff"}}},
	"empty folders":           {layout{"a/": {}, "a/b/": {}}, layout{"c/": {}, "c/d/": {perm: 0o500}}},
}

// eachChange runs a test for every kind of change, in a folder of its own.
func eachChange(t *testing.T, in string, test func(t *testing.T, b *bench)) {
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		t.Run(name, func(t *testing.T) { test(t, setUpIn(t, in, changes[name].before, changes[name].after)) })
	}
}

func TestApply_MakesTheWantedTree(t *testing.T) {
	for _, allOrNothing := range []bool{false, true} {
		eachChange(t, "", func(t *testing.T, b *bench) {
			contents := slices.Collect(maps.Values(sketchOf(t, b.dir).content))
			res, err := b.apply(allOrNothing)
			if err != nil || len(res.Conflicts) > 0 {
				t.Fatalf("got %+v, error %v", res, err)
			}
			if len(res.Done) != len(b.steps) {
				t.Errorf("got %d paths done, want %d", len(res.Done), len(b.steps))
			}
			same(t, b.dir, b.after)
			b.tidy(t)
			b.nothingLost(t, contents)
		})
	}
}
