// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
)

// ResumeOptions configure [Materialise]. The zero value copies no settings.
type ResumeOptions struct {
	// HostConfigDir names a config directory whose login, state and settings the CLI is to have. Empty means none: the home
	// directory is not read by default. The refresh token of the login is left out, because using it in the copy would end
	// the original login; plugins and marketplaces are left out, because they are not in the copy.
	HostConfigDir string
	// HostStateFile is the .claude.json that goes with it. Empty means the one in HostConfigDir; for
	// the default config directory the CLI keeps it one level higher.
	HostStateFile string
	// WorkDir is the working directory in which the CLI will run. Empty means the one of the key's project. Name it when it
	// is another one: CLI 2.1.197 finds a session only below the project that it runs in, later ones below any.
	WorkDir string
	// KeepDeferred keeps the marks of tool calls that a hook deferred. A CLI without --await-initialize
	// runs such a call before its host has registered a hook. By default the marks are left out, and the
	// model reads that the call was interrupted.
	KeepDeferred bool
	// TempDir is where the directory is made. Empty means [os.TempDir].
	TempDir string
	// LoadTimeout limits each call of the store. Zero means 60 seconds.
	LoadTimeout time.Duration
}

// A Resumed is a config directory that holds one session, so that the CLI can resume it: run it with
// CLAUDE_CONFIG_DIR set to Dir and --resume=SessionID, and Close after it ended.
//
// A [Mirror] for that CLI gets Dir and, where WorkDir was named, the ProjectKey of Key, so that new
// entries follow the old ones.
type Resumed struct {
	Dir string
	Key Key // in the store

	project string // directory below projects

	close sync.Once
	err   error
}

// Materialise loads a session from store and writes it to a new directory that only its owner can read. The error wraps
// [ErrNotFound] if the store has no such session. When it fails or ctx ends, it removes the directory.
func Materialise(ctx context.Context, store Store, key Key, opts ResumeOptions) (*Resumed, error) {
	key.Subpath = ""
	if err := key.Validate(); err != nil {
		return nil, err
	}
	opts.LoadTimeout = cmp.Or(opts.LoadTimeout, time.Minute)
	dir, err := os.MkdirTemp(opts.TempDir, "drover-resume-*") // MkdirTemp makes it 0700
	if err != nil {
		return nil, fmt.Errorf("transcript: resuming %s: %w", key, err)
	}
	r := &Resumed{Dir: dir, Key: key, project: key.ProjectKey}
	if opts.WorkDir != "" {
		r.project = ProjectKey(opts.WorkDir)
	}
	if err := r.fill(ctx, store, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("transcript: resuming %s: %w", key, err), r.Close())
	}
	return r, nil
}

// Close removes the directory. It retries for a while, since a CLI that is just ending may still
// write. It may be called repeatedly and returns the same result.
func (r *Resumed) Close() error {
	r.close.Do(func() { r.err = removeStubborn(r.Dir) })
	return r.err
}

func removeStubborn(dir string) error {
	var err error
	for pause := 10 * time.Millisecond; pause <= 640*time.Millisecond; pause *= 2 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("transcript: %s could not be removed and may hold a login: %w", dir, err)
}

// ProjectsDir is where the CLI keeps its sessions in r.
func (r *Resumed) ProjectsDir() string { return filepath.Join(r.Dir, "projects") }

func (r *Resumed) fill(ctx context.Context, store Store, opts ResumeOptions) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := load(ctx, store, r.Key, opts.LoadTimeout)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%w: the store has no such session", ErrNotFound)
	}
	// The login is copied after the load, which may take long, so that the copy exists for a short time.
	if err := copyHost(root, opts); err != nil {
		return err
	}
	if !opts.KeepDeferred {
		entries = withoutDeferrals(entries)
	}
	if err := writeLines(root, r.file(r.Key), entries); err != nil {
		return err
	}
	return r.fillSubkeys(ctx, root, store, opts)
}

func (r *Resumed) file(key Key) string {
	key.ProjectKey = r.project
	return path.Join("projects", key.file())
}

// load reads from the store within the limit. It does not wait for a store that ignores its context.
func load(ctx context.Context, store Store, key Key, limit time.Duration) ([]json.RawMessage, error) {
	return within(ctx, limit, func(ctx context.Context) ([]json.RawMessage, error) { return store.Load(ctx, key) })
}

func within[T any](ctx context.Context, limit time.Duration, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		value, err := ask(ctx)
		got <- answer{value, err}
	}()
	select {
	case a := <-got:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("the store did not answer: %w", ctx.Err())
	}
}

