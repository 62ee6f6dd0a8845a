// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"cmp"
	"slices"
	"strings"
)

const (
	maxNearest = 3  // names that Nearest returns
	maxTyped   = 64 // letters of a name that can be a misspelling
)

// Nearest returns the known names that name is likely to be a misspelling of, at most three, the most likely first: they
// differ in capitals, "_" and "-", or by about one letter in three.
func Nearest(name string, known []string) []string {
	typed := plainLetters(name)
	if len(typed) > maxTyped {
		return nil
	}
	type candidate struct {
		name  string
		edits int
	}
	var near []candidate
	most := max(1, len(typed)/3)
	for _, k := range known {
		letters := plainLetters(k)
		if d := len(letters) - len(typed); d > most || -d > most { // most of them
			continue
		}
		if n := edits(typed, letters); n <= most {
			near = append(near, candidate{k, n})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, c := range near[:min(len(near), maxNearest)] {
		names = append(names, c.name)
	}
	return names
}

func plainLetters(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}

// edits is how many letters must be added, removed, replaced, or exchanged with the next one to make b of a.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+same)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
