// SPDX-License-Identifier: Apache-2.0

package bedrock_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/bedrock"
)

// frame is one frame of an event stream that carries an event of the model.
func frame(event string) []byte {
	header := func(name, value string) string {
		return string(rune(len(name))) + name + "\x07" + string(binary.BigEndian.AppendUint16(nil, uint16(len(value)))) + value
	}
	headers := header(":event-type", "chunk") + header(":content-type", "application/json") + header(":message-type", "event")
	payload, _ := json.Marshal(map[string][]byte{"bytes": []byte(event)})
	f := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	f = binary.BigEndian.AppendUint32(f, uint32(len(headers)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, headers...), payload...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}

// turn is an answer of one block, whose content comes in pieces of a few characters.
func turn(block, deltaType, field, content, stop string) []string {
	events := []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
	}
	for len(content) > 0 {
		n := min(5, len(content))
		piece, _ := json.Marshal(content[:n])
		content = content[n:]
		events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":%q,%q:%s}}`, deltaType, field, piece))
	}
	return append(events, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"`+stop+`"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`)
}

// twoTurns is a model that looks at the environment with Bash, then answers where it was.
func twoTurns(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			io.WriteString(w, `{"inferenceProfileSummaries":[]}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		events := turn(`{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}`, "input_json_delta", "partial_json", `{"command":"env > `+dir+`/env.txt; echo kept"}`, "tool_use")
		if strings.Contains(string(body), "tool_result") {
			events = turn(`{"type":"text","text":""}`, "text_delta", "text", "The environment is in "+dir+"/env.txt.", "end_turn")
		}
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		for _, e := range events {
			w.Write(frame(e))
			w.(http.Flusher).Flush()
		}
	}
}

// serve lets the CLI reach an upstream.
func serve(t testing.TB, up gateway.Upstream) string {
	return newServer(t, func(w http.ResponseWriter, r *http.Request) {
		resp, err := up.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		buffer := make([]byte, 4096)
		for {
			n, err := resp.Body.Read(buffer)
			w.Write(buffer[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				return
			}
		}
	})
}

// ask runs the CLI in Bedrock mode with no credential at all.
func ask(t *testing.T, cli *claudetest.RealCLI, base, prompt string) *claude.ResultMessage {
	t.Helper()
	env := cli.Env("")
	delete(env, "ANTHROPIC_BASE_URL")
	delete(env, "ANTHROPIC_API_KEY")
	env["CLAUDE_CODE_USE_BEDROCK"], env["CLAUDE_CODE_SKIP_BEDROCK_AUTH"] = "1", "1"
	env["ANTHROPIC_BEDROCK_BASE_URL"], env["AWS_REGION"] = base, region
	opts := &claude.Options{
		CLIPath: cli.Path, Dir: cli.Work, Env: claude.ExactEnv(env), StrictMCP: true,
		SettingSources: []string{}, PermissionMode: claude.ModeBypassPermissions,
	}
	var result *claude.ResultMessage
	for m, err := range claude.Query(t.Context(), prompt, opts) {
		if err != nil && result == nil {
			t.Fatalf("running the CLI: %v", err)
		}
		if r, ok := m.(*claude.ResultMessage); ok {
			result = r
		}
	}
	return result
}

func TestCLI_WorksWithoutACredential(t *testing.T) {
	decoys(t)
	path := filepath.Join(t.TempDir(), "run.jsonl")
	t.Run("signed outside", func(t *testing.T) {
		cli := claudetest.CLI(t)
		fake := newFakeBedrock(t, twoTurns(cli.Work))
		u := open(t, bedrock.Options{Lookup: planted().lookup, BaseURL: fake.URL})
		recorder, err := gateway.Record(u, path, gateway.RecordOptions{Folders: gateway.Folders{Dir: cli.Work, Home: cli.Home, Config: cli.Config, Temp: cli.Temp}})
		if err != nil {
			t.Fatal(err)
		}
		result := ask(t, cli, serve(t, recorder), "What is in the environment?")
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
		if want := "The environment is in " + cli.Work + "/env.txt."; result.Result != want || result.IsError {
			t.Errorf("got %q, want %q", result.Result, want)
		}
		if n := len(fake.requests()); n < 2 {
			t.Errorf("got %d requests, want two turns", n)
		}
		for _, r := range fake.requests() {
			if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+plantedID) {
				t.Errorf("%s %s came with %q", r.Method, r.URL, r.Header.Get("Authorization"))
			}
		}
		inside, err := os.ReadFile(filepath.Join(cli.Work, "env.txt"))
		if err != nil || !strings.Contains(string(inside), "CLAUDE_CODE_USE_BEDROCK=1") {
			t.Fatalf("the tool did not run: %q (%v)", inside, err)
		}
		for _, secret := range []string{plantedID, plantedSecret, "AKIADECOY", "AWS_ACCESS_KEY_ID", "AWS_BEARER"} {
			if strings.Contains(string(inside), secret) {
				t.Errorf("%s is in the environment of the CLI's tools", secret)
			}
		}
	})

	t.Run("replayed without Bedrock", func(t *testing.T) {
		cli := claudetest.CLI(t)
		player, err := gateway.Replay(path, gateway.ReplayOptions{Folders: gateway.Folders{Dir: cli.Work, Home: cli.Home, Config: cli.Config, Temp: cli.Temp}})
		if err != nil {
			t.Fatal(err)
		}
		result := ask(t, cli, serve(t, player), "What is in the environment?")
		if err := player.Err(); err != nil {
			t.Fatal(err)
		}
		if want := "The environment is in " + cli.Work + "/env.txt."; result.Result != want {
			t.Errorf("got %q, want %q", result.Result, want)
		}
		if _, err := os.Stat(filepath.Join(cli.Work, "env.txt")); err != nil {
			t.Errorf("the tool did not run here: %v", err)
		}
		if player.Wire() != gateway.WireBedrock {
			t.Errorf("got wire %s", player.Wire().Name)
		}

		result = ask(t, cli, serve(t, player), "Something else?")
		if !result.IsError || !strings.Contains(result.Result, "is not in the recording") || player.Err() == nil {
			t.Errorf("another prompt: got %q, error %v; want a run that ends with the reason", result.Result, player.Err())
		}
	})
}
