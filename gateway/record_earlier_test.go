// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/base64"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-agents/drover/gateway"
)

// earlierRecording was written by the code of commit b8b86f1, by this test with -record-earlier.
const earlierRecording = "testdata/recording.b8b86f1.jsonl"

var recordEarlier = flag.String("record-earlier", "", "write the recording of this code to a new file")

// earlierExchanges are calls of a run, and what was answered.
var earlierExchanges = []struct{ name, body, contentType, answer string }{
	{
		"a stream", `{"model":"claude-opus-4-5","stream":true,"messages":[{"role":"user","content":"list DIR"}]}`, streamType,
		messageStart(10) + delta + messageEnd(5) + messageStop,
	},
	{
		"a tool's result", `{"model":"claude-opus-4-5","stream":true,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"DIR/a"}]}]}`, streamType,
		messageStart(20) + strings.Repeat(delta, 3) + messageEnd(7) + messageStop,
	},
	{"an answer in one piece", `{"model":"claude-opus-4-5","messages":[]}`, "application/json", message},
	{"a refusal", `{"model":"claude-none","messages":[]}`, "application/json", `{"type":"error","error":{"type":"not_found_error","message":"model: claude-none"}}`},
	{"bytes", `{"model":"claude-opus-4-5","messages":[1]}`, "application/octet-stream", string([]byte{0, 255, 1, 254})},
}

func earlierAnswer(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	for _, e := range earlierExchanges {
		if e.body == strings.ReplaceAll(string(body), "/home/ann/work", "DIR") {
			status := http.StatusOK
			if e.name == "a refusal" {
				status = http.StatusNotFound
			}
			return answerWith(status, e.contentType, e.answer), nil
		}
	}
	return answerWith(http.StatusBadRequest, "application/json", base64.StdEncoding.EncodeToString(body)), nil
}

func askEarlier(run *gateway.Run, body, dir string) *httptest.ResponseRecorder {
	return post(run, strings.ReplaceAll(body, "DIR", dir))
}

// A recording that earlier code has made of a run opens and replays.
func TestReplay_RecordingOfEarlierCode(t *testing.T) {
	if *recordEarlier != "" {
		recorder, err := gateway.Record(&upstreamFunc{gateway.WireAnthropic, earlierAnswer}, *recordEarlier,
			gateway.RecordOptions{Folders: gateway.Folders{Dir: "/home/ann/work", Home: "/home/ann"}})
		if err != nil {
			t.Fatal(err)
		}
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: recorder})
		for _, e := range earlierExchanges {
			askEarlier(run, e.body, "/home/ann/work")
		}
		if err := recorder.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	player, err := gateway.Replay(earlierRecording, gateway.ReplayOptions{Folders: gateway.Folders{Dir: "/srv/x"}})
	if err != nil {
		t.Fatal(err)
	}
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: player})
	for _, e := range earlierExchanges {
		w := askEarlier(run, e.body, "/srv/x")
		if got := w.Body.String(); got != e.answer && sameEvents(t, got) != sameEvents(t, e.answer) || w.Header().Get("Content-Type") != e.contentType {
			t.Errorf("%s: got %d %q, want %q", e.name, w.Code, got, e.answer)
		}
	}
	if err := player.Err(); err != nil || len(player.Unused()) != 0 {
		t.Errorf("the player reports %v, and %v are left", err, player.Unused())
	}
	if got := run.Usage().Total; got.Requests != int64(len(earlierExchanges)) || got.Input < 40 || got.Output < 22 {
		t.Errorf("the usage is %+v", got)
	}
}