// fillSubkeys writes the transcripts below the session. A subpath that is not plain is an error: its writer is hostile.
func (r *Resumed) fillSubkeys(ctx context.Context, root *os.Root, store Store, opts ResumeOptions) error {
	lister, ok := store.(SubkeyLister)
	if !ok {
		return nil // the main conversation resumes without
	}
	subpaths, err := within(ctx, opts.LoadTimeout, func(ctx context.Context) ([]string, error) { return lister.ListSubkeys(ctx, r.Key) })
	if err != nil {
		return err
	}
	for _, sub := range subpaths {
		key := Key{r.Key.ProjectKey, r.Key.SessionID, sub}
		if sub == "" {
			return fmt.Errorf("%w: empty subpath", ErrBadKey)
		}
		if err := key.Validate(); err != nil {
			return err
		}
		entries, err := load(ctx, store, key, opts.LoadTimeout)
		if err != nil {
			return err
		}
		if !opts.KeepDeferred {
			entries = withoutDeferrals(entries)
		}
		if err := writeSubagent(root, r.file(key), entries); err != nil {
			return err
		}
	}
	return nil
}

// metadataType marks the entries by which the CLI mirrors a sidecar file; the last one counts.
const metadataType = "agent_metadata"

// writeSubagent writes a subagent's transcript, and its sidecar from the metadata entries.
func writeSubagent(root *os.Root, name string, entries []json.RawMessage) error {
	var lines []json.RawMessage
	var meta object
	for _, raw := range entries {
		e, err := ParseEntry(raw)
		if err != nil || e.Type != metadataType {
			lines = append(lines, raw)
			continue
		}
		if meta, err = parseObject(raw); err != nil {
			return err
		}
	}
	if meta != nil {
		sidecar := name[:len(name)-len(".jsonl")] + ".meta.json"
		if err := writePrivate(root, sidecar, meta.without("type").bytes()); err != nil {
			return err
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return writeLines(root, name, lines)
}

func writeLines(root *os.Root, name string, entries []json.RawMessage) error {
	var text bytes.Buffer
	for i, e := range entries {
		if !plainjson.IsObject(e) {
			return fmt.Errorf("entry %d for %s is not a JSON object", i, path.Base(name))
		}
		if err := json.Compact(&text, e); err != nil {
			return err
		}
		text.WriteByte('\n')
	}
	return writePrivate(root, name, text.Bytes())
}

func writePrivate(root *os.Root, name string, data []byte) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return root.WriteFile(name, data, 0o600)
}

// Newest returns the session of a project that was changed last and is not of a subagent. The store must be a
// [SessionLister] or a [SummaryLister]; the limit is for each call of it, and zero means 60 seconds. The error
// wraps [ErrNotFound] if the project has no session.
func Newest(ctx context.Context, store Store, projectKey string, limit time.Duration) (Key, error) {
	id, err := newest(ctx, store, projectKey, cmp.Or(limit, time.Minute))
	if err != nil {
		return Key{}, fmt.Errorf("transcript: the newest session of %s: %w", projectKey, err)
	}
	return Key{ProjectKey: projectKey, SessionID: id}, nil
}

func newest(ctx context.Context, store Store, projectKey string, limit time.Duration) (string, error) {
	switch s := store.(type) {
	case SummaryLister:
		sums, err := within(ctx, limit, func(ctx context.Context) ([]Summary, error) { return s.ListSummaries(ctx, projectKey) })
		sums = slices.DeleteFunc(sums, func(s Summary) bool { return s.IsSidechain })
		return latest(storedSessions(sums), err, func(StoredSession) (bool, error) { return true, nil })
	case SessionLister:
		list, err := within(ctx, limit, func(ctx context.Context) ([]StoredSession, error) { return s.ListSessions(ctx, projectKey) })
		return latest(list, err, func(c StoredSession) (bool, error) {
			entries, err := load(ctx, store, Key{ProjectKey: projectKey, SessionID: c.SessionID}, limit)
			return len(entries) > 0 && !(Summary{}.Fold(entries[:1]).IsSidechain), err
		})
	}
	return "", errors.New("the store cannot list sessions: it is neither a SessionLister nor a SummaryLister")
}

// latest returns the first of list, newest first, that is wanted.
func latest(list []StoredSession, err error, wanted func(StoredSession) (bool, error)) (string, error) {
	slices.SortFunc(list, func(a, b StoredSession) int { return b.Modified.Compare(a.Modified) })
	for _, c := range list {
		ok, werr := wanted(c)
		if werr != nil {
			return "", werr
		}
		if ok {
			return c.SessionID, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%w: the store has no session of this project", ErrNotFound)
	}
	return "", err
}
