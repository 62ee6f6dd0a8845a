// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/prompt"
)

// The variables that make this test program one that writes overrides.
const (
	writerFolder = "OVERRIDES_TEST_FOLDER"
	writerPrefix = "OVERRIDES_TEST_PREFIX"
	writerFirst  = "OVERRIDES_TEST_FIRST"
)

// writerSections is how many sections each writer has of its own.
const writerSections = 110

func writerTemplate(t testing.TB) *prompt.Prompt[prompt.Text] {
	t.Helper()
	sections := []*prompt.Section{prompt.Markdown("big", "Big", "Small.")}
	for _, prefix := range []string{"a", "b"} {
		for i := range writerSections {
			sections = append(sections, prompt.Markdown(prefix+strconv.Itoa(i), "Title", "Text."))
		}
	}
	return mustBind(t, sections)
}

// bigText is a text of many lines that are all the same, so that half a text can be recognized.
func bigText(version int) string {
	return strings.TrimSuffix(strings.Repeat(fmt.Sprintf("version %d\n", version), 3000), "\n")
}

// TestWriter_Process does nothing but in a process that another test has started: with a prefix it
// sets the text of each of its sections, else it sets one big text again and again until it is killed.
// It prints each number when it is done.
func TestWriter_Process(t *testing.T) {
	dir := os.Getenv(writerFolder)
	if dir == "" {
		return
	}
	f := mustFile(t, dir, writerTemplate(t), "")
	if prefix := os.Getenv(writerPrefix); prefix != "" {
		for i := range writerSections {
			must(t, f.SetText(t.Context(), prefix+strconv.Itoa(i), fmt.Sprint("set by ", prefix, i)))
		}
		return
	}
	first, err := strconv.Atoi(os.Getenv(writerFirst))
	must(t, err)
	for version := first; ; version++ {
		must(t, f.SetText(t.Context(), "big", bigText(version)))
		fmt.Println(version)
	}
}

func writerProcess(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriter_Process$")
	cmd.Env = append(env, "TMPDIR="+t.TempDir()) // one that is killed leaves its folder there
	return cmd
}

func TestFile_TwoProcessesLoseNoChange(t *testing.T) {
	dir := t.TempDir()
	f := mustFile(t, dir, writerTemplate(t), "")
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() { resolveUntil(t, f, stop) })
	for _, prefix := range []string{"a", "b"} {
		cmd := writerProcess(t, writerFolder+"="+dir, writerPrefix+"="+prefix)
		writers.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("writer %s: %v\n%s", prefix, err, out)
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	o, stale := mustResolve(t, f)
	for _, prefix := range []string{"a", "b"} {
		for i := range writerSections {
			name := prefix + strconv.Itoa(i)
			if text := o.Sections[name].Text; text == nil || *text != "set by "+name {
				t.Errorf("the text of %s is lost: %v", name, o.Sections[name])
			}
		}
	}
	if len(stale) > 0 {
		t.Errorf("got stale %v", stale)
	}
}

// resolveUntil reads the file again and again, which must always be a whole one.
func resolveUntil(t *testing.T, f *File, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond): // leaves the processor to the writers
		}
		if _, _, err := f.Resolve(); err != nil {
			t.Errorf("a reader saw: %v", err)
			return
		}
	}
}

func TestFile_KilledWriterLeavesAValidFile(t *testing.T) {
	dir := t.TempDir()
	f := mustFile(t, dir, writerTemplate(t), "")
	last := 0
	for range testkit.Size(8, 200) {
		confirmed := killWriter(t, dir, last+1)
		o, _ := mustResolve(t, f)
		text := ""
		if o.Sections["big"].Text != nil {
			text = *o.Sections["big"].Text
		}
		line, _, _ := strings.Cut(text, "\n")
		version, _ := strconv.Atoi(strings.TrimPrefix(line, "version "))
		if version != max(last, confirmed) && version != max(last, confirmed)+1 {
			t.Fatalf("the file has version %d, but %d was confirmed", version, confirmed)
		}
		if version > 0 && text != bigText(version) {
			t.Fatalf("version %d is not whole: %d bytes", version, len(text))
		}
		must(t, f.SetText(t.Context(), "a0", fmt.Sprint(version))) // the lock is free
		last = version
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(f.Path()), ".*"))
	if len(left) > 0 || err != nil {
		t.Errorf("after a change there are still %v, %v", left, err)
	}
}

// killWriter lets a process write for a moment, kills it, and returns the last version that it
// confirmed.
func killWriter(t *testing.T, dir string, first int) (confirmed int) {
	t.Helper()
	cmd := writerProcess(t, writerFolder+"="+dir, writerFirst+"="+strconv.Itoa(first))
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	stdout := bufio.NewReader(out)
	for line := range 1 + rand.IntN(4) {
		text, err := stdout.ReadString('\n')
		must(t, err)
		if confirmed, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
			rest, _ := io.ReadAll(stdout)
			t.Fatalf("line %d: %s%s", line, text, rest)
		}
	}
	time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond) // so that each kill finds another moment
	must(t, cmd.Process.Kill())
	rest, _ := io.ReadAll(stdout)
	for text := range strings.Lines(string(rest)) {
		if version, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && strings.HasSuffix(text, "\n") {
			confirmed = version
		}
	}
	_ = cmd.Wait()
	return confirmed
}
