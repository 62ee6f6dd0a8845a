// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/internal/safetext"
	_ "github.com/drover-agents/drover/internal/testkit"
)

func TestSpread_KeepsTheNewTextWhole(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pieces []string
		now    string
		want   []string
	}{
		{name: "in the first", pieces: []string{"ab", "cd"}, now: "xb" + "cd", want: []string{"xb", "cd"}},
		{name: "over two", pieces: []string{"ab", "cd", "e"}, now: "aXe", want: []string{"aX", "", "e"}},
		{name: "at the end", pieces: []string{"ab", "cd"}, now: "abcdX", want: []string{"ab", "cdX"}},
		{name: "longer by itself", pieces: []string{"aa", "aa"}, now: "aaaaaa", want: []string{"aa", "aaaa"}},
		{name: "gone", pieces: []string{"ab", "cd"}, now: "", want: []string{"", ""}},
		{name: "whole characters", pieces: []string{"ä", "ö"}, now: "äü", want: []string{"ä", "ü"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := spread(tc.pieces, tc.now); strings.Join(got, "|") != strings.Join(tc.want, "|") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.StringMatching(`[abä]{0,3}`), 1, 5).Draw(t, "pieces")
		now := rapid.StringMatching(`[abä]{0,8}`).Draw(t, "now")
		got := spread(pieces, now)
		if len(got) != len(pieces) || strings.Join(got, "") != now {
			t.Fatalf("got %q, want %d pieces of %q", got, len(pieces), now)
		}
	})
}

// frames is a Bedrock stream of the given events, cut into chunks of a few bytes.
func frames(size int, events ...string) (chunks []chunk) {
	var whole []byte
	for _, e := range events {
		payload, _ := json.Marshal(map[string]any{"bytes": []byte(e), "p": "abc"})
		whole = append(whole, newFrame([]byte("\x0b:event-type\x07\x00\x05chunk"), payload)...)
	}
	for len(whole) > 0 {
		n := min(size, len(whole))
		chunks = append(chunks, newChunk(int64(len(chunks)), whole[:n:n]))
		whole = whole[n:]
	}
	return chunks
}

func textEvent(text string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + encodeJSON(text) + `}}`
}

// In a Bedrock stream the text is inside of base64, where no expression would find it.
func TestRecorder_MaskedFramesStayFrames(t *testing.T) {
	mask := masker{safetext.NewRedactor("planted-secret"), nil}
	in := frames(7, `{"type":"message_start"}`, textEvent("it is sk-an"), textEvent("t-abcdefghijkl, or plan"), textEvent("ted-secret."))
	out := rewriteAnswer(WireBedrock, eventStreamType, in, mask.rewrite)
	var text strings.Builder
	var whole []byte
	for _, c := range out {
		whole = append(whole, c.bytes()...)
	}
	for len(whole) > 0 {
		f, _ := cutFrame(whole)
		if f == nil {
			t.Fatalf("no frame at %q", whole)
		}
		data, _ := openFrame(f)
		if p, ok := messagesPiece(data); ok {
			text.WriteString(p.Text)
		}
		whole = whole[len(f):]
	}
	if got, want := text.String(), "it is [redacted], or [redacted]."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	plain := frames(7, textEvent("nothing"))
	if got := rewriteAnswer(WireBedrock, eventStreamType, plain, mask.rewrite); len(got) != len(plain) {
		t.Error("chunks without a secret must stay as they are")
	}
}

func TestRecorder_ErrorFrameIsMasked(t *testing.T) {
	whole := newFrame(nil, []byte(`{"message":"bad key sk-ant-abcdefghijkl"}`))
	out := rewriteAnswer(WireBedrock, eventStreamType, []chunk{newChunk(0, whole)}, masker{}.rewrite)
	got := out[0].bytes()
	if f, _ := cutFrame(got); bytes.Contains(got, []byte("sk-ant")) || len(f) != len(got) {
		t.Errorf("got %q", got)
	}
}

