// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/drover-agents/drover/internal/plainjson"
)

// Most structs are read by reflection: a field has the key that is its name in snake case, for example TaskID "task_id", and
// the key of a duration has its unit, for example RetryDelay "retry_delay_ms". A struct that the CLI sends for every piece
// of an answer, or whose keys are not all its own, is a fielder instead.

// otherKeys are the keys of fields that are named otherwise.
var otherKeys = map[string]string{
	"AuthStatus.IsAuthenticating":  "isAuthenticating",
	"ModelUsage.CacheCreation1h":   "cacheCreationEphemeral1hInputTokens",
	"ModelUsage.CacheCreation5m":   "cacheCreationEphemeral5mInputTokens",
	"ModelUsage.CostUSD":           "costUSD",
	"ResultMessage.ModelUsage":     "modelUsage",
	"StatusMessage.PermissionMode": "permissionMode",
	"SystemInit.APIKeySource":      "apiKeySource",
	"SystemInit.PermissionMode":    "permissionMode",
	"ToolProgress.Elapsed":         "elapsed_time_seconds",
	"TranscriptMirror.FilePath":    "filePath",
}

type messagePlan struct {
	fields map[string]plannedField
	none   reflect.Value // an empty list of the type
}

type plannedField struct {
	index []int
	unit  time.Duration // of a duration
}

var messagePlans sync.Map // reflect.Type -> *messagePlan

// planOf returns the plan of a struct type. The fields of embedded structs are the struct's own;
// those of a [MessageHeader] are read by [msgDecoder.message].
func planOf(t reflect.Type) *messagePlan {
	if p, ok := messagePlans.Load(t); ok {
		return p.(*messagePlan)
	}
	p := &messagePlan{fields: map[string]plannedField{}, none: reflect.MakeSlice(reflect.SliceOf(t), 0, 0)}
	for _, f := range reflect.VisibleFields(t) {
		inHeader := len(f.Index) > 1 && t.Field(f.Index[0]).Type == reflect.TypeFor[MessageHeader]()
		if f.Anonymous || !f.IsExported() || inHeader {
			continue
		}
		key := keyOf(t, f)
		unit := time.Millisecond
		if strings.HasSuffix(key, "_seconds") {
			unit = time.Second
		}
		p.fields[key] = plannedField{f.Index, unit}
	}
	messagePlans.Store(t, p)
	return p
}

func keyOf(t reflect.Type, f reflect.StructField) string {
	if key, ok := otherKeys[t.Name()+"."+f.Name]; ok {
		return key
	}
	if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
		return key
	}
	words := wordsOf(f.Name)
	switch t {
	case reflect.TypeFor[Origin](), reflect.TypeFor[RateLimitInfo](), reflect.TypeFor[ModelUsage](): // in camel case
		for i, word := range words[1:] {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
		return strings.Join(words, "")
	}
	if f.Type == reflect.TypeFor[time.Duration]() || f.Type == reflect.TypeFor[*time.Duration]() {
		words = append(words, "ms")
	}
	return strings.Join(words, "_")
}

// wordsOf returns the words of a Go name in lower case: "api", "error" and "ids" of APIErrorIDs.
func wordsOf(name string) (words []string) {
	start := 0
	for i := 1; i < len(name); i++ {
		if !unicode.IsUpper(rune(name[i])) {
			continue
		}
		plural := name[i:] == "Ds" // of IDs or UUIDs
		if unicode.IsLower(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1])) && !plural {
			words = append(words, strings.ToLower(name[start:i]))
			start = i
		}
	}
	return append(words, strings.ToLower(name[start:]))
}

// planned is a struct that is being read by its plan.
type planned struct {
	v    reflect.Value
	plan *messagePlan
}

func plannedOf(ptr any) planned {
	v := reflect.ValueOf(ptr).Elem()
	return planned{v, planOf(v.Type())}
}

// field is as in [fielder]. It is called without the interface, which would cost an allocation.
func (p *planned) field(d *msgDecoder, key []byte) bool {
	f, ok := p.plan.fields[string(key)]
	if ok {
		d.value(p.v.FieldByIndex(f.index).Addr().Interface(), f.unit)
	}
	return ok
}

// fill reads the next value into the struct that ptr points to if it is an object, and reports whether it is.
func (d *msgDecoder) fill(ptr any) bool {
	if !d.Object() {
		return false
	}
	p := plannedOf(ptr)
	for key, ok := d.Field(); ok; key, ok = d.Field() {
		if !p.field(d, key) {
			d.Skip()
		}
	}
	return true
}

// value reads the next value into what ptr points to. The unit is that of a duration.
func (d *msgDecoder) value(ptr any, unit time.Duration) {
	switch p := ptr.(type) {
	case *string:
		*p = d.str()
	case *[]string:
		*p = d.strs()
	case *bool:
		*p = d.bool()
	case **bool:
		*p = present(d.Bool())
	case *int:
		*p = d.int()
	case **int:
		*p = d.intPtr()
	case *float64:
		*p = d.float()
	case **float64:
		*p = present(d.Float())
	case *time.Duration:
		v, _ := d.Float()
		*p = floatDuration(v, unit)
	case **time.Duration:
		*p = d.millisPtr()
	case *time.Time:
		*p = d.time()
	case *json.RawMessage:
		*p = d.raw()
	case *[]json.RawMessage:
		*p = d.raws()
	case *Usage:
		*p = d.usage()
	case *map[string]ModelUsage:
		*p = d.modelUsage()
	default:
		d.objects(reflect.ValueOf(ptr).Elem())
	}
}

// objects reads the next value into v, which is a struct, a pointer to one, nil if there is no
// object, or a list of them, without the elements that are not objects.
func (d *msgDecoder) objects(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.fill(v.Addr().Interface())
	case reflect.Pointer:
		v.SetZero()
		if d.Kind() != plainjson.Object {
			d.Skip()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.fill(v.Interface())
	case reflect.Slice:
		v.SetZero()
		if !d.Array() {
			return
		}
		v.Set(planOf(v.Type().Elem()).none)
		for d.Elem() {
			if d.Kind() != plainjson.Object {
				d.Skip()
				continue
			}
			v.Grow(1)
			v.SetLen(v.Len() + 1)
			d.fill(v.Index(v.Len() - 1).Addr().Interface())
		}
	default:
		d.Skip()
	}
}
