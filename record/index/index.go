// SPDX-License-Identifier: Apache-2.0

// Package index answers questions about the runs of a store from a database.
//
// An [Index] is a copy of what the files of a [record.Store] say, in the file index.db in its folder. It has no fact of its own:
// without it no run is lost, and it is built again from the files if it is missing, damaged or of an older version. Processes share
// it: each brings it up to date, and one at a time writes.
//
// Damage is found when SQLite reads it: at once where the file is cut or its beginning is changed, by the query that meets it
// elsewhere. A text that is changed inside a page is not noticed; [Index.Rebuild] is for doubts.
package index

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/record"
)

// A NoticeKind is what a [Notice] reports.
type NoticeKind string

// The kinds of notices.
const (
	OlderIndex   NoticeKind = "older"   // it was of an older version and is built again
	DamagedIndex NoticeKind = "damaged" // it was damaged and is built again
	InMemory     NoticeKind = "memory"  // the folder cannot have an index: it is in memory, and is built for each Index
)

// A Notice is a fact that a user may want to know, and that is not an error: the answers of the index are the same.
type Notice struct {
	Kind NoticeKind
	// Text says what happened, and Advice what to do; it may be empty.
	Text, Advice string
}

// An Index is an open index of a store. Its methods may be called at the same time.
type Index struct {
	store *record.Store

	mu sync.RWMutex // held for reading while db is used
	db *database

	noticesMu sync.Mutex
	notices   []Notice

	beforeCommit func() // of tests
}

// Open opens the index of a store. It makes one unless this version can use one. The index has the runs of
// the last [Index.Sync] of any process: call Sync before the first question. An index of a newer version is not changed; the error
// wraps [ErrNewer].
func Open(ctx context.Context, store *record.Store) (*Index, error) {
	ix := &Index{store: store}
	if err := ix.open(ctx, nil); err != nil {
		return nil, err
	}
	return ix, nil
}

// open opens the file, or else an index in memory. The caller has mu, or the only reference.
func (ix *Index) open(ctx context.Context, damaged fs.FileInfo) error {
	db, notice, err := openFile(ctx, ix.store.Dir(), damaged)
	switch {
	case err == nil:
		ix.db = db
		if notice != nil {
			ix.notify(*notice)
		}
		return nil
	case errors.Is(err, ErrNewer):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("index: opening the index of %s: %w", ix.store.Dir(), err)
	}
	return ix.openMemory(ctx, err)
}

func (ix *Index) openMemory(ctx context.Context, why error) error {
	db, err := openMemory(ctx)
	if err != nil {
		return fmt.Errorf("index: opening an index in memory: %w", errors.Join(err, why))
	}
	ix.db = db
	ix.notify(Notice{
		Kind: InMemory, Text: fmt.Sprintf("the index of %s is in memory, since its file cannot be used: %v", ix.store.Dir(), why),
		Advice: "make room in " + ix.store.Dir() + ", and allow this user to write there",
	})
	return nil
}

// Close closes the index.
func (ix *Index) Close() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db == nil {
		return nil
	}
	err := ix.db.close()
	ix.db = nil
	return err
}

func (ix *Index) notify(n Notice) {
	ix.noticesMu.Lock()
	defer ix.noticesMu.Unlock()
	if !slices.Contains(ix.notices, n) {
		ix.notices = append(ix.notices, n)
	}
}

// Notices returns the notices since the last call. Open, Sync and every query may have some.
func (ix *Index) Notices() []Notice {
	ix.noticesMu.Lock()
	defer ix.noticesMu.Unlock()
	all := ix.notices
	ix.notices = nil
	return all
}

// Sync brings the index up to date with the files. It waits for other processes that write, until the context ends. It reads the runs that the journal names and those that had not ended, no others.
func (ix *Index) Sync(ctx context.Context) error {
	return ix.do(ctx, "bringing the index up to date", nil, func(db *database) error {
		if db.replaced() {
			return errReplaced
		}
		return ix.sync(ctx, db, false)
	})
}

// Rebuild builds the index from the files again.
func (ix *Index) Rebuild(ctx context.Context) error {
	return ix.do(ctx, "building the index again", nil, func(db *database) error {
		if db.replaced() {
			return errReplaced
		}
		return ix.sync(ctx, db, true)
	})
}

var errClosed = errors.New("the index is closed")

// maxAttempts is how often a question is asked if its index is not usable: the file was damaged, and then the disk is full.
const maxAttempts = 3

// do calls f with the database. If the database cannot be used, another one is opened and f is called again, after a sync if f
// asks for what the index has; synced is nil for one that syncs itself.
func (ix *Index) do(ctx context.Context, what string, synced func(error) bool, f func(*database) error) error {
	for attempt := 1; ; attempt++ {
		ix.mu.RLock()
		db := ix.db
		err := errClosed
		if db != nil {
			err = f(db)
		}
		ix.mu.RUnlock()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("index: %s: %w", what, context.Cause(ctx))
		case isBusy(err):
			attempt-- // until the context ends
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
			continue
		case attempt == maxAttempts || db == nil || synced != nil && !synced(err):
			return fmt.Errorf("index: %s: %w", what, err)
		}
		again, repairErr := ix.repair(ctx, db, err)
		switch {
		case repairErr != nil:
			return repairErr
		case !again:
			return fmt.Errorf("index: %s: %w", what, err)
		}
		if synced == nil {
			continue
		}
		if err := ix.Sync(ctx); err != nil {
			return err
		}
	}
}

