// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/plainfile"
)

// The files of an index. Beside the first SQLite has others of its name.
const (
	databaseFile = "index.db"
	lockFile     = "index.lock"
)

// besides are the files that SQLite has beside a database.
var besides = []string{"-wal", "-shm", "-journal"}

// errReplaced means that another process has replaced the file by a new one.
var errReplaced = errors.New("the index was replaced by another process")

// A database is an open index: a file, or memory.
//
// A file is replaced only under the lock of the index, and a connection is opened and read from only under it. So no connection
// has the database of one file and the write-ahead log of another. The anchor keeps the file in use for as long as the database
// is open: only its close, which is under the lock too, can remove the write-ahead log.
//
// No function opens the file except by SQLite: closing it would release the locks that SQLite has in this process.
type database struct {
	dir    string // of the file, empty for one in memory
	memory string // the name of one in memory
	file   fs.FileInfo
	anchor *sql.DB
	write  *sql.DB
	read   *sql.DB
}

// maxReaders is how many queries one Index runs at a time.
const maxReaders = 4

// lockIndex takes the lock of an index.
func lockIndex(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := plainfile.OpenReal(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(ctx, f, 2*time.Millisecond); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = errors.Join(filelock.Unlock(f), f.Close()) }, nil
}

// openFile opens the index in a folder, and makes a new one unless this program can use one. damaged is the file that
// was found damaged while it was in use, or nil. notice is why an index was replaced.
func openFile(ctx context.Context, dir string, damaged fs.FileInfo) (db *database, notice *Notice, err error) {
	unlock, err := lockIndex(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	path := filepath.Join(dir, databaseFile)
	file, err := os.Lstat(path)
	if err == nil {
		err = checkReal(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = create(ctx, dir)
	case err != nil:
	case damaged != nil && os.SameFile(file, damaged):
		notice = damagedNotice(path, errors.New("a query found damage"))
		err = create(ctx, dir)
	default:
		if found := versionBefore(ctx, path); found > version {
			return nil, nil, newer(path, found)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	db, found, err := attach(ctx, dir)
	if err == nil && found > version {
		return nil, nil, errors.Join(newer(path, found), db.closeAll())
	}
	if err == nil && found == version {
		return db, notice, nil
	}
	if err != nil && !isDamage(err) {
		return nil, nil, err
	}
	switch {
	case err != nil:
		notice = damagedNotice(path, err)
	case found == 0:
		notice = damagedNotice(path, errors.New("it is not a whole index of Drover"))
	default:
		notice = &Notice{Kind: OlderIndex, Text: fmt.Sprintf("the index %s had version %d and was built again with version %d", path, found, version)}
	}
	if db != nil {
		if err := db.closeAll(); err != nil {
			return nil, nil, err
		}
	}
	if err := create(ctx, dir); err != nil {
		return nil, nil, err
	}
	if db, found, err = attach(ctx, dir); err == nil && found != version {
		err = errors.Join(fmt.Errorf("the new index %s has version %d", path, found), db.closeAll())
	}
	return db, notice, err
}

// checkReal refuses links among the files of a database: SQLite follows them.
func checkReal(path string) error {
	for _, end := range append([]string{""}, besides...) {
		if info, err := os.Lstat(path + end); err == nil && !info.Mode().IsRegular() {
			return &fs.PathError{Op: "open", Path: path + end, Err: plainfile.ErrNotPlain}
		}
	}
	return nil
}

func damagedNotice(path string, err error) *Notice {
	return &Notice{Kind: DamagedIndex, Text: fmt.Sprintf("the index %s was damaged and was built again: %v", path, err)}
}

// ErrNewer is wrapped where the index is that of a newer version of Drover. It is not changed.
var ErrNewer = errors.New("the index is of a newer version of Drover")

func newer(path string, found int64) error {
	return advice.Wrap(fmt.Errorf("index: opening %s: version %d, this program reads up to %d: %w", path, found, version, ErrNewer),
		"use a newer version of Drover, or remove the file: it is built again from the runs")
}

// create replaces the file by an index without runs. The version is in the file before there is a write-ahead log.
func create(ctx context.Context, dir string) error {
	path := filepath.Join(dir, databaseFile)
	for _, end := range append([]string{""}, besides...) {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return build(ctx, fileName(path, nil))
}

// build makes the tables in a database that is empty.
func build(ctx context.Context, name string) (err error) {
	db, err := openPool(name, nil, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	statements := createStatements() + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, version)
	if _, err := tx.ExecContext(ctx, statements); err != nil {
		return err
	}
	return tx.Commit()
}

// attach opens the connections to the file. found is the version of its tables, 0 if it is not an index.
func attach(ctx context.Context, dir string) (db *database, found int64, err error) {
	path := filepath.Join(dir, databaseFile)
	db = &database{dir: dir}
	if db.file, err = os.Stat(path); err != nil {
		return nil, 0, err
	}
	if db.anchor, err = openPool(fileName(path, nil), nil, 1); err != nil {
		return nil, 0, err
	}
	found, err = readVersion(ctx, db.anchor)
	if err == nil && found == version {
		var mode string
		err = db.anchor.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
	}
	if err != nil {
		return nil, 0, errors.Join(err, db.anchor.Close())
	}
	if db.write, err = openPool(fileName(path, writeSettings), db, 1); err == nil {
		db.read, err = openPool(fileName(path, readSettings), db, maxReaders)
	}
	if err != nil {
		return nil, 0, errors.Join(err, db.closeAll())
	}
	return db, found, nil
}

// memories numbers the databases in memory.
var memories atomic.Int64

// openMemory opens an index without runs in memory.
func openMemory(ctx context.Context) (*database, error) {
	db := &database{memory: fmt.Sprintf("/drover-index-%d", memories.Add(1))}
	var err error
	if db.anchor, err = openPool(memoryName(db.memory, nil), nil, 1); err == nil {
		_, err = db.anchor.ExecContext(ctx, createStatements())
	}
	if err == nil {
		db.write, err = openPool(memoryName(db.memory, writeSettings), nil, 1)
	}
	if err == nil {
		db.read, err = openPool(memoryName(db.memory, readSettings), nil, maxReaders)
	}
	if err != nil {
		return nil, errors.Join(err, db.closeAll())
	}
	return db, nil
}

// closeAll closes all connections, under the lock of the index.
func (db *database) closeAll() error {
	var all []error
	for _, pool := range []*sql.DB{db.read, db.write, db.anchor} {
		if pool != nil {
			all = append(all, pool.Close())
		}
	}
	return errors.Join(all...)
}

// close closes the database. It takes the lock of the index.
func (db *database) close() error {
	if db.dir != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if unlock, err := lockIndex(ctx, db.dir); err == nil { // a folder that is gone has no other users
			defer unlock()
		}
	}
	return db.closeAll()
}

// replaced reports whether the file is no longer that of its name.
func (db *database) replaced() bool {
	if db.dir == "" {
		return false
	}
	now, err := os.Stat(filepath.Join(db.dir, databaseFile))
	return err != nil || !os.SameFile(now, db.file)
}

var (
	writeSettings = url.Values{"_txlock": {"immediate"}, "_synchronous": {"NORMAL"}}
	readSettings  = url.Values{"_query_only": {"1"}}
	userSettings  = url.Values{"_query_only": {"1"}, "_defensive": {"1"}, "_dqs": {"0"}, "_pragma": {"trusted_schema(0)"}}
)

// userName is the name of the database for the connection of a user's query.
func (db *database) userName() string {
	if db.dir == "" {
		return memoryName(db.memory, userSettings)
	}
	settings := url.Values{"mode": {"ro"}}
	for name, values := range userSettings {
		settings[name] = values
	}
	return fileName(filepath.Join(db.dir, databaseFile), settings)
}

func fileName(path string, settings url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive of Windows
	}
	return withSettings((&url.URL{Scheme: "file", Path: path}).String(), settings)
}

func memoryName(name string, settings url.Values) string {
	return withSettings("file:"+name, settings) + "&vfs=memdb"
}

// busyTimeout is how long SQLite waits for a lock at a time, whether or not the caller's context has ended.
const busyTimeout = 100 * time.Millisecond

func withSettings(name string, settings url.Values) string {
	all := url.Values{"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())}, "_error_rc": {"1"}}
	for name, values := range settings {
		all[name] = values
	}
	return name + "?" + all.Encode()
}

// openPool has connections to a database. guard is the one whose file they must be of; they are opened under the lock of its index.
func openPool(name string, guard *database, limit int) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, err
	}
	if guard != nil {
		connector = guarded{connector, guard}
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(limit)
	pool.SetMaxIdleConns(limit)
	return pool, nil
}

type guarded struct {
	driver.Connector
	of *database
}

// Connect opens a connection and reads with it, so that it has the write-ahead log too.
func (g guarded) Connect(ctx context.Context) (driver.Conn, error) {
	unlock, err := lockIndex(ctx, g.of.dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if g.of.replaced() {
		return nil, errReplaced
	}
	c, err := g.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.(driver.ExecerContext).ExecContext(ctx, "SELECT count(*) FROM sqlite_schema", nil); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// readVersion is the version of the tables, 0 if the database is not an index.
func readVersion(ctx context.Context, db *sql.DB) (found int64, err error) {
	var id int64
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return 0, err
	}
	if id != applicationID {
		return 0, nil
	}
	if found != version {
		return found, nil
	}
	var n int
	return found, db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n) // a damaged schema fails
}

// versionBefore is the version of the tables as the file has it, without the write-ahead log and without any change of the folder.
// It is 0 if that cannot be read: opening the file decides then.
func versionBefore(ctx context.Context, path string) int64 {
	db, err := openPool(fileName(path, url.Values{"immutable": {"1"}, "mode": {"ro"}}), nil, 1)
	if err != nil {
		return 0
	}
	defer func() { _ = db.Close() }()
	found, err := readVersion(ctx, db)
	if err != nil {
		return 0
	}
	return found
}

// codeOf is the primary result code of SQLite, or 0.
func codeOf(err error) (primary, extended int) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff, e.Code()
	}
	return 0, 0
}

// isDamage reports whether an error means that the file is not a whole database.
func isDamage(err error) bool {
	primary, extended := codeOf(err)
	return primary == sqlite3.SQLITE_CORRUPT || primary == sqlite3.SQLITE_NOTADB ||
		extended == sqlite3.SQLITE_IOERR_SHORT_READ || extended == sqlite3.SQLITE_IOERR_IN_PAGE
}

// isMissing reports whether a statement of ours names a table or a column that is not there.
func isMissing(err error) bool {
	primary, _ := codeOf(err)
	return primary == sqlite3.SQLITE_ERROR && (strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column"))
}

// isUnwritable reports whether an error means that the folder cannot have an index: no room, no rights, no such file system.
func isUnwritable(err error) bool {
	primary, _ := codeOf(err)
	switch primary {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR:
		return true
	}
	return errors.As(err, new(*fs.PathError))
}

// isBusy reports whether another process is at work on the database.
func isBusy(err error) bool {
	primary, _ := codeOf(err)
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}
