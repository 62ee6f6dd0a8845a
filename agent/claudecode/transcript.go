// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
)

// transcribe has tell given every line of the conversations of CLIs that are started with the options. It
// comes last: it goes around the spawner.
//
// The lines are taken where nothing can be lost: from what the CLI is told and what it says, as bytes, with
// the copies of its files that it says there, and when it has ended from the files themselves. A turn that
// is interrupted, a reader who leaves and a CLI that is killed make no difference to that.
func transcribe(o *claude.Options, tell func(agent.TranscriptLine)) {
	if tell == nil {
		return
	}
	inner := o.Spawner
	if inner == nil {
		inner = &claude.HostSpawner{User: o.User}
	}
	o.Spawner = claude.SpawnerFunc(func(ctx context.Context, cmd claude.Command) (claude.Process, error) {
		s := newScribe(tell)
		s.files = newTranscriptFiles(configDir(cmd.Env))
		if s.mirrored = !slices.Contains(cmd.Args, "--no-session-persistence"); s.mirrored && !slices.Contains(cmd.Args, "--session-mirror") {
			cmd.Args = append(slices.Clone(cmd.Args), "--session-mirror")
		}
		process, err := inner.Spawn(ctx, cmd)
		if err != nil {
			s.files.close()
			return nil, err
		}
		return s.listen(process), nil
	})
}

// configDir is where a CLI with this environment has its files.
func configDir(env []string) string {
	value := func(name string) string {
		for _, entry := range slices.Backward(env) {
			if v, ok := strings.CutPrefix(entry, name+"="); ok {
				return v
			}
		}
		return ""
	}
	if dir := value("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	if home := value("HOME"); home != "" {
		return filepath.Join(home, ".claude")
	}
	return ""
}

// An overheard is a process whose conversation a scribe writes down.
type overheard struct {
	claude.Process
	stdin  io.WriteCloser
	stdout io.Reader
	ended  func()
}

func (s *scribe) listen(p claude.Process) *overheard {
	said, told := &lineCutter{each: s.hear}, &lineCutter{each: s.prompted}
	return &overheard{
		Process: p,
		stdin:   &teeWriter{p.Stdin(), told},
		stdout:  io.TeeReader(p.Stdout(), said),
		ended: sync.OnceFunc(func() {
			said.end()
			s.end()
		}),
	}
}

func (o *overheard) Stdin() io.WriteCloser { return o.stdin }
func (o *overheard) Stdout() io.Reader     { return o.stdout }

// Wait returns when the files were read, too: they may be removed then.
func (o *overheard) Wait() claude.ExitStatus {
	status := o.Process.Wait()
	o.ended()
	return status
}

type teeWriter struct {
	io.WriteCloser
	copy io.Writer
}

// Write copies first, so that the prompt is known when the answer comes.
func (w *teeWriter) Write(b []byte) (int, error) {
	_, _ = w.copy.Write(b)
	return w.WriteCloser.Write(b)
}

// maxHeard is the longest line that is listened to.
const maxHeard = 256 << 20

// A lineCutter calls each with the lines that are written to it. Only a line feed ends a line.
type lineCutter struct {
	each func(line []byte)

	mu   sync.Mutex
	rest []byte // of a line whose end has not come
	skip bool   // that line is too long
}

// Write implements [io.Writer] and never fails.
func (c *lineCutter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(b)
	for {
		line, after, ended := bytes.Cut(b, []byte("\n"))
		if !ended {
			c.keep(line)
			return n, nil
		}
		if len(c.rest) > 0 || c.skip {
			c.keep(line)
			line = c.rest
		}
		if !c.skip {
			c.each(bytes.TrimSuffix(line, []byte("\r")))
		}
		c.rest, c.skip = nil, false
		b = after
	}
}

func (c *lineCutter) keep(part []byte) {
	if c.skip = c.skip || len(c.rest)+len(part) > maxHeard; c.skip {
		c.rest = nil
		return
	}
	c.rest = append(c.rest, part...)
}

// end takes what stands after the last line feed, if it is whole.
func (c *lineCutter) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if json.Valid(c.rest) {
		c.each(c.rest)
	}
	c.rest = nil
}
