// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"reflect"

	"github.com/drover-agents/drover/session"
)

// A View is what predicates see when a prompt is rendered.
type View struct {
	session *session.Session
	scope   scope
	bound   map[reflect.Type]*boundValue
}

// Session returns the session of the run, or nil.
func (v View) Session() *session.Session { return v.session }

// Param returns the value of a params struct, bound or default. P is the struct, not a pointer to it.
func Param[P any](v View) (P, bool) {
	value := v.scope.value(reflect.TypeFor[P](), v.bound)
	if value == nil {
		var none P
		return none, false
	}
	return value.value.(P), true
}

// When makes a predicate of a function of one params struct, which must be declared in the section,
// above it or in the definition. A prompt without a value for it cannot be rendered.
func When[P any](fn func(p P) bool) func(View) bool {
	return func(v View) bool {
		p, ok := Param[P](v)
		if !ok {
			panic(fmt.Sprintf("it asks for %v, which is not bound; declare it with ParamsOf", reflect.TypeFor[P]()))
		}
		return fn(p)
	}
}
