// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

func recordingText(bodies ...string) string {
	var b strings.Builder
	b.WriteString(`{"drover_recording":1,"wire":"anthropic"}` + "\n")
	for i, body := range bodies {
		fmt.Fprintf(&b, `{"seq":%d,"request":{"method":"POST","path":"/v1/messages","body":{"json":%s}},"response":{"status":200}}`+"\n", i+1, body)
	}
	return b.String()
}

// each repeats texts with their number up to n bytes.
func each(n int, f func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(f(i))
	}
	return b.String()
}

var recordings = testkit.Shapes{
	"ids": func(n int) string {
		return recordingText(`["` + each(n, func(i int) string { return fmt.Sprintf("agentId: agent-%06d ", i) }) + `"]`)
	},
	"strings with ids": func(n int) string {
		return recordingText("[" + each(n, func(i int) string { return fmt.Sprintf(`"agentId: agent-%06d",`, i) }) + `""]`)
	},
	"objects": func(n int) string { return recordingText("[" + each(n, func(int) string { return "{}," }) + "{}]") },
	"lists":   func(n int) string { return recordingText("[" + each(n, func(int) string { return "[]," }) + "[]]") },
	"numbers": func(n int) string { return recordingText("[" + each(n, func(int) string { return "1," }) + "1]") },
	"names": func(n int) string {
		return recordingText("{" + each(n, func(i int) string { return fmt.Sprintf(`"n%d":1,`, i) }) + `"a":1}`)
	},
	"exchanges": func(n int) string { return recordingText(strings.Split(strings.Repeat("{} ", n/120), " ")[:n/120]...) },
	"chunks": func(n int) string {
		return recordingText(`{}`) + `{"seq":2,"request":{"method":"GET","path":"/"},"response":{"status":200,"chunks":[` + each(n, func(int) string { return `{"text":"x"},` }) + `{}]}}` + "\n"
	},
}

// A recording of any form costs time and memory as its size does, whether it can be replayed or not.
func TestReplay_CostGrowsWithTheRecording(t *testing.T) {
	testkit.LinearCost(t, recordings, testkit.Size(1_000_000, 10_000_000), 1<<30, func(text string) {
		stored, err := readRecording(strings.NewReader(text), nil)
		if err != nil {
			return
		}
		if _, err := newPlayer("recording", stored, ReplayOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestReplay_TooManyValuesRefused(t *testing.T) {
	body := "[" + strings.Repeat("{},", 3*maxBodyValues) + "{}]"
	if _, err := readRecording(strings.NewReader(recordingText(body)), nil); err == nil || !strings.Contains(advice.Text(err), "too many values") {
		t.Errorf("got %v", err)
	}
	if _, err := readRecording(strings.NewReader(recordingText(`["`+strings.Repeat("{},", 3*maxBodyValues)+`"]`)), nil); err != nil {
		t.Errorf("what is in a string counts: %v", err)
	}
}
