// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
)

// frame wraps an event of the Messages API as Bedrock does.
func frame(event string) []byte {
	var headers []byte
	for _, h := range [][2]string{{":event-type", "chunk"}, {":content-type", "application/json"}, {":message-type", "event"}} {
		headers = append(append(append(headers, byte(len(h[0]))), h[0]...), 7)
		headers = append(binary.BigEndian.AppendUint16(headers, uint16(len(h[1]))), h[1]...)
	}
	payload := fmt.Sprintf(`{"bytes":%q}`, base64.StdEncoding.EncodeToString([]byte(event)))
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

var bedrockEvents = []string{
	`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"from Bedrock"}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":20}}`,
	`{"type":"message_stop"}`,
}

// bedrock is an upstream that speaks as Bedrock does. It counts the calls of models.
func bedrock(calls *atomic.Int64) *upstreamFunc {
	stream := streaming(func(w io.Writer) {
		for _, e := range bedrockEvents {
			w.Write(frame(e))
		}
	})
	return &upstreamFunc{gateway.WireBedrock, func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return answerWith(http.StatusOK, "application/json", `{"inferenceProfileSummaries":[]}`), nil
		}
		calls.Add(1)
		resp, err := stream.do(r)
		resp.Header.Set("Content-Type", frameType)
		return resp, err
	}}
}

func TestCLI_UsesBedrockThroughTheGateway(t *testing.T) {
	cases := []struct {
		name   string
		budget guard.Budget
		vars   map[string]string
		want   string
		input  int64
	}{
		{"within its budget", guard.Budget{}, nil, "from Bedrock", 100},
		{"cut", guard.Budget{MaxInputTokens: 50}, nil, "MaxInputTokens is 50", 100},
		{"cut, without a second try", guard.Budget{MaxInputTokens: 50}, map[string]string{"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1"}, "MaxInputTokens is 50", 100},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			var calls atomic.Int64
			run, url := serve(t, gateway.New(nil), gateway.RunOptions{
				Upstream: bedrock(&calls), Trackers: []*guard.Tracker{guard.NewTracker(tc.budget)},
			})
			vars := claude.CellEnv{Endpoint: claude.CellEndpoint{URL: url, Token: run.Token(), BedrockRegion: "us-east-1"}}.Vars()
			env := cli.Env(url)
			delete(env, "ANTHROPIC_API_KEY")
			delete(env, "ANTHROPIC_BASE_URL")
			for name, value := range vars {
				if strings.Contains(name, "BEDROCK") || strings.HasPrefix(name, "AWS_") {
					env[name] = value
				}
			}
			maps.Copy(env, tc.vars)
			answer := ask(t, &claude.Options{CLIPath: cli.Path, Dir: cli.Work, Env: claude.ExactEnv(env), SettingSources: []string{}, StrictMCP: true})
			if !strings.Contains(answer.Result, tc.want) {
				t.Errorf("the CLI answered %q (status %d, %s)", answer.Result, answer.APIErrorStatus, answer.TerminalReason)
			}
			if got := run.Usage(); got.Total.Input != tc.input || got.ByModel["claude-opus-5-5"].Input != tc.input || calls.Load() != 1 {
				t.Errorf("got %+v after %d calls", got, calls.Load())
			}
		})
	}
}
