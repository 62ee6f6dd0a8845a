// SPDX-License-Identifier: Apache-2.0

package schema

import "strings"

// toECMAScript rewrites a regular expression of Go's syntax for the CLI, which reads it as ECMAScript in Unicode mode:
// stricter about escapes and braces, without inline flags. What has no counterpart is refused with its place.
func toECMAScript(pattern, at string) (string, error) {
	t := &translator{in: pattern, at: at}
	for t.pos < len(t.in) {
		if err := t.next(); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

type translator struct {
	in, at  string
	pos     int
	inClass bool
	out     strings.Builder
}

func (t *translator) take(n int) {
	t.out.WriteString(t.in[t.pos : t.pos+n])
	t.pos += n
}

func (t *translator) put(s string, n int) {
	t.out.WriteString(s)
	t.pos += n
}

func (t *translator) rest() string { return t.in[t.pos:] }

func (t *translator) refuse(what string) error {
	return notForCLI(t.at, "the regular expression %q uses %s, which the CLI cannot read", t.in, what)
}

func (t *translator) next() error {
	switch c := t.in[t.pos]; {
	case c == '\\':
		return t.escape()
	case t.inClass:
		return t.classByte(c)
	case c == '[':
		return t.openClass()
	case c == '(' && strings.HasPrefix(t.rest(), "(?"):
		return t.group()
	case c == '{' && quantifier(t.rest()) == 0, c == '}', c == ']':
		t.put("\\"+string(c), 1)
	case c == '{':
		t.take(quantifier(t.rest()))
	default:
		t.take(1)
	}
	return nil
}

func (t *translator) openClass() error {
	t.inClass = true
	t.take(1)
	if strings.HasPrefix(t.rest(), "^") {
		t.take(1)
	}
	if strings.HasPrefix(t.rest(), "]") { // a first bracket is a member in Go, the end elsewhere
		t.put(`\]`, 1)
	}
	return nil
}

func (t *translator) classByte(c byte) error {
	switch {
	case c == '[' && strings.HasPrefix(t.rest(), "[:"):
		return t.refuse("a class like [:alpha:]")
	case c == '[':
		t.put(`\[`, 1)
	case c == ']':
		t.inClass = false
		t.take(1)
	default:
		t.take(1)
	}
	return nil
}

func (t *translator) group() error {
	switch r := t.rest(); {
	case strings.HasPrefix(r, "(?:"):
		t.take(3)
	case strings.HasPrefix(r, "(?P<"):
		t.put("(?<", 4)
	case strings.HasPrefix(r, "(?<"):
		t.take(3)
	default:
		return t.refuse("inline flags like (?i)")
	}
	return nil
}

// quantifier gives the length of {n}, {n,} or {n,m} at the start of s, or 0.
func quantifier(s string) int {
	end := strings.IndexByte(s, '}')
	if end < 2 || s[1] < '0' || s[1] > '9' || strings.Trim(s[1:end], "0123456789,") != "" || strings.Count(s[1:end], ",") > 1 {
		return 0
	}
	return end + 1
}

func (t *translator) escape() error {
	if t.pos+1 >= len(t.in) {
		return t.refuse("a lone backslash")
	}
	switch c := t.in[t.pos+1]; {
	case strings.IndexByte("dDwWsSbBtnvfr", c) >= 0, strings.IndexByte(`^$\.*+?()[]{}|/`, c) >= 0, c == '-' && t.inClass:
		t.take(2)
	case c == 'A' && !t.inClass:
		t.put("^", 2)
	case c == 'z' && !t.inClass:
		t.put("$", 2)
	case c == 'a':
		t.put(`\x07`, 2)
	case c == 'x':
		return t.hex()
	case c == 'p' || c == 'P':
		return t.property(c)
	case strings.IndexByte("QECz0123456789A", c) >= 0:
		return t.refuse(`\` + string(c))
	default: // punctuation that needs no escape
		t.put(t.in[t.pos+1:t.pos+2], 2)
	}
	return nil
}

// hex turns \x{10FFFF} into \u{10FFFF}; \x7f is the same in both.
func (t *translator) hex() error {
	if strings.HasPrefix(t.rest(), `\x{`) {
		t.put(`\u{`, 3)
		end := strings.IndexByte(t.rest(), '}')
		if end < 0 {
			return t.refuse(`an unfinished \x{`)
		}
		t.take(end + 1)
		return nil
	}
	t.take(min(4, len(t.rest())))
	return nil
}

// property turns \pL into \p{L} and names a script as ECMAScript wants it.
func (t *translator) property(p byte) error {
	t.pos += 2
	if r := t.rest(); r != "" && r[0] != '{' {
		t.put(`\`+string(p)+"{"+r[:1]+"}", 1)
		return nil
	}
	end := strings.IndexByte(t.rest(), '}')
	if end < 0 {
		return t.refuse(`an unfinished \p{`)
	}
	name := t.rest()[1:end]
	if strings.HasPrefix(name, "^") {
		return t.refuse(`\p{^...}`)
	}
	if len(name) > 2 {
		name = "Script=" + name
	}
	t.put(`\`+string(p)+"{"+name+"}", end+1)
	return nil
}
