// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Validate checks one JSON value. The error is a [*ValidationError] with all violations, in the order of the value's places.
//
// A value with a property twice in one object is refused: readers disagree about which one counts.
// Numbers are compared as doubles, as the CLI does it: integers beyond 2^53 only roughly.
// Against the schema of a Go type, a value passes only if encoding/json also decodes it.
func (s *Schema) Validate(value json.RawMessage) error { return s.validate(value, rules{}) }

// ValidateDoubles is [Schema.Validate] for a value that came through a program whose numbers are
// doubles, as the CLI's are. It also refuses whole numbers beyond ±(2^53-1), since they may have been
// rounded, unless the schema has the type "number" there.
func (s *Schema) ValidateDoubles(value json.RawMessage) error {
	return s.validate(value, rules{doubles: true})
}

// rules are what a value must obey beside its schema.
type rules struct {
	exactCase bool // refuses unknown properties that encoding/json would take for known ones
	doubles   bool // refuses whole numbers that may have been rounded
}

func (s *Schema) validate(value json.RawMessage, r rules) error {
	v, odd, wrong := readValue(value)
	if wrong != nil {
		return &ValidationError{[]Violation{*wrong}}
	}
	w := walk{left: new(stepsAtLeast + stepsPerByte*len(value)), rules: r}
	if r.doubles && odd {
		w.rounded = map[string]bool{}
		w.findRounded(v)
	}
	w.check(s.root, v)
	w.reportRounded()
	if *w.left < 0 {
		const message = "takes too long to check: the schema refers to itself in too many ways; simplify it"
		return &ValidationError{[]Violation{{Keyword: "effort", Message: message}}}
	}
	if len(w.found) == 0 && s.goType != nil && (odd || !s.exact) {
		w.found = misfits(s.goType, value)
	}
	if len(w.found) == 0 {
		return nil
	}
	return &ValidationError{w.found}
}

// A value may take this many steps to check. Only a schema whose references multiply takes more:
// without a limit they could cost time exponential in the length of the schema.
const (
	stepsAtLeast = 1_000_000
	stepsPerByte = 100
)

// A walk goes through one value and collects what is wrong. Its path costs nothing until something is reported.
type walk struct {
	path  []step
	found []Violation
	left  *int // steps
	rules
	// rounded has the places of whole numbers that may have been rounded; false where the schema wants a number of any kind.
	rounded map[string]bool
	// seen has the properties and elements of the value that a schema around has described. It is nil where no
	// unevaluatedProperties or unevaluatedItems asks for them.
	seen map[step]bool
}

// A step leads to a property or, if elem is set, to an element.
type step struct {
	name  string
	index int
	elem  bool
}

func (w *walk) report(keyword, format string, args ...any) {
	w.found = append(w.found, Violation{w.pointer(), keyword, fmt.Sprintf(format, args...)})
}

func (w *walk) reportProperty(name, keyword, format string, args ...any) {
	w.path = append(w.path, step{name: name})
	w.report(keyword, format, args...)
	w.path = w.path[:len(w.path)-1]
}

func (w *walk) pointer() string {
	var b strings.Builder
	for _, s := range w.path {
		b.WriteByte('/')
		if s.elem {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(escape(s.name))
		}
	}
	return b.String()
}

// inside checks a property or an element of the value that is looked at.
func (w *walk) inside(s step, n *node, v any) {
	seen := w.seen
	w.path, w.seen = append(w.path, s), nil
	w.check(n, v)
	w.path, w.seen = w.path[:len(w.path)-1], seen
}

// try checks v apart and gives back what is wrong with it. Only a schema that fits has described its parts.
func (w *walk) try(n *node, v any) []Violation {
	sub := *w
	sub.path, sub.found = w.path[:len(w.path):len(w.path)], nil
	if w.seen != nil {
		sub.seen = map[step]bool{}
	}
	sub.check(n, v)
	if len(sub.found) == 0 {
		w.seeAll(sub.seen)
	}
	return sub.found
}

func (w *walk) see(s step) {
	if w.seen != nil {
		w.seen[s] = true
	}
}

func (w *walk) seeAll(parts map[step]bool) {
	if w.seen != nil {
		*w.left -= len(parts)
		maps.Copy(w.seen, parts)
	}
}

