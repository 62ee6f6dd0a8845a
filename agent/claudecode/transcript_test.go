// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	_ "github.com/drover-agents/drover/internal/testkit"
)

const testSession = "6b1f6f0e-0000-4000-8000-000000000001"

// newTestRecorder writes the lines that it reports into a list.
func newTestRecorder(mirrored bool) (*transcriptRecorder, *[]agent.TranscriptLine) {
	reported := &[]agent.TranscriptLine{}
	r := newTranscriptRecorder(func(l agent.TranscriptLine) { *reported = append(*reported, l) })
	r.mirrored = mirrored
	r.now = func() time.Time { return time.Unix(1, 0) }
	return r, reported
}

// feed gives a recorder a line of the CLI as the client does.
func feed(r *transcriptRecorder, raw string) {
	line, err := claude.ParseLine([]byte(raw))
	if err != nil || line.Type() != "transcript_mirror" {
		r.Message(line)
		return
	}
	var frame struct {
		FilePath string
		Entries  []json.RawMessage
	}
	if json.Unmarshal(line.Raw(), &frame) == nil {
		r.Copies(frame.FilePath, frame.Entries)
	}
}

func streamLine(kind, id string) string {
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"session_id":%q,"from":"stream"}`, kind, id, testSession)
}

func filedLine(kind, id string) string {
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"sessionId":%q,"from":"file"}`, kind, id, testSession)
}

func mirrorFrame(lines ...string) string {
	return fmt.Sprintf(`{"type":"transcript_mirror","filePath":"/home/.claude/projects/-work/%s.jsonl","entries":[%s]}`, testSession, strings.Join(lines, ","))
}

// names are the ids of lines, and where each was taken from.
func names(lines []agent.TranscriptLine) (all []string) {
	for _, l := range lines {
		f := objectOf(l.Raw)
		all = append(all, f.text("uuid")+" "+f.text("from"))
	}
	return all
}

