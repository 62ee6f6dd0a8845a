// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/session"
)

// RecorderOptions configure a [Recorder]. The zero value is ready to use.
type RecorderOptions struct {
	// Secrets are values that must not be in the record, such as credentials and variables that are passed in. Known forms of
	// keys and tokens are always replaced.
	Secrets []string
	// Name is what the owner calls the agent, and Folder where its runs belong; empty means the working directory. Command is the
	// command line, if there is one.
	Name, Folder string
	Command      []string
	// Versions are those of programs and files that a reader may ask about.
	Versions map[string]string
	// Traffic is a recording of the model's traffic that a [gateway.Recorder] writes while the run is at work; the end of the run
	// takes a copy of it. Empty means none. It is for a recorder of one run.
	Traffic string
	// Settle waits until what has passed is in Traffic, such as [gateway.Recorder.Settle]. Nil means that it is.
	Settle func(context.Context) error
	// Keep bounds what the store has. It is applied after each run, at most once in ten minutes.
	Keep Retention
	// Logger receives failures that no caller receives. Nil discards them.
	Logger *slog.Logger
}

// A Recorder keeps evaluations in a store. It may be used by several at a time.
type Recorder struct {
	store *Store
	opts  RecorderOptions
	mask  *masker

	beforeWrite func() // of tests
}

// NewRecorder returns a recorder that keeps runs in s.
func NewRecorder(s *Store, o *RecorderOptions) *Recorder {
	r := &Recorder{store: s}
	if o != nil {
		r.opts = *o
	}
	r.mask = newMasker(r.opts.Secrets)
	r.opts.Logger = r.Logger(r.opts.Logger)
	return r
}

// Logger returns a logger whose records reach l without secrets. An evaluation with this recorder has it for its own Logger.
func (r *Recorder) Logger(l *slog.Logger) *slog.Logger {
	return safelog.Logger(slog.New(r.mask.known.Handler(safelog.Logger(l).Handler())))
}

// Begin implements [drover.Recorder]. When it returns the run is on the disk, and listed.
func (r *Recorder) Begin(_ context.Context, start drover.RunStart) (drover.RunRecord, error) {
	k, err := r.begin(start)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("record: the run cannot be kept in %s: %w", r.store.dir, err),
			"make room there, or keep nothing of this run")
	}
	return k, nil
}