func (w *walk) check(n *node, v any) {
	if *w.left--; *w.left < 0 {
		return
	}
	if n.refused {
		w.report("false", "nothing is allowed here")
		return
	}
	if n.unevaluatedItems == nil && n.unevaluatedProperties == nil {
		w.checkKeywords(n, v)
		return
	}
	outer, inner := w.seen, map[step]bool{} // only schemas inside n describe something for it
	w.seen = inner
	w.checkKeywords(n, v)
	w.seen = outer
	w.seeAll(inner)
}

func (w *walk) checkKeywords(n *node, v any) {
	if n.ref != nil {
		w.check(n.ref, v)
	}
	if n.types != 0 && !n.types.allows(v) {
		w.report("type", "must be %s, got %s", n.types, typeOf(v))
		return // what else the schema says is about values of another type
	}
	w.checkValue(n, v)
	w.checkLogic(n, v)
	switch v := v.(type) {
	case float64:
		if w.rounded != nil && mayBeRounded(v) && n.types&typeNumber != 0 {
			w.rounded[w.pointer()] = false
		}
		w.checkNumber(&n.numberRules, v)
	case string:
		w.checkText(&n.textRules, v)
	case []any:
		w.checkArray(&n.arrayRules, v)
	case map[string]any:
		w.checkObject(&n.objectRules, v)
	}
}

func (s typeSet) allows(v any) bool {
	got := typeOf(v)
	return s&got != 0 || got == typeInteger && s&typeNumber != 0
}

func typeOf(v any) typeSet {
	switch v := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case map[string]any:
		return typeObject
	case []any:
		return typeArray
	case string:
		return typeString
	case float64:
		if v == math.Trunc(v) {
			return typeInteger
		}
	}
	return typeNumber
}

func (w *walk) checkValue(n *node, v any) {
	if n.hasConst && !equal(n.constant, v) {
		w.report("const", "must be %s", short(n.constant))
	}
	if n.enum == nil || slices.ContainsFunc(n.enum, func(e any) bool { return equal(e, v) }) {
		return
	}
	names := make([]string, len(n.enum))
	for i, e := range n.enum {
		names[i] = short(e)
	}
	w.report("enum", "must be one of %s", strings.Join(names, ", "))
}

// equal compares JSON values; the common ones without reflection.
func equal(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case float64:
		b, ok := b.(float64)
		return ok && a == b
	}
	return reflect.DeepEqual(a, b)
}

func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	const most = 80
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

func (w *walk) checkNumber(r *numberRules, f float64) {
	if r.min != nil && f < *r.min {
		w.report("minimum", "must be at least %v", *r.min)
	}
	if r.max != nil && f > *r.max {
		w.report("maximum", "must be at most %v", *r.max)
	}
	if r.above != nil && f <= *r.above {
		w.report("exclusiveMinimum", "must be above %v", *r.above)
	}
	if r.below != nil && f >= *r.below {
		w.report("exclusiveMaximum", "must be below %v", *r.below)
	}
	if r.multipleOf != nil && !isMultiple(f, *r.multipleOf) {
		w.report("multipleOf", "must be a multiple of %v", *r.multipleOf)
	}
}

func (w *walk) findRounded(v any) {
	switch v := v.(type) {
	case float64:
		if mayBeRounded(v) {
			w.rounded[w.pointer()] = true
		}
	case []any:
		for i, e := range v {
			w.path = append(w.path, step{index: i, elem: true})
			w.findRounded(e)
			w.path = w.path[:len(w.path)-1]
		}
	case map[string]any:
		for name, m := range v {
			w.path = append(w.path, step{name: name})
			w.findRounded(m)
			w.path = w.path[:len(w.path)-1]
		}
	}
}

// mayBeRounded reports whether several whole numbers have f as their nearest double.
func mayBeRounded(f float64) bool { return f == math.Trunc(f) && math.Abs(f) >= 1<<53 }

func (w *walk) reportRounded() {
	for _, path := range slices.Sorted(maps.Keys(w.rounded)) {
		if w.rounded[path] {
			w.found = append(w.found, Violation{path, "doubles", roundedMessage})
		}
	}
}

// roundedMessage does not quote the number, which need not be the one that the model wrote.
const roundedMessage = "must be between -9007199254740991 and 9007199254740991: a larger whole number is rounded before it arrives"

