// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/drover-agents/drover/advice"
)

// Limits bound a query of [Index.SQL]. Zero fields are the defaults.
type Limits struct {
	Timeout time.Duration // 10 seconds
	Rows    int           // 10,000
	Bytes   int           // of all values together, 64 MiB
}

func (l Limits) orDefaults() Limits {
	return Limits{cmp.Or(l.Timeout, 10*time.Second), cmp.Or(l.Rows, 10_000), cmp.Or(l.Bytes, 64<<20)}
}

// An Answer is what a query of [Index.SQL] gives.
type Answer struct {
	Columns []string
	// Rows have an int64, a float64, a string, a []byte or nil for each column.
	Rows [][]any
	// Truncated means that a limit left out rows.
	Truncated bool
}

// ErrRefused is wrapped where a query asks for more than to read the tables.
var ErrRefused = errors.New("the query is refused")

// ErrTimeout is wrapped where a query takes too long.
var ErrTimeout = errors.New("the query takes too long")

// What SQLite grants a user's query. It looks for an interrupt only where a program jumps, so programs are short, and so are the values
// that a function takes.
var sqliteLimits = map[int]int{
	sqlite3.SQLITE_LIMIT_LENGTH:              256 << 10,
	sqlite3.SQLITE_LIMIT_SQL_LENGTH:          100_000,
	sqlite3.SQLITE_LIMIT_COLUMN:              200,
	sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          200,
	sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     50,
	sqlite3.SQLITE_LIMIT_VDBE_OP:             5000,
	sqlite3.SQLITE_LIMIT_FUNCTION_ARG:        32,
	sqlite3.SQLITE_LIMIT_ATTACHED:            0,
	sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 256,
	sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER:     0,
	sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH:       0,
	sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
}

// functions are those that a query may call. None of them reads a file, a setting or a state of the process. SQLite bounds the memory of
// each; that of json_group_array and its like it does not, so they are not here.
var functions = strings.Fields(`
	abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely lower ltrim max min nullif octet_length printf
	quote random randomblob replace round rtrim sign soundex substr substring trim typeof unhex unicode unistr unistr_quote unlikely upper zeroblob
	avg count group_concat string_agg sum total
	row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
	date time datetime julianday unixepoch strftime timediff current_date current_time current_timestamp
	-> ->> json json_array json_array_insert json_array_length json_error_position json_extract json_insert json_object json_patch
	json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract
	jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set
	acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians sin sinh sqrt tan tanh trunc`)

// tablesOfSQLite are those that a query may read besides ours.
var tablesOfSQLite = []string{"json_each", "json_tree", "jsonb_each", "jsonb_tree", "sqlite_schema", "sqlite_master"}

// SQL answers a query over the tables: one SELECT, WITH, VALUES or EXPLAIN. It cannot change anything, nor read anything else, and is
// bounded in time, rows and memory. A query inside a function of SQLite that cannot be interrupted is left to end by itself, and no more
// than four are answered at a time. See [Tables] for what there is.
func (ix *Index) SQL(ctx context.Context, query string, limits Limits) (answer Answer, err error) {
	tokens := tokensOf(query)
	err = checkStatement(query, tokens)
	if err == nil {
		err = checkSubqueries(tokens)
	}
	if err != nil {
		return Answer{}, err
	}
	limits = limits.orDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Timeout, ErrTimeout)
	defer cancel()
	repairable := func(err error) bool { return isDamage(err) || errors.Is(err, errReplaced) }
	err = ix.do(ctx, "the query", repairable, func(db *database) (err error) {
		answer, err = askUser(ctx, db, query, tokens, limits)
		return err
	})
	primary, _ := codeOf(err)
	switch {
	case errors.Is(err, ErrTimeout):
		return Answer{}, advice.Wrap(err, "ask for less, or allow more than %v", limits.Timeout)
	case errors.Is(err, ErrRefused):
		return Answer{}, err
	case primary == sqlite3.SQLITE_READONLY:
		return Answer{}, advice.Wrap(fmt.Errorf("%w: %w", ErrRefused, err), "only read with a query")
	case primary == sqlite3.SQLITE_TOOBIG:
		return Answer{}, advice.Wrap(err, "ask for shorter texts: a value has at most %d bytes", sqliteLimits[sqlite3.SQLITE_LIMIT_LENGTH])
	case primary == sqlite3.SQLITE_NOMEM:
		return Answer{}, advice.Wrap(err, "ask in a shorter query: SQLite may take %d steps for it", sqliteLimits[sqlite3.SQLITE_LIMIT_VDBE_OP])
	case err != nil:
		return Answer{}, advice.Wrap(err, "compare the query with the tables of docs/runs-sql.md")
	}
	return answer, nil
}

// grace is how long SQLite may take to notice that a query is interrupted. Tests shorten it.
var grace = time.Second

// atWork has an element for each query of a user that SQLite is at work on.
var atWork = make(chan struct{}, maxReaders)

// askUser asks a user's query, until the context ends. SQLite may be inside a function then, which it does not interrupt: the query is
// left to end by itself.
func askUser(ctx context.Context, db *database, query string, tokens []token, limits Limits) (a Answer, err error) {
	select {
	case atWork <- struct{}{}:
	case <-ctx.Done():
		return a, context.Cause(ctx)
	}
	done := make(chan func() (Answer, error), 1)
	go func() {
		a, err := answerUser(ctx, db, query, tokens, limits)
		<-atWork
		done <- func() (Answer, error) { return a, err }
	}()
	select {
	case answer := <-done:
		return answer()
	case <-ctx.Done():
	}
	select {
	case answer := <-done:
		return answer()
	case <-time.After(grace):
		return a, context.Cause(ctx)
	}
}

// answerUser answers a user's query over a connection of its own.
func answerUser(ctx context.Context, db *database, query string, tokens []token, limits Limits) (a Answer, err error) {
	guard := db
	if db.dir == "" {
		guard = nil
	}
	pool, err := openPool(db.userName(), guard, 1)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	c, err := pool.Conn(ctx)
	if err != nil {
		return a, err
	}
	defer func() { _ = c.Close() }() // the pool is closed with it
	refused, err := refusedNames(ctx, c)
	if err == nil {
		err = checkNames(tokens, refused)
	}
	if err != nil {
		return a, err
	}
	for limit, value := range sqliteLimits {
		if _, err := sqlite.Limit(c, limit, value); err != nil {
			return a, err
		}
	}
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if a.Columns, err = rows.Columns(); err != nil {
		return a, err
	}
	size := 0
	for rows.Next() {
		values, to := make([]any, len(a.Columns)), make([]any, len(a.Columns))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			return a, err
		}
		for _, v := range values {
			size += sizeOf(v)
		}
		if len(a.Rows) == limits.Rows || size > limits.Bytes {
			a.Truncated = true
			break
		}
		a.Rows = append(a.Rows, values)
	}
	return a, rows.Err()
}

func sizeOf(v any) int {
	const own = 16
	switch v := v.(type) {
	case string:
		return own + len(v)
	case []byte:
		return own + len(v)
	}
	return own
}
