// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

// The handler runs if and only if the arguments fit the schema, and gets what was checked.
func FuzzArguments(f *testing.F) {
	for _, input := range []string{
		``, ` `, `{}`, `null`, `[]`, `{"path":`, `{"path":"a"}`, `{"path":"a","path":""}`, `{"path":"a","PATH":""}`, `{"p\u0061th":"a"}`,
		`{"path":"a","limit":1.0}`, `{"path":"a","limit":1e400}`, `{"path":"a","limit":9223372036854775808}`, `{"path":"a","limit":1e1}`,
		`{"path":"a","kind":"file","globs":["x"],"labels":{"k":"v","K":"v"},"since":"2026-01-02T03:04:05Z","filters":[{"name":"n","any":[{"name":"m"}]}]}`,
		`{"path":"a","since":"2026"}`, `{"path":"a","since":null,"globs":null}`, "{\"path\":\"\xff\"}", `{"path":"\ud800"}`,
		`{"path":"a","filters":[{"name":"x","NAME":"y"}]}`, `{"path":"a","ſince":null}`,
		`{"path":"a","filters":` + strings.Repeat(`[{"name":"n","any":`, 2000) + `[]` + strings.Repeat(`}]`, 2000) + `}`,
	} {
		f.Add([]byte(input))
	}
	var got *search
	made := tool.Must("search", "d", func(_ context.Context, p search) (string, error) { got = &p; return "ran", nil })
	other := tool.Must("search", "d", func(_ context.Context, p search) (string, error) { got = &p; return "ran", nil },
		tool.WithInput(schema.MustParse(`{"type":"object"}`)))
	f.Fuzz(func(t *testing.T, input []byte) {
		fits := made.Input.Validate(input) == nil || len(bytes.TrimSpace(input)) == 0 && made.Input.Validate(json.RawMessage(`{}`)) == nil
		for _, each := range []*tool.Tool{made, other} {
			got = nil
			r := each.Run(context.Background(), tool.Call{Input: input})
			if ran := got != nil; ran != fits || r.OK() != fits {
				t.Fatalf("%q: fits %t, ran %t, answered %q", input, fits, ran, r.Render())
			}
			if fits {
				checkReceived(t, input, got)
				continue
			}
			var wrong *schema.ValidationError
			if r.Err.Code != tool.CodeInvalidInput || !errors.As(r.Err, &wrong) {
				t.Fatalf("%q: got %+v, want the violations", input, r.Err)
			}
		}
	})
}

// checkReceived sees that the constraints hold for what the handler got, not only for the text.
func checkReceived(t *testing.T, input []byte, got *search) {
	t.Helper()
	var named map[string]json.RawMessage
	if err := json.Unmarshal(input, &named); err != nil {
		t.Fatalf("%q: %v", input, err)
	}
	_, limited := named["limit"]
	switch {
	case got.Path == "", got.Kind != "" && got.Kind != "file" && got.Kind != "dir", len(got.Globs) > 2,
		limited && (got.Limit < 1 || got.Limit > 100), !limited && got.Limit != 0,
		got.Since != nil && got.Since.Equal(time.Time{}) && !bytes.Contains(input, []byte("0001-01-01")):
		t.Fatalf("%q: the handler got %+v, which breaks the constraints", input, got)
	}
}