// isMultiple computes with decimal numbers, as people write them: 0.3 is a multiple of 0.1, but the doubles are not.
func isMultiple(f, of float64) bool {
	if f == math.Trunc(f) && of == math.Trunc(of) {
		return math.Mod(f, of) == 0
	}
	a, okA := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	b, okB := new(big.Rat).SetString(strconv.FormatFloat(of, 'g', -1, 64))
	return okA && okB && a.Quo(a, b).IsInt()
}

func (w *walk) checkText(r *textRules, s string) {
	if r.minLength != nil || r.maxLength != nil {
		n := utf8.RuneCountInString(s)
		if r.minLength != nil && n < *r.minLength {
			w.report("minLength", "must have at least %d characters, has %d", *r.minLength, n)
		}
		if r.maxLength != nil && n > *r.maxLength {
			w.report("maxLength", "must have at most %d characters, has %d", *r.maxLength, n)
		}
	}
	if r.pattern != nil && !r.pattern.MatchString(s) {
		w.report("pattern", "must match the pattern %s", r.pattern)
	}
}

func (w *walk) checkArray(r *arrayRules, list []any) {
	if r.minItems != nil && len(list) < *r.minItems {
		w.report("minItems", "must have at least %d elements, has %d", *r.minItems, len(list))
	}
	if r.maxItems != nil && len(list) > *r.maxItems {
		w.report("maxItems", "must have at most %d elements, has %d", *r.maxItems, len(list))
	}
	if r.unique {
		if i, twice := repeated(list); twice {
			w.report("uniqueItems", "element %d repeats an earlier one", i)
		}
	}
	for i, n := range r.prefix[:min(len(r.prefix), len(list))] {
		w.checkElement(i, n, list)
	}
	for i := len(r.prefix); r.items != nil && i < len(list); i++ {
		w.checkElement(i, r.items, list)
	}
	if r.contains != nil {
		w.checkContains(r, list)
	}
	for i := 0; r.unevaluatedItems != nil && i < len(list); i++ {
		if !w.seen[step{index: i, elem: true}] {
			w.checkElement(i, r.unevaluatedItems, list)
		}
	}
}

func (w *walk) checkElement(i int, n *node, list []any) {
	s := step{index: i, elem: true}
	w.see(s)
	w.inside(s, n, list[i])
}

func (w *walk) checkContains(r *arrayRules, list []any) {
	n := 0
	elements := *w
	elements.seen = nil
	for i, e := range list {
		if len(elements.try(r.contains, e)) == 0 {
			n++
			w.see(step{index: i, elem: true})
		}
	}
	least := 1
	if r.minContains != nil {
		least = *r.minContains
	}
	if n < least {
		w.report("contains", "must have at least %d matching elements, has %d", least, n)
	}
	if r.maxContains != nil && n > *r.maxContains {
		w.report("maxContains", "must have at most %d matching elements, has %d", *r.maxContains, n)
	}
}

func repeated(list []any) (int, bool) {
	seen := make(map[string]bool, len(list))
	for i, e := range list {
		b, err := json.Marshal(e) // sorts keys, so equal values have equal texts
		if err != nil {
			continue
		}
		if seen[string(b)] {
			return i, true
		}
		seen[string(b)] = true
	}
	return 0, false
}

func (w *walk) checkObject(r *objectRules, o map[string]any) {
	for _, name := range r.required {
		if _, ok := o[name]; !ok {
			w.report("required", "property %q is missing", name)
		}
	}
	if r.minProps != nil && len(o) < *r.minProps {
		w.report("minProperties", "must have at least %d properties, has %d", *r.minProps, len(o))
	}
	if r.maxProps != nil && len(o) > *r.maxProps {
		w.report("maxProperties", "must have at most %d properties, has %d", *r.maxProps, len(o))
	}
	if r.properties != nil || r.patterns != nil || r.additional != nil || r.names != nil {
		w.eachMember(o, func(name string, v any) { w.checkMember(r, name, v) })
	}
	for _, d := range r.needs {
		w.checkDependency(d, o)
	}
	if r.unevaluatedProperties != nil {
		w.eachMember(o, func(name string, v any) {
			if !w.seen[step{name: name}] {
				w.checkOther(name, "unevaluatedProperties", r.unevaluatedProperties, v)
			}
		})
	}
}

// eachMember reports in an order, which Go's maps have not.
func (w *walk) eachMember(o map[string]any, check func(name string, v any)) {
	before := len(w.found)
	for name, v := range o {
		check(name, v)
	}
	slices.SortStableFunc(w.found[before:], func(a, b Violation) int { return strings.Compare(a.Pointer, b.Pointer) })
}

