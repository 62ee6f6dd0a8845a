// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"regexp"
	"slices"
	"strings"
)

// A node is one schema, prepared for the walk in validate.go.
type node struct {
	refused bool // the schema "false"

	types     typeSet // zero: any type
	enum      []any
	hasConst  bool
	constant  any
	ref       *node
	refTarget string // pointer of ref until it is resolved

	allOf, anyOf, oneOf  []*node
	not                  *node
	ifNode, then, orElse *node

	numberRules
	textRules
	arrayRules
	objectRules
}

type numberRules struct {
	multipleOf, min, max, above, below *float64
}

type textRules struct {
	minLength, maxLength *int
	pattern              *regexp.Regexp
}

type arrayRules struct {
	prefix                                       []*node
	items, contains                              *node
	minItems, maxItems, minContains, maxContains *int
	unique                                       bool
	unevaluatedItems                             *node
}

type objectRules struct {
	properties            map[string]*node
	patterns              []patternRule
	additional            *node
	names                 *node
	required              []string
	minProps, maxProps    *int
	needs                 []dependency
	unevaluatedProperties *node
}

type patternRule struct {
	re   *regexp.Regexp
	node *node
}

// A dependency holds when the object has the property: other properties, a schema, or both.
type dependency struct {
	property string
	required []string
	node     *node
}

// inPlace lists the nodes that look at the same value as n does. A circle of them would never end.
func (n *node) inPlace() []*node {
	all := slices.Concat(n.allOf, n.anyOf, n.oneOf, []*node{n.ref, n.not, n.ifNode, n.then, n.orElse})
	for _, d := range n.needs {
		all = append(all, d.node)
	}
	return all
}

// A typeSet is a set of JSON types. An integer is also a number.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeObject
	typeArray
	typeString
	typeNumber
	typeInteger
)

var typeNames = []struct {
	name string
	bit  typeSet
	noun string
}{
	{"null", typeNull, "null"},
	{"boolean", typeBoolean, "a boolean"},
	{"object", typeObject, "an object"},
	{"array", typeArray, "an array"},
	{"string", typeString, "a string"},
	{"number", typeNumber, "a number"},
	{"integer", typeInteger, "an integer"},
}

func typeByName(name string) (typeSet, bool) {
	for _, t := range typeNames {
		if t.name == name {
			return t.bit, true
		}
	}
	return 0, false
}

// String lists the types in words: "a string or null".
func (s typeSet) String() string {
	var nouns []string
	for _, t := range slices.Backward(typeNames) {
		if s&t.bit != 0 {
			nouns = append(nouns, t.noun)
		}
	}
	return strings.Join(nouns, " or ")
}
