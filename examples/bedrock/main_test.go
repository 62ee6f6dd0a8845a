// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

const planted = "AKIAPLANTEDPLANTED00"

func TestBedrock_SignsOutsideOfTheCell(t *testing.T) {
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("needs a cell: %v", reasons)
	}
	for _, c := range []struct {
		name, model, printed, called string
		mounted                      bool // the files are in a folder of their own, as in a container
	}{
		{
			"as the host is set up", "",
			"eu.anthropic.claude-opus-4-6-v1, claude-opus-4-6 at Anthropic\nIt sells carts.\n", "eu.anthropic.claude-opus-4-6-v1", false,
		},
		{
			"a container, and an id", "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
			"us.anthropic.claude-sonnet-4-5-20250929-v1:0, claude-sonnet-4-5-20250929 at Anthropic\nIt sells carts.\n", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			home, given := t.TempDir(), ""
			files := filepath.Join(home, ".aws")
			if c.mounted {
				files = filepath.Join(t.TempDir(), "mnt", "aws")
				given = files
			}
			write(t, filepath.Join(files, "credentials"), "[default]\naws_access_key_id = "+planted+"\naws_secret_access_key = planted\n")
			model := claudetest.NewModel(t,
				script.Call("Bash", script.Input{"command": "cat ~/.aws/* " + files + "/*; env | grep -c " + planted + "; true"}),
				script.Text("It sells carts."),
			).RequireAllUsed()
			fake := &fakeBedrock{model: model}
			server := httptest.NewServer(fake)
			defer server.Close()
			opts := &claude.Options{CLIPath: cli.Path, Dir: cli.Work, StrictMCP: true}
			host := isolation.Host{Home: home, Environ: func() []string {
				return []string{
					"PATH=" + os.Getenv("PATH"), "CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-1",
					"AWS_EC2_METADATA_DISABLED=true", "ANTHROPIC_BEDROCK_BASE_URL=" + server.URL,
				}
			}}
			var out strings.Builder
			if err := run(t.Context(), &out, opts, host, given, c.model); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.printed, out.String()); diff != "" {
				t.Errorf("bedrock printed (-want +got):\n%s", diff)
			}
			if got, _, _ := model.ToolResult("Bash"); strings.Contains(got, planted) || !strings.Contains(got, "0") {
				t.Errorf("the command saw %q, want nothing of AWS", got)
			}
			for _, call := range fake.calls {
				if call.model != c.called || !strings.Contains(call.authorization, "Credential="+planted+"/") {
					t.Errorf("Bedrock was called for %q with %q, want %q and a signature", call.model, call.authorization, c.called)
				}
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A fakeBedrock has a scripted model answer, and sends the answer as Bedrock does.
type fakeBedrock struct {
	model *claudetest.Model
	mu    sync.Mutex
	calls []call
}

type call struct{ model, authorization string }

func (f *fakeBedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		io.WriteString(w, `{"inferenceProfileSummaries":[]}`)
		return
	}
	id := strings.Split(r.URL.Path, "/")[2] // /model/ID/invoke-with-response-stream
	f.mu.Lock()
	f.calls = append(f.calls, call{id, r.Header.Get("Authorization")})
	f.mu.Unlock()
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		panic(http.ErrAbortHandler)
	}
	body["model"], body["stream"] = id, true
	raw, _ := json.Marshal(body)
	resp, err := http.Post(f.model.BaseURL()+"/v1/messages", "application/json", bytes.NewReader(raw))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			w.Write(frame(data))
		}
	}
}

// frame wraps an event of the Messages API in one of Amazon's event streams.
func frame(event []byte) []byte {
	header := func(name, value string) string {
		return string(rune(len(name))) + name + "\x07" + string(binary.BigEndian.AppendUint16(nil, uint16(len(value)))) + value
	}
	headers := header(":event-type", "chunk") + header(":content-type", "application/json") + header(":message-type", "event")
	payload, _ := json.Marshal(map[string][]byte{"bytes": event})
	f := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	f = binary.BigEndian.AppendUint32(f, uint32(len(headers)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, headers...), payload...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}