func (w *walk) checkMember(r *objectRules, name string, v any) {
	s := step{name: name}
	sub, known := r.properties[name]
	if known {
		w.inside(s, sub, v)
	}
	for _, p := range r.patterns {
		if p.re.MatchString(name) {
			known = true
			w.inside(s, p.node, v)
		}
	}
	if r.names != nil {
		w.inside(s, r.names, name)
	}
	if known {
		w.see(s)
		return
	}
	if w.exactCase && (r.additional == nil || !r.additional.refused) {
		w.checkCase(r, name)
	}
	if r.additional != nil {
		w.checkOther(name, "additionalProperties", r.additional, v)
	}
}

// checkOther checks a property that has no schema of its own.
func (w *walk) checkOther(name, keyword string, n *node, v any) {
	s := step{name: name}
	w.see(s)
	if n.refused {
		w.reportProperty(name, keyword, "is not a known property")
	} else {
		w.inside(s, n, v)
	}
}

// checkCase refuses a name that encoding/json would read as a property of another spelling, past the rules of that property.
func (w *walk) checkCase(r *objectRules, name string) {
	for declared := range r.properties {
		if strings.EqualFold(declared, name) {
			w.reportProperty(name, "decode", "differs only in case from %q", declared)
			return
		}
	}
}

func (w *walk) checkDependency(d dependency, o map[string]any) {
	if _, ok := o[d.property]; !ok {
		return
	}
	for _, name := range d.required {
		if _, ok := o[name]; !ok {
			w.report("dependentRequired", "property %q is missing; %q needs it", name, d.property)
		}
	}
	if d.node != nil {
		w.check(d.node, o)
	}
}

func (w *walk) checkLogic(n *node, v any) {
	for _, sub := range n.allOf {
		w.check(sub, v)
	}
	if n.anyOf != nil {
		w.checkAnyOf(n.anyOf, v)
	}
	if n.oneOf != nil {
		w.checkOneOf(n.oneOf, v)
	}
	if n.not != nil && len(w.try(n.not, v)) == 0 {
		w.report("not", "must not match the excluded schema")
	}
	if n.ifNode != nil {
		branch := n.then
		if len(w.try(n.ifNode, v)) > 0 {
			branch = n.orElse
		}
		if branch != nil {
			w.check(branch, v)
		}
	}
}

func (w *walk) checkAnyOf(subs []*node, v any) {
	fails := make([][]Violation, 0, len(subs))
	for _, sub := range subs {
		found := w.try(sub, v)
		if len(found) == 0 && w.seen == nil {
			return
		}
		if len(found) > 0 {
			fails = append(fails, found)
		}
	}
	if len(fails) == len(subs) {
		w.reportNone("anyOf", fails)
	}
}

func (w *walk) checkOneOf(subs []*node, v any) {
	var fails [][]Violation
	for _, sub := range subs {
		if found := w.try(sub, v); len(found) > 0 {
			fails = append(fails, found)
		}
	}
	switch matches := len(subs) - len(fails); matches {
	case 0:
		w.reportNone("oneOf", fails)
	case 1:
	default:
		w.report("oneOf", "must match exactly one of %d alternatives, matches %d", len(subs), matches)
	}
}

// reportNone says why no alternative fits. Where all but one are out by the type or a constant of
// the value, the one left is what was meant, and its violations are the useful ones.
func (w *walk) reportNone(keyword string, fails [][]Violation) {
	here := w.pointer()
	var meant [][]Violation
	for _, found := range fails {
		if !otherKind(found, here) {
			meant = append(meant, found)
		}
	}
	if len(meant) == 1 {
		w.found = append(w.found, meant[0]...)
		return
	}
	reasons := make([]string, len(fails))
	for i, found := range fails {
		reasons[i] = found[0].String()
	}
	w.report(keyword, "must match one of %d alternatives (%s)", len(fails), strings.Join(reasons, " | "))
}

// otherKind reports whether the value is of another kind than the alternative describes: the wrong
// type, or another value in a property that tells the kinds apart.
func otherKind(found []Violation, here string) bool {
	return slices.ContainsFunc(found, func(v Violation) bool {
		return v.Pointer == here && v.Keyword == "type" || v.Keyword == "const"
	})
}
