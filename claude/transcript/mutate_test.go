// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/transcript"
)

func TestRename_AppendsTheTitle(t *testing.T) {
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": userLine(id1, "x")})
	opts := transcript.Options{Dir: dir}
	if err := transcript.Rename(t.Context(), id1, "  A <b> title \n", opts); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "projects", "p", id1+".jsonl")
	want := userLine(id1, "x") + `{"type":"custom-title","customTitle":"A <b> title","sessionId":"` + id1 + `"}` + "\n"
	if got := read(t, file); got != want {
		t.Errorf("file = %q\nwant %q", got, want)
	}
	if got, err := transcript.Get(t.Context(), id1, opts); err != nil || got.Title != "A <b> title" {
		t.Errorf("Get = %+v, %v", got, err)
	}
	if err := transcript.Rename(t.Context(), id1, " \t", opts); !errors.Is(err, transcript.ErrEmptyText) {
		t.Errorf("Rename to nothing = %v, want ErrEmptyText", err)
	}
}

func TestRename_AfterATornLine(t *testing.T) {
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": userLine(id1, "x") + `{"type":"assist`})
	opts := transcript.Options{Dir: dir}
	if err := transcript.Rename(t.Context(), id1, "T", opts); err != nil {
		t.Fatal(err)
	}
	if got, err := transcript.Get(t.Context(), id1, opts); err != nil || got.Title != "T" {
		t.Errorf("Get = %+v, %v, want the title on a line of its own", got, err)
	}
}

func TestTag_Cleaned(t *testing.T) {
	tests := []struct{ name, tag, want string }{
		{"plain", "red", "red"},
		{"surrounding space", "  red one ", "red one"},
		{"zero width and direction marks", "r\u200be\u202ed\ufeff", "red"},
		{"controls", "re\x00d\x1b\n", "red"},
		{"private use and unassigned", "red\ue000\U000F0000\u0378", "red"},
		{"invalid text", "re\xffd", "red"},
		{"other scripts", "赤 ключ", "赤 ключ"},
		{"taken away", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": userLine(id1, "x") + `{"type":"tag","tag":"old"}` + "\n"})
			opts := transcript.Options{Dir: dir}
			if err := transcript.Tag(t.Context(), id1, tt.tag, opts); err != nil {
				t.Fatal(err)
			}
			if got, err := transcript.Get(t.Context(), id1, opts); err != nil || got.Tag != tt.want {
				t.Errorf("tag = %q, %v, want %q", got.Tag, err, tt.want)
			}
			lines := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "projects", "p", id1+".jsonl"))), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, `{"type":"tag",`) {
				t.Errorf("line = %s, want type first", last)
			}
		})
	}
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": userLine(id1, "x")})
	if err := transcript.Tag(t.Context(), id1, "\u200b\u202e", transcript.Options{Dir: dir}); !errors.Is(err, transcript.ErrEmptyText) {
		t.Errorf("Tag of invisible characters = %v, want ErrEmptyText", err)
	}
}

func TestDelete_RemovesAllFilesOfTheSession(t *testing.T) {
	dir := configDir(t, map[string]string{
		"p/" + id1 + ".jsonl":                   userLine(id1, "x"),
		"p/" + id1 + "/subagents/agent-a.jsonl": userLine(id1, "x"),
		"p/" + id1 + "/tool-results/r.txt":      "x",
		"p/" + id2 + ".jsonl":                   userLine(id2, "y"),
	})
	if err := transcript.Delete(t.Context(), id1, transcript.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "projects", "p"))
	if err != nil || len(left) != 1 || left[0].Name() != id2+".jsonl" {
		t.Errorf("left = %v, %v, want only the other session", left, err)
	}
}

func TestArchive_CanBeUndone(t *testing.T) {
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": userLine(id1, "x")})
	opts := transcript.Options{Dir: dir}
	archived := func() bool {
		t.Helper()
		got, err := transcript.Get(t.Context(), id1, opts)
		if err != nil {
			t.Fatal(err)
		}
		return got.Archived
	}
	if archived() {
		t.Error("archived before Archive")
	}
	if err := transcript.Archive(t.Context(), id1, opts); err != nil || !archived() {
		t.Errorf("Archive = %v, archived %v", err, archived())
	}
	if err := transcript.Rename(t.Context(), id1, "still away", opts); err != nil || !archived() {
		t.Errorf("Rename = %v ended the archiving", err)
	}
	if err := transcript.Unarchive(t.Context(), id1, opts); err != nil || archived() {
		t.Errorf("Unarchive = %v, archived %v", err, archived())
	}
	if err := transcript.Unarchive(t.Context(), id1, opts); err != nil {
		t.Errorf("second Unarchive = %v", err)
	}
	if err := transcript.Archive(t.Context(), id1, opts); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "projects", "p", id1+".jsonl")
	later := strings.Replace(userLine(id1, "again"), "2026-01-01", "2999-01-01", 1)
	write(t, file, read(t, file)+later)
	if archived() {
		t.Error("a later prompt did not end the archiving")
	}
	mark := filepath.Join(dir, "projects", "p", id1, "archived.json")
	write(t, mark, strings.Repeat("[", 100000))
	if archived() {
		t.Error("a broken mark counts")
	}
}
