// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plannedKeys adds the keys of a type that is read by its plan, and of the types of its fields.
func plannedKeys(t reflect.Type, keys map[string]bool) {
	switch {
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		plannedKeys(t.Elem(), keys)
	case t.Kind() != reflect.Struct, t.PkgPath() != reflect.TypeFor[Origin]().PkgPath():
	default:
		_, own := reflect.New(t).Interface().(fielder)
		for key, f := range planOf(t).fields {
			field := t.FieldByIndex(f.index)
			if !own {
				keys[fmt.Sprintf("%s.%s %s", t.Name(), field.Name, key)] = true
			}
			plannedKeys(field.Type, keys)
		}
	}
}

func TestMessagePlan_ReadsTheKeysOfTheCLI(t *testing.T) {
	keys := map[string]bool{}
	for _, kind := range messageKinds {
		plannedKeys(reflect.TypeOf(kind.make()), keys)
	}
	for _, inside := range []any{MediaSource{}, RateLimitInfo{}, compactMetadata{}} {
		plannedKeys(reflect.TypeOf(inside), keys)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "message_keys.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(string(want)), strings.Fields(strings.Join(slices.Sorted(maps.Keys(keys)), "\n"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