// repair replaces a database that cannot be used, and reports whether there is another one.
func (ix *Index) repair(ctx context.Context, db *database, err error) (again bool, _ error) {
	damaged, unwritable := isDamage(err) || isMissing(err), isUnwritable(err)
	if !damaged && !unwritable && !errors.Is(err, errReplaced) {
		return false, nil
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db != db {
		return ix.db != nil, nil // another goroutine has replaced it, or closed the index
	}
	switch {
	case db.dir == "": // memory does not get better by another one
		return false, nil
	case damaged:
		ix.db = nil
		return true, errors.Join(db.close(), ix.open(ctx, db.file))
	case unwritable:
		ix.db = nil
		_ = db.close() // it is not used any more
		return true, ix.openMemory(ctx, err)
	}
	ix.db = nil
	return true, errors.Join(db.close(), ix.open(ctx, nil))
}

// journalState is how far the journal was read.
type journalState struct {
	built  bool   // whether the index has all runs of the store
	offset int64  // in the journal
	tail   []byte // what is before the offset: another journal has something else there
	dir    string // the folder of the store, which is in the rows
}

// maxTail is how much of the journal before the offset is compared.
const maxTail = 256

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func readState(ctx context.Context, q querier) (s journalState, err error) {
	for name, to := range map[string]any{"offset": &s.offset, "tail": &s.tail, "dir": &s.dir} {
		switch err := q.QueryRowContext(ctx, "SELECT value FROM _state WHERE name = ?", name).Scan(to); {
		case errors.Is(err, sql.ErrNoRows):
			return journalState{}, nil
		case err != nil:
			return s, err
		}
	}
	s.built = true
	return s, nil
}

// tailOf is the part of the journal before an offset.
func (ix *Index) tailOf(offset int64) ([]byte, error) {
	f, err := plainfile.OpenReal(filepath.Join(ix.store.Dir(), "journal"), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return []byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	from := max(0, offset-maxTail)
	tail := make([]byte, offset-from)
	n, err := f.ReadAt(tail, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return tail[:n], err
}

// storeError is an error of the store, which says nothing about the database.
type storeError struct{ err error }

func (e storeError) Error() string { return e.err.Error() }

// Is finds what the error wraps; As does not, so that a file of the store is not taken for one of the index.
func (e storeError) Is(target error) bool { return errors.Is(e.err, target) }

// sync brings a database up to date, in one transaction. whole builds it from all files.
func (ix *Index) sync(ctx context.Context, db *database, whole bool) error {
	if !whole {
		if current, err := ix.isCurrent(ctx, db); err != nil || current {
			return err
		}
	}
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	state, err := readState(ctx, tx)
	if err != nil {
		return err
	}
	runs, end, whole, err := ix.changed(state, whole)
	if err != nil {
		return storeError{err}
	}
	if whole {
		for _, name := range append(tableNames(), "_open") {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+name); err != nil {
				return err
			}
		}
	}
	open, err := texts(ctx, tx, "SELECT run FROM _open ORDER BY run")
	if err != nil {
		return err
	}
	w, err := newWriter(ctx, tx, ix.store)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, run := range slices.Concat(runs, open) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !done[run] {
			if err := w.put(ctx, run); err != nil {
				return err
			}
		}
		done[run] = true
	}
	tail, err := ix.tailOf(end)
	if err != nil {
		return storeError{err}
	}
	for name, value := range map[string]any{"offset": end, "tail": tail, "dir": ix.store.Dir()} {
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO _state VALUES (?, ?)", name, value); err != nil {
			return err
		}
	}
	if ix.beforeCommit != nil {
		ix.beforeCommit()
	}
	return tx.Commit()
}

// isCurrent reports whether nothing has changed, without waiting for a process that writes.
func (ix *Index) isCurrent(ctx context.Context, db *database) (bool, error) {
	state, err := readState(ctx, db.read)
	if err != nil || !state.built {
		return false, err
	}
	var open int
	if err := db.read.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM _open LIMIT 1)").Scan(&open); err != nil || open > 0 {
		return false, err
	}
	_, end, whole, err := ix.changed(state, false)
	if err != nil {
		return false, storeError{err}
	}
	return !whole && end == state.offset, nil
}

// changed lists the runs to read, and the offset of the journal up to which they are. whole means that they are all runs of the
// store, as it is where all are asked for, or the journal is not that of the state.
func (ix *Index) changed(state journalState, all bool) (runs []string, end int64, whole bool, err error) {
	all = all || !state.built || state.dir != ix.store.Dir()
	if !all {
		tail, err := ix.tailOf(state.offset)
		if err != nil {
			return nil, 0, false, err
		}
		all = !bytes.Equal(tail, state.tail)
	}
	if !all {
		changes, end, replaced, err := ix.store.Changes(state.offset)
		if err != nil {
			return nil, 0, false, err
		}
		if !replaced {
			for _, c := range changes {
				runs = append(runs, c.Run)
			}
			return runs, end, false, nil
		}
	}
	// What is reported from here on is read again at the next sync, at no harm.
	if _, end, _, err = ix.store.Changes(0); err != nil {
		return nil, 0, false, err
	}
	runs, err = ix.store.Folders()
	return runs, end, true, err
}

func tableNames() []string {
	var names []string
	for _, t := range tables {
		names = append(names, t.Name)
	}
	return names
}

func texts(ctx context.Context, tx *sql.Tx, query string) (all []string, err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}
