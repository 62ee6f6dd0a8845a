// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/event"
)

// A structured answer stays JSON, also with characters that a terminal must not get.
func TestAnswer_StructuredAnswerIsJSON(t *testing.T) {
	type answer struct{ Text string }
	want := answer{"\x1b[2J\x7f\u0085\u202e\u2028 é\n"}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("\x7f")) {
		t.Fatal("the trap of this test is gone: delete is escaped")
	}
	var out bytes.Buffer
	view, _ := New(nil, &out, Options{Quiet: true})
	view.Show(event.New(event.Done{Status: event.DoneSuccess, Output: text}))
	view.Close()
	var got answer
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != want {
		t.Errorf("printed is %q: %+v, %v", out.String(), got, err)
	}
	if bytes.ContainsAny(out.Bytes(), "\x1b\x7f\u0085\u202e\u2028") {
		t.Errorf("characters that act on a terminal are printed: %q", out.String())
	}
}