func TestTranscript_LineHasItsPositionInTheFile(t *testing.T) {
	for name, test := range map[string]struct {
		unmirrored bool
		input      []string
		ended      bool
		want       []string
	}{
		"the file's version is reported, and the stream's lines behind it": {
			input: []string{streamLine("user", "u1"), streamLine("system", "s1"), streamLine("assistant", "a1"), streamLine("system", "s2"), mirrorFrame(filedLine("user", "u1"), filedLine("attachment", "x1"), filedLine("assistant", "a1"))},
			want:  []string{"u1 file", "s1 stream", "x1 file", "a1 file", "s2 stream"},
		},
		"a copy that comes first is reported once": {
			input: []string{mirrorFrame(filedLine("user", "u1")), streamLine("user", "u1"), streamLine("system", "s1")},
			want:  []string{"u1 file", "s1 stream"},
		},
		"a line without a copy by the result is reported from the stream": {
			input: []string{streamLine("assistant", "a1"), streamLine("result", "r1"), mirrorFrame(filedLine("assistant", "a1"), filedLine("last-prompt", ""))},
			want:  []string{"a1 stream", "r1 stream", " file"},
		},
		"a line without a copy by the end is reported from the stream": {
			input: []string{streamLine("user", "u1"), streamLine("assistant", "a1"), mirrorFrame(filedLine("user", "u1"))}, ended: true,
			want: []string{"u1 file", "a1 stream"},
		},
		"the file goes on without a line": {
			input: []string{streamLine("user", "u1"), streamLine("system", "s1"), streamLine("user", "u2"), mirrorFrame(filedLine("user", "u2")), streamLine("result", "r1")},
			want:  []string{"s1 stream", "u2 file", "u1 stream", "r1 stream"},
		},
		"a line that is sent twice is reported once": {
			input: []string{streamLine("system", "s1"), streamLine("system", "s1")},
			want:  []string{"s1 stream"},
		},
		"a conversation without files is reported at once": {
			unmirrored: true,
			input:      []string{streamLine("user", "u1"), streamLine("assistant", "a1")},
			want:       []string{"u1 stream", "a1 stream"},
		},
		"a line that is no part of the conversation is not reported": {
			input: []string{`{"type":"stream_event","uuid":"p"}`, `{"uuid":"p","type":"stream_event"}`, `{"type":"system","subtype":"thinking_tokens"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, reported := newTestRecorder(!test.unmirrored)
			for _, line := range test.input {
				feed(r, line)
			}
			if test.ended {
				r.End()
			}
			if diff := cmp.Diff(test.want, names(*reported)); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

// Subagents of old CLIs do not send their id; the message about their beginning has it.
func TestTranscript_SubagentIsIdentifiedByItsCall(t *testing.T) {
	r, reported := newTestRecorder(false)
	feed(r, `{"type":"system","subtype":"task_started","task_id":"a7","tool_use_id":"call1"}`)
	feed(r, `{"type":"assistant","uuid":"1","parent_tool_use_id":"call1"}`)
	feed(r, `{"type":"assistant","uuid":"2","parent_tool_use_id":"call2","agent_id":"a8"}`)
	feed(r, `{"type":"assistant","uuid":"3","parent_tool_use_id":"call3"}`)
	var got []string
	for _, l := range *reported {
		got = append(got, l.Source)
	}
	if diff := cmp.Diff([]string{"main", "subagent:a7", "subagent:a8", "subagent:call3"}, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// However the stream, its copies and the files come together, every line is reported once, the lines of the
// file in its order, and no line of the stream is overtaken by one that was sent after it.
func TestTranscript_NoLineIsLostOrRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "transcript")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		r, reported := newTestRecorder(true)
		r.files = newTranscriptFiles(dir)
		var file, stream []string // what there is of both, in order
		for i := range rapid.IntRange(1, 12).Draw(t, "lines") {
			id := fmt.Sprintf("id%d", i)
			switch rapid.SampledFrom([]string{"both", "both", "stream", "file", "nameless"}).Draw(t, "where") {
			case "both":
				stream, file = append(stream, streamLine("assistant", id)), append(file, filedLine("assistant", id))
			case "stream":
				stream = append(stream, streamLine("system", id))
			case "file":
				file = append(file, filedLine("attachment", id))
			case "nameless":
				file = append(file, filedLine("mode", "")) // the same line again and again
			}
		}
		lost := rapid.IntRange(0, len(file)).Draw(t, "never mirrored")
		torn := rapid.IntRange(0, len(file)).Draw(t, "never written")
		mirrored, unsent := file[:len(file)-lost], stream
		for len(unsent)+len(mirrored) > 0 {
			ready := slices.IndexFunc(mirrored, func(line string) bool { return willBeSent(line, unsent) })
			if ready < 0 {
				ready = len(mirrored)
			}
			if ready == 0 || len(unsent) > 0 && rapid.Bool().Draw(t, "send") {
				feed(r, unsent[0])
				unsent = unsent[1:]
				continue
			}
			n := rapid.IntRange(1, ready).Draw(t, "frame")
			feed(r, mirrorFrame(mirrored[:n]...))
			mirrored = mirrored[n:]
		}
		written := file[:len(file)-torn]
		if err := os.MkdirAll(filepath.Join(dir, "projects", "p"), 0o700); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(slices.Concat(written, []string{`{"torn`}), "\n")
		if err := os.WriteFile(filepath.Join(dir, "projects", "p", testSession+".jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.sessions[testSession] = true
		r.End()
		checkReported(t, file[:len(file)-min(lost, torn)], stream, *reported)
	})
}

// willBeSent reports whether a line of the file is still to be sent: the CLI copies it later.
func willBeSent(line string, unsent []string) bool {
	id := objectOf([]byte(line)).text("uuid")
	return id != "" && slices.ContainsFunc(unsent, func(l string) bool { return objectOf([]byte(l)).text("uuid") == id })
}

// checkReported compares the reported lines with those of the file and of the stream.
func checkReported(t *rapid.T, file, stream []string, reported []agent.TranscriptLine) {
	var all []string
	counts := map[string]int{}
	for _, l := range reported {
		all = append(all, string(l.Raw))
		counts[objectOf(l.Raw).text("uuid")]++
	}
	nameless := 0
	for _, id := range idsOf(file) {
		if id == "" {
			nameless++
		}
	}
	for _, id := range append(idsOf(file), idsOf(stream)...) {
		if want := 1; id != "" && counts[id] != want {
			t.Fatalf("%s was reported %d times, want %d", id, counts[id], want)
		}
	}
	if counts[""] != nameless {
		t.Fatalf("%d lines without a name were reported, want %d", counts[""], nameless)
	}
	for name, lines := range map[string][]string{"file": file, "stream": stream} {
		want := idsOf(lines)
		got := slices.DeleteFunc(idsOf(all), func(id string) bool { return !slices.Contains(want, id) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the order of the %s and of what was reported of it (-want +got):\n%s", name, diff)
		}
	}
}

func idsOf(lines []string) []string {
	ids := []string{}
	for _, l := range lines {
		ids = append(ids, objectOf([]byte(l)).text("uuid"))
	}
	return ids
}

func TestTranscript_FilesOfEarlierRunsAreNotRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, "projects", "p", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(testSession+".jsonl", "{\"old\":1}\n")
	write("6b1f6f0e-0000-4000-8000-000000000002.jsonl", "{\"other\":1}\n")
	files := newTranscriptFiles(dir)
	write(testSession+".jsonl", "{\"new\":1}\r\nno json\n{\"new\":2}")
	write(testSession+"/subagents/deep/agent-a1.jsonl", "{\"sub\":1}\n")
	secret := filepath.Join(t.TempDir(), "secret.jsonl")
	if err := os.WriteFile(secret, []byte("{\"secret\":1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "projects", "p", testSession, "subagents", "agent-b.jsonl")); err != nil {
		t.Skip("this system makes no links; run it on another one:", err)
	}
	var got []string
	files.read(map[string]bool{testSession: true, "../p": true, "": true}, func(name string, line []byte) {
		source, session := sourceOfFile(name)
		if session != testSession {
			t.Errorf("%s is of session %q", name, session)
		}
		got = append(got, source+" "+string(line))
	})
	if diff := cmp.Diff([]string{`main {"new":1}`, `main {"new":2}`, `subagent:a1 {"sub":1}`}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// An agent that puts a link in the place of a folder does not have the files of others taken for its own.
func TestTranscript_LinkedFolderIsNotFollowed(t *testing.T) {
	for _, replaced := range []string{".claude", ".claude/projects"} {
		home, elsewhere := t.TempDir(), t.TempDir()
		path := filepath.Join(elsewhere, ".claude", "projects", "p", testSession+".jsonl")
		if err := errors.Join(os.Mkdir(filepath.Join(home, ".claude"), 0o700), os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{\"secret\":1}\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		files := newTranscriptFiles(filepath.Join(home, ".claude"))
		_ = os.Rename(filepath.Join(home, replaced), filepath.Join(home, "moved")) // projects are not there yet
		if err := os.Symlink(filepath.Join(elsewhere, replaced), filepath.Join(home, replaced)); err != nil {
			t.Skip("this system makes no links; run it on another one:", err)
		}
		files.read(map[string]bool{testSession: true}, func(name string, line []byte) {
			t.Errorf("with a link for %s, %s was read: %s", replaced, name, line)
		})
		files.close()
	}
}

func TestTranscript_SourceOfAWindowsPath(t *testing.T) {
	source, session := sourceOfFile(`C:\Users\u\.claude\projects\p\` + testSession + `\subagents\agent-a1.jsonl`)
	if source != "subagent:a1" || session != testSession {
		t.Errorf("source %q, session %q", source, session)
	}
}