func (r *Recorder) begin(start drover.RunStart) (_ *keptRun, err error) {
	k, err := r.open(start.RunID, start.Began, start.Session.ID(), start.Session.Tags())
	if err != nil {
		return nil, err
	}
	k.start, k.seen, k.done, k.grown, k.written = start, start.After, make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	if err := errors.Join(k.write(infoFile, k.info()), r.store.report(ChangeBegin, k.folder)); err != nil {
		return nil, errors.Join(err, k.discard())
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	go k.follow(ctx)
	go k.writeLines(ctx)
	return k, nil
}

// open makes the folder of a run in the store, with its lock, an empty log and an empty transcript. On an error nothing is left.
func (r *Recorder) open(id string, began time.Time, sessionID string, tags map[string]string) (_ *keptRun, err error) {
	if !validID(id) {
		return nil, fmt.Errorf("the id %q cannot name a folder", id)
	}
	k := &keptRun{Recorder: r, folder: began.UTC().Format(dayForm) + "/" + id}
	k.dir = filepath.Join(r.store.dir, filepath.FromSlash(k.folder))
	if err := r.store.makeFolder(k.dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.discard())
		}
	}()
	if k.lock, err = os.OpenFile(filepath.Join(k.dir, lockFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := filelock.Lock(ctx, k.lock, time.Millisecond); err != nil { // others only look at it
		return nil, err
	}
	if k.log, err = session.OpenFile(filepath.Join(k.dir, eventsFile), &session.FileOptions{Sync: session.SyncInterval, Logger: r.opts.Logger}); err != nil {
		return nil, err
	}
	for name, value := range tags {
		tags[name] = r.mask.known.String(value)
	}
	if err := k.log.Init(session.Head{Version: session.EncodingVersion, ID: sessionID, Created: began, Tags: tags}); err != nil {
		return nil, err
	}
	if k.transcript, err = os.OpenFile(filepath.Join(k.dir, transcriptFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	k.text = bufio.NewWriter(k.transcript)
	return k, nil
}

// Redact replaces the secrets in a text as in what is kept.
func (r *Recorder) Redact(text string) string { return string(r.mask.text([]byte(text))) }

// RedactJSON is Redact for valid JSON, which stays valid.
func (r *Recorder) RedactJSON(raw json.RawMessage) json.RawMessage { return r.mask.json(raw) }

// A keptRun is a run that is being recorded.
type keptRun struct {
	*Recorder
	start       drover.RunStart
	folder, dir string
	lock        *os.File
	log         *session.FileStore
	stop        func()
	done        chan struct{} // closed when the log is no longer followed
	grown       chan struct{} // has an element if there are lines
	written     chan struct{} // closed when no more lines are written
	transcript  *os.File
	text        *bufio.Writer // to it

	mu       sync.Mutex
	lines    []drover.TranscriptEntry // that are not written yet
	waiting  int                      // their bytes
	last     int64                    // the session's position at the end, once it is known
	caughtUp chan struct{}            // closed when last is recorded
	seen     int64                    // the session's position that is recorded
	problem  error
}

// Path is the folder of the run.
func (k *keptRun) Path() string { return k.dir }

func (k *keptRun) info() Info {
	s := k.start
	info := Info{
		Format: Format, ID: s.RunID, Session: s.Session.ID(), Began: s.Began, Deadline: s.Deadline.Time(), Agent: s.Agent, Prompt: s.PromptName, Name: k.opts.Name,
		Folder: k.opts.Folder, Model: s.Settings.Model, Resumes: s.Resume, Command: k.opts.Command, Settings: settingsOf(s.Settings),
		Versions: map[string]string{"system": runtime.GOOS + "/" + runtime.GOARCH, "go": runtime.Version()},
	}
	if info.Folder == "" {
		info.Folder = s.Dir
	}
	for name, version := range k.opts.Versions {
		info.Versions[name] = version
	}
	return info
}

// write writes a small file of the run, whole or not at all, without secrets.
func (k *keptRun) write(name string, v any) error {
	text, err := plainjson.Marshal(v)
	if err != nil {
		return err
	}
	return k.writeText(name, append(k.mask.json(text), '\n'))
}

func (k *keptRun) writeText(name string, text []byte) error {
	path := filepath.Join(k.dir, name)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return plainfile.SyncDir(k.dir)
}

// follow records the entries of the session behind those that it had, until the context ends.
func (k *keptRun) follow(ctx context.Context) {
	defer close(k.done)
	for entry, err := range k.start.Session.After(ctx, k.start.After) {
		if err == nil {
			err = k.entry(entry)
		}
		k.mu.Lock()
		if err != nil && k.problem == nil {
			k.problem = err
		}
		failed := k.problem != nil
		if err == nil {
			k.seen = entry.Pos
		}
		if k.caughtUp != nil && (k.seen >= k.last || failed) {
			close(k.caughtUp)
			k.caughtUp = nil
		}
		k.mu.Unlock()
		if failed {
			return
		}
	}
}

// entry records one entry of the session. Its number counts from the first one of the run.
func (k *keptRun) entry(entry session.Entry) error {
	entry.Pos -= k.start.After
	if back, ok := entry.Event.Payload.(session.Restored); ok {
		back.To = max(0, back.To-k.start.After)
		entry.Event.Payload = back
	}
	record, err := entry.Record()
	if err != nil {
		return err
	}
	record.Data = k.mask.json(record.Data)
	if k.beforeWrite != nil {
		k.beforeWrite()
	}
	return k.log.Append([]session.Record{record})
}

// maxWaiting is how many bytes of the transcript may wait for the disk. Tests lower it.
var maxWaiting = 64 << 20

func sizeOf(entry drover.TranscriptEntry) int { return len(entry.Raw) + len(entry.Detail) + 256 }

// Transcript implements [drover.RunRecord]. The line is written by another goroutine: the caller reads what the agent sends.
func (k *keptRun) Transcript(entry drover.TranscriptEntry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.problem != nil {
		return
	}
	k.lines = append(k.lines, entry)
	if k.waiting += sizeOf(entry); k.waiting > maxWaiting {
		k.problem, k.lines = fmt.Errorf("%d bytes of the transcript wait for the disk", k.waiting), nil
	}
	select {
	case k.grown <- struct{}{}:
	default:
	}
}

// writeLines writes the lines of the transcript, until the context ends and all are written.
func (k *keptRun) writeLines(ctx context.Context) {
	defer close(k.written)
	for over := false; ; {
		k.mu.Lock()
		lines := k.lines
		k.lines = nil
		k.mu.Unlock()
		for _, entry := range lines {
			err := k.writeLine(entry)
			k.mu.Lock()
			k.waiting -= sizeOf(entry)
			if err != nil && k.problem == nil {
				k.problem = err
			}
			failed := k.problem != nil
			k.mu.Unlock()
			if failed {
				return
			}
		}
		switch {
		case len(lines) > 0:
		case over:
			return
		default:
			select {
			case <-k.grown:
			case <-ctx.Done():
				over = true
			}
		}
	}
}

func (k *keptRun) writeLine(entry drover.TranscriptEntry) error {
	if k.beforeWrite != nil {
		k.beforeWrite()
	}
	if bytes.Equal(entry.Detail, entry.Raw) { // Run.Transcript has it again
		entry.Detail = nil
	}
	text, err := plainjson.Marshal(entry)
	if err == nil {
		_, err = k.text.Write(append(k.mask.json(text), '\n'))
	}
	return err
}

// diff keeps the patch of what the run changed in its workspace.
func (k *keptRun) diff(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	return k.writeText(diffFile, k.mask.text(text))
}

// settleTime is how long the end of a run waits for the last exchanges of its traffic.
const settleTime = 5 * time.Second

// traffic takes a copy of the whole lines of the recording, whose writer has taken the secrets out that it knows.
func (k *keptRun) traffic() error {
	if k.opts.Traffic == "" {
		return nil
	}
	var missing error
	if k.opts.Settle != nil {
		ctx, cancel := context.WithTimeout(context.Background(), settleTime)
		defer cancel()
		missing = k.opts.Settle(ctx)
	}
	from, err := plainfile.Open(k.opts.Traffic)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(filepath.Join(k.dir, trafficFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for exchanges := lines.NewReader(from, maxExchange); err == nil; {
		var line []byte
		if line, err = exchanges.Next(); err == nil && !exchanges.Last() {
			_, err = to.Write(append(k.mask.json(line), '\n'))
		}
	}
	if errors.Is(err, io.EOF) {
		err = to.Sync()
	}
	return errors.Join(missing, err, to.Close())
}

// End implements [drover.RunRecord]. When it returns the run is on the disk as it ended.
func (k *keptRun) End(end drover.RunEnd) error {
	k.wait(end.Last)
	k.stop()
	<-k.done
	<-k.written
	k.mu.Lock()
	if k.problem == nil {
		k.problem = k.text.Flush()
	}
	if k.problem == nil {
		k.problem = k.transcript.Sync()
	}
	err := k.problem
	e := endOf(end)
	e.Entries = k.seen - k.start.After
	k.mu.Unlock()
	// All else is on the disk before the end is, which says what is missing. The lock is held until both are.
	err = errors.Join(err, k.log.Close(), k.diff(end.Diff), k.traffic())
	e.Problem = errorText(err)
	err = errors.Join(err, k.write(endFile, e), k.store.report(ChangeEnd, k.folder), k.close())
	k.prune()
	if err != nil {
		return advice.Wrap(fmt.Errorf("record: the run could not be kept whole in %s: %w", k.dir, err), "make room there before the next run")
	}
	return nil
}

// wait waits until the log is recorded up to a position of the session, or cannot be.
func (k *keptRun) wait(last int64) {
	k.mu.Lock()
	k.last = last
	caughtUp := make(chan struct{})
	if k.problem != nil || k.seen >= last || last <= k.start.After {
		close(caughtUp)
	} else {
		k.caughtUp = caughtUp
	}
	k.mu.Unlock()
	select {
	case <-caughtUp:
	case <-k.done:
	}
}

func (k *keptRun) close() (err error) {
	if k.stop != nil {
		k.stop()
		<-k.done
		<-k.written
	}
	if k.log != nil {
		err = errors.Join(err, k.log.Close())
	}
	if k.transcript != nil {
		err = errors.Join(err, k.transcript.Close())
	}
	if k.lock != nil {
		err = errors.Join(err, filelock.Unlock(k.lock), k.lock.Close())
	}
	return err
}

// discard removes a run that could not be made.
func (k *keptRun) discard() error { return errors.Join(k.close(), os.RemoveAll(k.dir)) }

// pruneEvery is how often the limits of the store are applied.
const pruneEvery = 10 * time.Minute

// prune applies the limits of the store, if no program has lately.
func (k *keptRun) prune() {
	path := filepath.Join(k.store.dir, "pruned")
	if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) < pruneEvery {
		return
	}
	f, err := plainfile.OpenReal(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(os.Chtimes(path, time.Time{}, time.Now()), f.Close())
	}
	if err == nil {
		_, err = k.store.Prune(k.opts.Keep, time.Now())
	}
	if err != nil {
		k.opts.Logger.Error("record: old runs could not be removed", "folder", k.store.dir, "error", err)
	}
}
