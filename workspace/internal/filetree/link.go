// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"path"
	"runtime"
	"strings"
)

// maxLinks is how many links the system follows in one path.
const maxLinks = 40

// LeadsInside reports whether a link in a folder of a tree leads to a path of that tree, followed as the system
// will follow it. Paths are relative to the tree and have slashes; linkAt gives the target of the link at a path, if
// there is one. A circle stays inside: it leads nowhere.
func LeadsInside(dir, target string, linkAt func(rel string) (target string, isLink bool)) bool {
	left := maxLinks
	_, inside := follow(runtime.GOOS, dir, target, linkAt, &left)
	return inside
}

func follow(goos, dir, target string, linkAt func(string) (string, bool), left *int) (string, bool) {
	if goos == "windows" {
		target = strings.ReplaceAll(target, `\`, "/")
		if len(target) > 1 && target[1] == ':' { // also "c:x", which is relative to the folder of the drive
			return "", false
		}
	}
	if strings.HasPrefix(target, "/") {
		return "", false
	}
	for name := range strings.SplitSeq(target, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			if dir == "." {
				return "", false
			}
			dir = path.Dir(dir)
			continue
		}
		next := path.Join(dir, name)
		further, isLink := linkAt(next)
		if !isLink {
			dir = next
			continue
		}
		if *left--; *left < 0 {
			return dir, true
		}
		var inside bool
		if dir, inside = follow(goos, dir, further, linkAt, left); !inside {
			return "", false
		}
	}
	return dir, true
}
