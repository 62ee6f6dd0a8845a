// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
)

// A MismatchError is a request that a recording has no answer for.
type MismatchError struct {
	// Recording is the file.
	Recording string
	// Number counts the requests of the replay from 1; Method and Path are those of the request.
	Number       int
	Method, Path string
	// Nearest is the number of the recorded exchange that is most like the request; zero if all were used.
	Nearest int
	// Differences are the first ones between the two; More is how many are not listed.
	Differences []Difference
	More        int

	weight int // how much is different from the nearest
}

// A Difference is where a request differs from its record. What is new in each run is a name like ${dir} in both.
type Difference struct {
	// Where is a JSON pointer into the body, or "body", "method", "path" or "query".
	Where string
	// Recorded and Got are the values, shortened to the part that differs; empty for a missing value.
	Recorded, Got string
}

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gateway: replay: request %d (%s %s) is not in the recording %s", e.Number, e.Method, safetext.Line(e.Path), e.Recording)
	if e.Nearest == 0 {
		b.WriteString(": all its exchanges are used")
	} else {
		fmt.Fprintf(&b, "; from exchange %d, the nearest, it differs in:", e.Nearest)
	}
	for _, d := range e.Differences {
		b.WriteString("\n  " + d.String())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n  and %d more", e.More)
	}
	return b.String()
}

// Advice implements [advice.Adviser].
func (e *MismatchError) Advice() string {
	return "make the run ask what it asked then, or record it again"
}

func (d Difference) String() string {
	switch {
	case d.Recorded == "":
		return fmt.Sprintf("%s: not recorded, got %s", d.Where, d.Got)
	case d.Got == "":
		return fmt.Sprintf("%s: recorded %s, got nothing", d.Where, d.Recorded)
	}
	return fmt.Sprintf("%s: recorded %s got %s", d.Where, d.Recorded, d.Got)
}

// listed is how many differences an error contains.
const listed = 8

// nearer takes the differences from another exchange if less is different than in those so far.
func (e *MismatchError) nearer(seq int, c comparison) {
	if e.Nearest != 0 && c.weight >= e.weight {
		return
	}
	e.Nearest, e.weight, e.Differences, e.More = seq, c.weight, c.found, 0
	if len(c.found) > listed {
		e.Differences, e.More = c.found[:listed:listed], len(c.found)-listed
	}
}

func compareRequests(then, now normalised) comparison {
	var c comparison
	c.compare("method", then.method, now.method)
	c.compare("path", then.path, now.path)
	c.compare("query", then.query, now.query)
	c.compare("", then.doc, now.doc)
	return c
}

type comparison struct {
	found  []Difference
	weight int // bytes that only one of the two has
}

// add notes values that differ as a whole; an empty one is not there.
func (c *comparison) add(where, recorded, got string) {
	c.found = append(c.found, Difference{cmp.Or(where, "body"), shorten(recorded, 0), shorten(got, 0)})
	c.weight += len(recorded) + len(got)
}

func (c *comparison) compare(where string, then, now any) {
	switch then := then.(type) {
	case map[string]any:
		if now, ok := now.(map[string]any); ok {
			c.objects(where, then, now)
			return
		}
	case []any:
		if now, ok := now.([]any); ok {
			c.lists(where, then, now)
			return
		}
	case string:
		if now, ok := now.(string); ok {
			c.texts(where, then, now)
			return
		}
	}
	if a, b := encodeJSON(then), encodeJSON(now); a != b {
		c.add(where, a, b)
	}
}

func (c *comparison) objects(where string, then, now map[string]any) {
	names := slices.Sorted(maps.Keys(then))
	for name := range now {
		if _, both := then[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		a, recorded := then[name]
		b, got := now[name]
		at := where + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		switch {
		case !got:
			c.add(at, encodeJSON(a), "")
		case !recorded:
			c.add(at, "", encodeJSON(b))
		default:
			c.compare(at, a, b)
		}
	}
}

func (c *comparison) lists(where string, then, now []any) {
	for i := range max(len(then), len(now)) {
		at := where + "/" + strconv.Itoa(i)
		switch {
		case i >= len(now):
			c.add(at, encodeJSON(then[i]), "")
		case i >= len(then):
			c.add(at, "", encodeJSON(now[i]))
		default:
			c.compare(at, then[i], now[i])
		}
	}
}

// texts shows both from a little before the position where they differ.
func (c *comparison) texts(where, then, now string) {
	if then == now {
		return
	}
	at := commonPrefix(then, now)
	c.found = append(c.found, Difference{cmp.Or(where, "body"), strconv.Quote(shorten(then, at)), strconv.Quote(shorten(now, at))})
	c.weight += len(then) + len(now) - 2*(at+commonSuffix(then[at:], now[at:]))
}

func shorten(s string, at int) string {
	const before, after = 24, 72
	runes := []rune(s[min(at, len(s)):])
	lead := []rune(s[:min(at, len(s))])
	head, tail := "", ""
	if len(lead) > before {
		head, lead = "…", lead[len(lead)-before:]
	}
	if len(runes) > after {
		tail, runes = "…", runes[:after]
	}
	return head + string(lead) + string(runes) + tail
}
