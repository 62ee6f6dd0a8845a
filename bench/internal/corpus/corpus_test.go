// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestBlock_LinesAreJSON(t *testing.T) {
	for name, b := range map[string]*Block{"text": Text(), "mixed": Mixed(), "big": Big()} {
		t.Run(name, func(t *testing.T) {
			lines := bytes.SplitAfter(b.Bytes, []byte("\n"))
			if got, want := len(lines)-1, b.Lines(); got != want {
				t.Fatalf("got %d lines, want %d", got, want)
			}
			for i, line := range lines[:len(lines)-1] {
				if !json.Valid(line) {
					t.Fatalf("line %d is not JSON: %.200s", i, line)
				}
			}
			t.Logf("%d lines, %d bytes", b.Lines(), len(b.Bytes))
		})
	}
}

func TestMixed_HasTheStatedShape(t *testing.T) {
	b := Mixed()
	got := map[string]int{}
	for line := range bytes.Lines(b.Bytes) {
		var head struct{ Type string }
		if err := json.Unmarshal(line, &head); err != nil {
			t.Fatal(err)
		}
		got[head.Type]++
	}
	if got["stream_event"] != 800 || got["assistant"] != 80 || got["user"] != 40 {
		t.Errorf("got %v, want 800 deltas, 80 assistant messages and 40 tool results", got)
	}
}

func TestBlock_VolumeCountsRepeatedLines(t *testing.T) {
	b := Mixed()
	n := 2*b.Lines() + 7
	gotBytes, gotText := b.Volume(n)
	wantBytes := 2*len(b.Bytes) + len(b.Prefix(7))
	if gotBytes != wantBytes {
		t.Errorf("got %d bytes, want %d", gotBytes, wantBytes)
	}
	one, seven := sumText(b, b.Lines()), sumText(b, 7)
	if want := 2*one.UTF8 + seven.UTF8; gotText.UTF8 != want {
		t.Errorf("got %d bytes of text, want %d", gotText.UTF8, want)
	}
	if gotText.UTF16 >= gotText.UTF8 {
		t.Errorf("got %d UTF-16 units for %d bytes, want fewer: the text is meant to leave ASCII", gotText.UTF16, gotText.UTF8)
	}
}

func sumText(b *Block, n int) Size {
	var s Size
	for _, t := range b.text[:n] {
		s.add(t)
	}
	return s
}

func TestRequests_AreJSON(t *testing.T) {
	for _, template := range []string{Hook, Permission, Initialize, Ready, ListTools, CallTool, Init, Result, Idle} {
		if line := bytes.ReplaceAll([]byte(template), []byte("#"), []byte("17")); !json.Valid(line) {
			t.Errorf("not JSON: %s", line)
		}
	}
}
