// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
)

// askUpstream is what an agent does.
func askUpstream(up gateway.Upstream, question string) string {
	req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(`{"question":"`+question+`"}`))
	resp, err := up.RoundTrip(req)
	if err != nil {
		return advice.Text(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return string(answer)
}

// A recorded answer of a model can be requested again without the model.
func ExampleRecord() {
	dir, err := os.MkdirTemp("", "drover-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run.jsonl")

	recorder, err := gateway.Record(says("text/plain", "Seven."), path, gateway.RecordOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(askUpstream(recorder, "Which version?"))
	if err := recorder.Close(); err != nil {
		fmt.Println(advice.Text(err))
	}

	player, err := gateway.Replay(path, gateway.ReplayOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(askUpstream(player, "Which version?"))
	// Output:
	// Seven.
	// Seven.
}

// The golden recording has no such request; the error says where it differs.
func ExampleReplay() {
	player, err := gateway.Replay("testdata/recording.v1.jsonl", gateway.ReplayOptions{Folders: gateway.Folders{Dir: "/srv/work"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := httptest.NewRequest(http.MethodPost, "/v1/messages?beta=true",
		strings.NewReader(`{"messages":[{"role":"user","content":"remove /srv/work"}],"stream":true}`))
	resp, err := player.RoundTrip(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	fmt.Println(advice.Text(player.Err()))
	// Output:
	// 402 Payment Required
	// gateway: replay: request 1 (POST /v1/messages) is not in the recording testdata/recording.v1.jsonl; from exchange 2, the nearest, it differs in:
	//   /messages/0/content: recorded "list ${dir}" got "remove ${dir}"
	//   next: make the run ask what it asked then, or record it again
}
