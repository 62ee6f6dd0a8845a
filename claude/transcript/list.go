// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// window is how much of a session's start and end a listing reads.
const window = 64 << 10

// An Info describes a session without its messages.
type Info struct {
	SessionID string
	// Summary is the best short description: the title, else the last prompt, else a summary that
	// the CLI wrote, else the first prompt.
	Summary      string
	LastModified time.Time
	// CreatedAt is the first timestamp in the session's first 64 KiB, or zero.
	CreatedAt time.Time
	Size      int64
	// Title was given by a person ([Rename]), else by the model.
	Title string
	// FirstPrompt has at most 200 characters.
	FirstPrompt string
	GitBranch   string
	CWD         string
	Tag         string
	// Entrypoint is the program that ran the session: "cli", "sdk-go" and others.
	Entrypoint string
	// Archived is set by [Archive] and ends with the next prompt.
	Archived bool
	// ProjectKey and Path are the location of the session: Path is empty for one in a store.
	ProjectKey string
	Path       string
}

// ListOptions choose sessions. The zero value lists all of the current user.
type ListOptions struct {
	Options
	// Limit is the greatest number of sessions returned. Zero means all.
	Limit int
	// Offset is the number of sessions to skip, newest first.
	Offset int
	// NoProgrammatic leaves out sessions that an SDK or `claude -p` made.
	NoProgrammatic bool
	// NoArchived leaves out archived sessions.
	NoArchived bool
}

// List returns the sessions on disk, the most recently changed first. A config directory without sessions is an empty list.
// Files that are not sessions, cannot be read, belong to a subagent or have no description are left out.
func List(ctx context.Context, opts ListOptions) ([]Info, error) {
	p, keys, err := opts.openKeys(ctx)
	if p == nil {
		return nil, err
	}
	defer p.Close()
	found := p.sessions(keys, "")
	slices.SortStableFunc(found, func(a, b session) int { return b.modified.Compare(a.modified) })
	return p.infos(ctx, found, opts)
}

// infos reads the sessions in order and stops as soon as the page is full.
func (p *projects) infos(ctx context.Context, found []session, opts ListOptions) ([]Info, error) {
	var infos []Info
	seen := make(map[string]bool)
	skip := max(opts.Offset, 0)
	for _, s := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if opts.Limit > 0 && len(infos) == opts.Limit {
			break
		}
		info, ok := p.info(s)
		if !ok || seen[s.id] || opts.leavesOut(info) {
			continue
		}
		seen[s.id] = true
		if skip > 0 {
			skip--
			continue
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func (o ListOptions) leavesOut(info Info) bool {
	return o.NoProgrammatic && strings.HasPrefix(info.Entrypoint, "sdk-") || o.NoArchived && info.Archived
}

// Get describes one session, or fails with [ErrNotFound] or [ErrBadID].
func Get(ctx context.Context, id string, opts Options) (Info, error) {
	p, s, err := open(ctx, id, opts)
	if err != nil {
		return Info{}, err
	}
	defer p.Close()
	info, ok := p.info(s)
	if !ok {
		return Info{}, fmt.Errorf("%w: %s is not a conversation", ErrNotFound, s.file())
	}
	return info, nil
}

// A session is the location of a session below the projects directory.
type session struct {
	key, id  string
	modified time.Time
	size     int64
}

func (s session) file() string { return path.Join(s.key, s.id+".jsonl") }
func (s session) dir() string  { return path.Join(s.key, s.id) }

// sessions returns the session files in the named project directories; with an id only that one.
func (p *projects) sessions(keys []string, id string) []session {
	var found []session
	for _, key := range keys {
		ids := []string{id}
		if id == "" {
			ids = p.idsIn(key)
		}
		for _, id := range ids {
			s := session{key: key, id: id}
			st, err := p.Stat(s.file())
			if err == nil && st.Mode().IsRegular() && st.Size() > 0 {
				s.modified, s.size = st.ModTime(), st.Size()
				found = append(found, s)
			}
		}
	}
	return found
}

func (p *projects) idsIn(key string) []string {
	entries, err := p.readDir(key)
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok && checkID(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// open finds a session by id. The caller closes the projects.
func open(ctx context.Context, id string, opts Options) (*projects, session, error) {
	if err := checkID(id); err != nil {
		return nil, session{}, err
	}
	p, err := openProjects(opts.Dir)
	if err != nil {
		return nil, session{}, err
	}
	keys, err := opts.projectKeys(ctx, p)
	found := p.sessions(keys, id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: session %s below %s", ErrNotFound, id, p.path)
	}
	if err != nil {
		p.Close()
		return nil, session{}, err
	}
	return p, slices.MaxFunc(found, func(a, b session) int { return a.modified.Compare(b.modified) }), nil
}

// info reads the two ends of a session. It reports false for a file that a listing leaves out.
func (p *projects) info(s session) (Info, bool) {
	f, err := p.Open(s.file())
	if err != nil {
		return Info{}, false
	}
	defer f.Close()
	sum := Summary{SessionID: s.id, Modified: s.modified}
	if err := sum.foldEnds(f, s.size); err != nil {
		return Info{}, false
	}
	info := sum.Info()
	info.Size, info.ProjectKey = s.size, s.key
	info.Path = filepath.Join(p.path, filepath.FromSlash(s.file()))
	info.Archived = p.archived(s, sum.PromptedAt)
	return info, info.Summary != "" && !sum.IsSidechain
}

// endBuffers lends the memory that the ends of a file are read into.
var endBuffers = sync.Pool{New: func() any { return new([2 * window]byte) }}

// foldEnds folds the first and the last window of a file: fields that are set once come from the first
// alone, fields of which the last value counts come from both.
func (s *Summary) foldEnds(f io.ReaderAt, size int64) error {
	buffer := endBuffers.Get().(*[2 * window]byte)
	defer endBuffers.Put(buffer)
	if size <= 2*window {
		all, err := fill(f, 0, buffer[:size])
		eachLine(all, s.fold)
		return err
	}
	head, err := fill(f, 0, buffer[:window])
	if err != nil {
		return err
	}
	eachLine(head, s.fold)
	tail, err := fill(f, size-window, buffer[window:])
	_, tail, _ = bytes.Cut(tail, []byte("\n"))                           // the line that the window starts in
	eachLine(tail, func(line []byte) { s.foldLast(readFoldLine(line)) }) // lines before it were passed over
	return err
}

func eachLine(data []byte, do func(line []byte)) {
	for _, line := range splitLines(data) {
		do(line)
	}
}

func readAt(f io.ReaderAt, from, n int64) ([]byte, error) { return fill(f, from, make([]byte, n)) }

// fill reads b from a position in f and returns the part that could be read.
func fill(f io.ReaderAt, from int64, b []byte) ([]byte, error) {
	got, err := f.ReadAt(b, from)
	if errors.Is(err, io.EOF) {
		err = nil // the file shrank since it was looked at
	}
	return b[:got], err
}

// archiveMark is the content of a session's archived.json.
type archiveMark struct {
	Archived bool      `json:"archived"`
	At       time.Time `json:"at"`
}

func (p *projects) archived(s session, promptedAt time.Time) bool {
	f, err := p.Open(path.Join(s.dir(), "archived.json"))
	if err != nil {
		return false
	}
	defer f.Close()
	var mark archiveMark
	err = json.NewDecoder(io.LimitReader(f, 4096)).Decode(&mark)
	return err == nil && mark.Archived && !promptedAt.After(mark.At)
}