// Masking runs on a goroutine of its own, where a panic would end the program.
func TestRecorder_MalformedEventIsMasked(t *testing.T) {
	const secret = "sk-ant-abcdefghijkl"
	for name, data := range map[string]string{
		"other spelling":      `{"type":"content_block_delta","index":0,"DELTA":{"text":"` + secret + `"}}`,
		"two spellings":       `{"TYPE":"content_block_delta","type":"content_block_delta","delta":null,"Delta":{"text":"` + secret + `"}}`,
		"a delta that is not": `{"type":"content_block_delta","index":0,"delta":["` + secret + `"]}`,
		"a text that is not":  `{"type":"content_block_delta","index":0,"delta":{"text":["` + secret + `"]}}`,
		"an odd index":        `{"type":"content_block_delta","index":"x","delta":{"text":"` + secret + `"}}`,
		"a name twice":        `{"type":"ping","a":"` + secret + `","a":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			for kind, in := range map[string][]chunk{
				"text/event-stream": {newChunk(0, []byte("data: "+data+"\n\n"))},
				eventStreamType:     frames(1000, data),
			} {
				wire := map[bool]*Wire{true: WireBedrock, false: WireAnthropic}[kind == eventStreamType]
				for _, e := range rewriteAnswer(wire, kind, in, masker{}.rewrite) {
					if kind == eventStreamType {
						data, _ := openFrame(e.bytes())
						e.Text = string(data)
					}
					if strings.Contains(e.Text, secret) {
						t.Errorf("%s: got %s", kind, e.Text)
					}
				}
			}
		})
	}
}

func TestSplitAnswer_EventsOverAnyChunks(t *testing.T) {
	const stream = "data: 1\n\ndata: 2\r\n\r\nevent: x\ndata: 3\n\n: rest"
	want := []string{"data: 1\n\n", "data: 2\r\n\r\n", "event: x\ndata: 3\n\n", ": rest"}
	for size := 1; size <= len(stream); size++ {
		var chunks []chunk
		for rest := stream; rest != ""; rest = rest[min(size, len(rest)):] {
			chunks = append(chunks, newChunk(0, []byte(rest[:min(size, len(rest))])))
		}
		var got []string
		for _, e := range splitAnswer(WireAnthropic.Stream, chunks) {
			got = append(got, string(e.raw))
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("in pieces of %d: got %q, want %q", size, got, want)
		}
	}
}

func TestMasker_IsIdempotent(t *testing.T) {
	mask := masker{safetext.NewRedactor("planted-secret"), nil}
	for _, body := range []string{
		`{"a":"planted-secret","password":"hunter2222","k":["AKIAABCDEFGHIJKLMNOP"],"planted-secret":1}`,
		`{"MAX_TOKEN":12345678,"api_key":"abcdefgh","text":"export API_KEY=abcdefgh\n-----BEGIN PRIVATE KEY-----\nabc"}`,
	} {
		once := mask.rewrite(body, true)
		if twice := mask.rewrite(once, true); once != twice || !json.Valid([]byte(once)) {
			t.Errorf("got %s, then %s", once, twice)
		}
		for _, secret := range []string{"planted", "hunter", "AKIA", "abcdefgh", "abc"} {
			if strings.Contains(once, secret) {
				t.Errorf("%s is left in %s", secret, once)
			}
		}
	}
}

// Whatever a file holds, it is read or refused; what is read can be asked for.
func FuzzReadRecording(f *testing.F) {
	golden, err := os.ReadFile("testdata/recording.v1.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add(golden[:len(golden)-10])
	f.Add([]byte(`{"drover_recording":1,"wire":"bedrock","folders":{"dir":"a","home":"/"}}` + "\n" +
		`{"seq":1,"request":{"method":"POST","path":"/a","body":{"text":"agentId: aaaaaa"}},"response":{"status":200,"headers":{"Content-Type":"application/vnd.amazon.eventstream"},"chunks":[{"ms":1,"base64":"AAAA"}]}}` + "\n"))
	f.Add([]byte(`{"drover_recording":1,"wire":"anthropic"}` + "\n" + `{"seq":1,"request":{"method":"GET"},"response":{"error":"x"}}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		stored, err := readRecording(bytes.NewReader(data), nil)
		if err != nil {
			return
		}
		p, err := newPlayer("fuzz", stored, ReplayOptions{Folders: Folders{Dir: "/d", Home: "/h"}})
		if err != nil {
			t.Fatalf("read, but cannot be played: %v", err)
		}
		for _, s := range stored.exchanges {
			e, err := s.parse()
			if err != nil {
				t.Fatal(err)
			}
			then := normalise(e.Request, stored.header.Folders, p.mask)
			if _, ok := p.takeLocked(then.key, e.Request.Method); !ok {
				t.Fatalf("exchange %d does not answer its own request", s.seq)
			}
			rewriteAnswer(stored.wire, e.Response.Headers["Content-Type"], e.Response.Chunks, newRenamer(stored.header.Folders, p.opts.Folders, nil, nil).rewrite)
			rewriteAnswer(stored.wire, e.Response.Headers["Content-Type"], e.Response.Chunks, p.mask.rewrite)
		}
	})
}
