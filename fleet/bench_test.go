// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/drover-agents/drover/session"
)

// Submit is compared with JetStream alone, which keeps the same bytes with a sync.
func BenchmarkSubmit(b *testing.B) {
	f, err := Open(b.Context(), &Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	request := map[string]string{"text": strings.Repeat("x", 2000)}
	body, err := json.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	b.Run("jetstream", func(b *testing.B) {
		for b.Loop() {
			n++
			if _, err := f.js.PublishMsg(b.Context(), &nats.Msg{Subject: fmt.Sprintf("%s.work.alone.%d.normal", f.name, n), Data: body}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("drover", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.Submit(b.Context(), "bench", request, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLog_Append(b *testing.B) {
	f, err := Open(b.Context(), &Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	l, err := f.OpenLog(b.Context(), "bench", "bench")
	if err == nil {
		err = l.Init(session.Head{Version: session.EncodingVersion, ID: "bench"})
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := l.Append([]session.Record{{Pos: l.Last() + 1, Data: json.RawMessage(`{"pos":1}`)}}); err != nil {
			b.Fatal(err)
		}
	}
}
