// SPDX-License-Identifier: Apache-2.0

package safetext

import "sync"

// A finder tells in one pass over a text which secrets it may have. What it does not report is not there; known values that it
// reports are.
type finder struct {
	starts [1 << 9]uint64 // a set of the hashes of the first three bytes of all words
	words  map[uint32][]word
}

// A word is one that is looked for: a form of a known value, or a word of a pattern.
type word struct {
	text    string
	fold    bool
	pattern int // its number, or -1 for a known value
}

// folded is each byte in lower case.
var folded = func() (table [256]byte) {
	for i := range table {
		table[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			table[i] += 'a' - 'A'
		}
	}
	return table
}()

// patternFinder knows no values.
var patternFinder = sync.OnceValue(func() *finder { return newFinder(nil) })

func newFinder(forms []string) *finder {
	f := &finder{words: map[uint32][]word{}}
	for i, p := range patterns {
		for _, text := range p.words {
			f.add(word{text, p.fold, i})
		}
		if p.fold {
			f.add(word{kelvin, false, i})
		}
	}
	for _, form := range forms {
		f.add(word{form, false, -1})
	}
	return f
}

func (f *finder) add(w word) {
	key := uint32(folded[w.text[0]]) | uint32(folded[w.text[1]])<<8 | uint32(folded[w.text[2]])<<16
	f.words[key] = append(f.words[key], w)
	h := startHash(key)
	f.starts[h/64] |= 1 << (h % 64)
}

// startHash has 15 bits.
func startHash(key uint32) uint32 { return key * 0x9E3779B1 >> 17 }

// find reports whether s has a known value. If it has none, may has a bit for each pattern that may match.
func find[T string | []byte](f *finder, s T) (known bool, may uint32) {
	var key uint32
	for i := range len(s) {
		key = key>>8 | uint32(folded[s[i]])<<16
		h := startHash(key)
		if f.starts[h/64]>>(h%64)&1 == 0 || i < 2 {
			continue
		}
		for _, w := range f.words[key] {
			switch from := i - 2; {
			case !startsWith(s[from:], w):
			case w.pattern < 0:
				return true, 0
			case w.text == kelvin || fits(&patterns[w.pattern], s, from, from+len(w.text)):
				may |= 1 << w.pattern
			}
		}
	}
	return false, may
}

// startsWith reports whether s begins with a word.
func startsWith[T string | []byte](s T, w word) bool {
	if len(s) < len(w.text) {
		return false
	}
	for i := range len(w.text) {
		if c := s[i]; c != w.text[i] && (!w.fold || folded[c] != w.text[i]) {
			return false
		}
	}
	return true
}

// fits reports whether a pattern may match with a word of it at s[from:to].
func fits[T string | []byte](p *pattern, s T, from, to int) bool {
	if p.alone && from > 0 && s[from-1] != '-' && isToken(s[from-1]) {
		return false
	}
	switch p.then {
	case tokenBehind:
		for i := range p.least {
			if to+i >= len(s) || !isToken(s[to+i]) {
				return false
			}
		}
	case spaceBehind:
		return to < len(s) && isSpace(s[to])
	case assignBehind, memberBehind:
		if to < len(s) && s[to] == '\\' {
			to++
		}
		quote := to < len(s) && (s[to] == '"' || s[to] == '\'')
		if quote {
			to++
		}
		for to < len(s) && isSpace(s[to]) {
			to++
		}
		return to < len(s) && (s[to] == ':' && (quote || p.then == assignBehind) || s[to] == '=' && p.then == assignBehind)
	case userBehind:
		colon := false
		for ; to < len(s) && !isSpace(s[to]) && s[to] != '/' && s[to] != '"' && s[to] != '\''; to++ {
			if s[to] == '@' {
				return colon
			}
			colon = colon || s[to] == ':'
		}
		return false
	}
	return true
}

// isToken reports letters, digits, - and _.
func isToken(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
}

// isSpace is \s of regular expressions.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }
