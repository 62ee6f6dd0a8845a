// SPDX-License-Identifier: Apache-2.0

package streamgen

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestStreams_AreJSONAndDeterministic(t *testing.T) {
	for name, make := range map[string]func() [][]byte{
		"text":  func() [][]byte { return Text(50) },
		"mixed": func() [][]byte { return Mixed(RoundLines + 10) },
		"large": func() [][]byte { return Large(2, 100_000) },
	} {
		lines := make()
		for i, line := range lines {
			if !json.Valid(line) || bytes.ContainsAny(line, "\n\r") {
				t.Errorf("%s: line %d is not one line of JSON: %.200s", name, i, line)
			}
		}
		if !bytes.Equal(Join(lines), Join(make())) {
			t.Errorf("%s: two runs differ", name)
		}
	}
}

func TestMixed_HasTheDocumentedShape(t *testing.T) {
	count, size := map[string]int{}, 0
	for _, line := range Mixed(RoundLines) {
		var head struct{ Type string }
		if err := json.Unmarshal(line, &head); err != nil {
			t.Fatal(err)
		}
		count[head.Type]++
		size += len(line)
	}
	want := map[string]int{"system": 1, "stream_event": 800, "assistant": 80, "control_request": 40, "user": 40, "result": 1}
	for typ, n := range want {
		if count[typ] != n {
			t.Errorf("%d lines of type %s, want %d", count[typ], typ, n)
		}
	}
	if size < 1_300_000 || size > 1_800_000 {
		t.Errorf("a round is %d bytes, want about 1.5 MB", size)
	}
}
