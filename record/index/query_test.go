// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/record"
)

var firstDay = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fill puts rows into an index that has no files: run i is of day i.
func fill(t testing.TB, ix *Index, rows ...map[string]any) {
	t.Helper()
	sync1(t, ix) // of an empty store
	tx, err := ix.db.write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(t.Context(), tx, ix.store)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		began := firstDay.AddDate(0, 0, i)
		id := fmt.Sprintf("id-%06d", i)
		all := map[string]any{"run": began.Format(time.DateOnly) + "/" + id, "id": id, "state": "ended", "status": "success", "began": timeText(began), "path": "/x"}
		for name, value := range row {
			all[name] = value
		}
		if err := w.insert(t.Context(), "runs", ordered("runs", all)...); err != nil {
			t.Fatal(err)
		}
		if model, ok := all["model"]; ok {
			if err := w.insert(t.Context(), "tokens", all["run"], model, all["input_tokens"], all["output_tokens"], 0, 0, all["cost_usd"], 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// someRuns are seven runs of the days from firstDay on.
var someRuns = []map[string]any{
	{"agent": "claude-code", "name": "reviewer", "folder": "/a", "words": "Fix the 100% bug", "model": "big", "cost_usd": 1.0, "input_tokens": 10, "output_tokens": 1},
	{"agent": "claude-code", "folder": "/b", "words": "fix the test", "model": "small", "cost_usd": 0.5, "input_tokens": 20, "output_tokens": 2},
	{"agent": "scripted", "folder": "/a", "status": "error", "error": "no bug is here", "model": "big", "cost_usd": 4.0, "input_tokens": 30, "output_tokens": 3},
	{"agent": "scripted", "name": "reviewer", "folder": "/a", "state": "lost", "status": nil},
	{"agent": "scripted", "folder": "/b", "state": "running", "status": nil},
	{"state": "unreadable", "status": nil, "error": "it is torn"},
	{"agent": "claude-code", "folder": "/b", "status": "max_turns", "began": "2026-01-08T23:59:59.999Z"},
}

func TestRuns_Filter(t *testing.T) {
	ix := openIndex(t, openStore(t))
	fill(t, ix, someRuns...)
	day := func(i int) time.Time { return firstDay.AddDate(0, 0, i) }
	zone := time.FixedZone("east", 5*3600)
	for name, c := range map[string]struct {
		filter Filter
		want   []int
	}{
		"all, the latest first":    {Filter{}, []int{6, 5, 4, 3, 2, 1, 0}},
		"limit":                    {Filter{Limit: 2}, []int{6, 5}},
		"failed":                   {Filter{Failed: true}, []int{6, 5, 3, 2}},
		"since":                    {Filter{Since: day(5)}, []int{6, 5}},
		"until":                    {Filter{Until: day(2)}, []int{1, 0}},
		"another zone":             {Filter{Since: day(1).In(zone), Until: day(2).In(zone)}, []int{1}},
		"name of an agent":         {Filter{Agent: "reviewer"}, []int{3, 0}},
		"adapter":                  {Filter{Agent: "scripted"}, []int{4, 3, 2}},
		"folder":                   {Filter{Folder: "/a"}, []int{3, 2, 0}},
		"state":                    {Filter{State: record.Running}, []int{4}},
		"words in both cases":      {Filter{Words: []string{"FIX"}}, []int{1, 0}},
		"all words":                {Filter{Words: []string{"fix", "bug"}}, []int{0}},
		"words of an error":        {Filter{Words: []string{"bug"}}, []int{2, 0}},
		"a percent sign":           {Filter{Words: []string{"100%"}}, []int{0}},
		"a wildcard is a word":     {Filter{Words: []string{"1_0"}}, nil},
		"a percent sign is a word": {Filter{Words: []string{"0%b"}}, nil},
		"a quote":                  {Filter{Words: []string{"' OR 1 --"}}, nil},
		"an id":                    {Filter{Words: []string{"id-000003"}}, []int{3}},
		"all at once":              {Filter{Failed: true, Since: day(1), Until: day(6), Agent: "scripted", Folder: "/a", Limit: 1}, []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, row := range must(ix.Runs(t.Context(), c.filter)) {
				got = append(got, number(row.ID))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func number(id string) (n int) {
	_, _ = fmt.Sscanf(id, "id-%d", &n)
	return n
}

func TestRuns_RowHasWhatIsKnown(t *testing.T) {
	store := openStore(t)
	mustRun(t, store, richRun(), "Set the price.")
	row := must(synced(t, store).Last(t.Context()))
	run := must(store.Run(row.Run))
	if row.Path != run.Path || row.ID != run.ID || row.Session != run.Session || row.Prompt != run.Prompt || row.Status != run.End.Status || row.ResumeToken != run.End.ResumeToken {
		t.Errorf("the row is %+v, the run %+v", row, run)
	}
	if !row.Began.Equal(run.Began.Truncate(time.Millisecond)) || row.Ended.Before(row.Began) || row.Duration != run.End.Duration.Truncate(time.Millisecond) {
		t.Errorf("began %v, ended %v, took %v; the run has %v, %v, %v", row.Began, row.Ended, row.Duration, run.Began, run.End.Ended, run.End.Duration)
	}
	if row.CostUSD == nil || *row.CostUSD != 1 || row.InputTokens == nil || *row.InputTokens != 2225 || row.OutputTokens == nil {
		t.Errorf("cost %v, tokens %v and %v", row.CostUSD, row.InputTokens, row.OutputTokens)
	}
}

func TestLast_AndPrefix(t *testing.T) {
	ix := openIndex(t, openStore(t))
	sync1(t, ix)
	if _, err := ix.Last(t.Context()); !errors.Is(err, ErrNoRun) || advice.Of(err) == "" {
		t.Errorf("Last without runs: %v, advice %q", err, advice.Of(err))
	}
	fill(t, ix, someRuns...)
	if row := must(ix.Last(t.Context())); row.ID != "id-000006" {
		t.Errorf("Last is %s", row.ID)
	}
	for prefix, want := range map[string]int{"": 7, "id": 7, "id-000003": 1, "id-000003x": 0, "ID": 0, "%": 0, "d-": 0} {
		if got := must(ix.Prefix(t.Context(), prefix)); len(got) != want {
			t.Errorf("%d runs begin with %q, want %d", len(got), prefix, want)
		}
	}
}

func TestCost_Groups(t *testing.T) {
	ix := openIndex(t, openStore(t))
	fill(t, ix, someRuns...)
	for _, c := range []struct {
		by     string
		filter Filter
		want   string
	}{
		{"agent", Filter{}, "scripted 2 1 4 30 3; reviewer 2 1 1 10 1; claude-code 2 1 0.5 20 2;  1 1 0 0 0"},
		{"folder", Filter{}, "/a 3 1 5 40 4; /b 3 2 0.5 20 2;  1 1 0 0 0"},
		{"model", Filter{}, "big 2 0 5 40 4; small 1 0 0.5 20 2"},
		{"model", Filter{Failed: true, Agent: "scripted"}, "big 1 0 4 30 3"},
		{"day", Filter{Limit: 2}, "2026-01-08 1 1 0 0 0; 2026-01-07 1 1 0 0 0"},
		{"day", Filter{Until: firstDay.AddDate(0, 0, 1)}, "2026-01-02 1 0 1 10 1"},
	} {
		var got []string
		for _, r := range must(ix.Cost(t.Context(), c.by, c.filter)) {
			got = append(got, fmt.Sprintf("%s %d %d %v %d %d", r.Key, r.Runs, r.Unknown, r.CostUSD, r.Input, r.Output))
		}
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("by %s %+v:\n got %s\nwant %s", c.by, c.filter, got, c.want)
		}
	}
	if _, err := ix.Cost(t.Context(), "moon", Filter{}); err == nil || !strings.Contains(advice.Of(err), "folder") {
		t.Errorf("by moon: %v", err)
	}
}

func TestSQL_Answers(t *testing.T) {
	ix := openIndex(t, openStore(t))
	fill(t, ix, someRuns...)
	for query, want := range map[string]string{
		"SELECT count(*) FROM runs": `["count(*)"] [[7]]`,
		" -- how many\n/* of; them */ select count(*) AS n from runs ; -- all\n ;":                       `["n"] [[7]]`,
		"WITH x(a) AS (SELECT id FROM runs) SELECT count(*) FROM x":                                      `["count(*)"] [[7]]`,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5) SELECT sum(i) FROM n": `["sum(i)"] [[15]]`,
		"VALUES (1, 2.5, 'a;b', NULL, x'00ff')":                                                          `["column1","column2","column3","column4","column5"] [[1,2.5,"a;b",null,"AP8="]]`,
		"SELECT \"id\" AS [a;b] FROM runs WHERE `id` = 'id-000000'":                                      `["a;b"] [["id-000000"]]`,
		"SELECT value FROM json_each('[7]')":                                                             `["value"] [[7]]`,
		"SELECT date(began) FROM runs ORDER BY began LIMIT 1":                                            `["date(began)"] [["2026-01-02"]]`,
		"SELECT row_number() OVER (ORDER BY id) AS r FROM runs LIMIT 1":                                  `["r"] [[1]]`,
		"SELECT '_state' = 'pragma_x' AS v":                                                              `["v"] [[0]]`,
		"SELECT '{\"a\":1}' ->> 'a' AS v":                                                                `["v"] [[1]]`,
		"WITH a AS (SELECT 1 AS i), b(i) AS NOT MATERIALIZED (SELECT a.i FROM a), c AS (SELECT b.i, b.i FROM b JOIN a USING (i)) SELECT count(*) FROM c AS x, c AS y": `["count(*)"] [[1]]`,
		"SELECT count(*) AS n FROM sqlite_schema WHERE name = 'runs'": `["n"] [[1]]`,
		`WITH days AS (SELECT run, substr(began, 1, 10) AS day, cost_usd AS usd, coalesce(name, agent) AS who FROM runs WHERE state = 'ended' AND cost_usd > 0),
			sums AS (SELECT day, who, sum(usd) AS usd, count(run) AS runs, sum(usd) / count(run) AS each FROM days GROUP BY day, who HAVING sum(usd) > 0),
			ranked AS (SELECT day, who, usd, runs, each, rank() OVER (PARTITION BY day ORDER BY usd DESC) AS place FROM sums WHERE runs > 0),
			best AS (SELECT day, max(who) AS who, max(usd) AS usd, max(runs) AS runs FROM ranked WHERE place = 1 GROUP BY day)
			SELECT count(*) AS n FROM best JOIN ranked USING (day, who) WHERE best.usd >= ranked.usd`: `["n"] [[3]]`,
	} {
		a, err := ix.SQL(t.Context(), query, Limits{})
		columns, _ := json.Marshal(a.Columns)
		rows, _ := json.Marshal(a.Rows)
		if got := string(columns) + " " + string(rows); err != nil || got != want || a.Truncated {
			t.Errorf("%s\n got %s, %v\nwant %s", query, got, err, want)
		}
	}
	if a, err := ix.SQL(t.Context(), "EXPLAIN QUERY PLAN SELECT * FROM runs", Limits{}); err != nil || len(a.Rows) == 0 {
		t.Errorf("EXPLAIN: %v, %v", a, err)
	}
}

// TestSQL_Refused has what a query must not do. None of these changes a file, reads another one, or tells what is in the process.
func TestSQL_Refused(t *testing.T) {
	store := openStore(t)
	ix := openIndex(t, store)
	fill(t, ix, someRuns...)
	other := filepath.Join(t.TempDir(), "other.db")
	for _, query := range []string{
		"", ";", "--", "hello",
		"DELETE FROM runs", "UPDATE runs SET id = 1", "INSERT INTO runs(run) VALUES ('x')", "REPLACE INTO runs(run) VALUES ('x')", "DROP TABLE runs",
		"CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "ALTER TABLE runs ADD COLUMN x", "VACUUM", "VACUUM INTO '" + other + "'", "REINDEX", "ANALYZE",
		"BEGIN", "COMMIT", "SAVEPOINT x", "ATTACH '" + other + "' AS x", "DETACH main", "PRAGMA user_version", "PRAGMA query_only = 0", "PRAGMA writable_schema = 1",
		"SELECT 1; DELETE FROM runs", "SELECT 1; SELECT 2", "SELECT 1 /* ; */; ATTACH '" + other + "' AS x", "SELECT ';'; DELETE FROM runs", "SELECT 1\x00; DELETE FROM runs",
		"WITH x AS (SELECT 1) DELETE FROM runs", "WITH x AS (SELECT 1) INSERT INTO runs(run) SELECT 'x'", "WITH x AS (SELECT 1) UPDATE runs SET id = 'x'",
		"EXPLAIN DELETE FROM runs", "EXPLAIN ATTACH '" + other + "' AS x",
		"SELECT load_extension('" + other + "')", "SELECT readfile('/etc/passwd')", "SELECT writefile('" + other + "', 'x')", "SELECT edit('x')", "SELECT fts3_tokenizer('simple')",
		"SELECT \"load_extension\"('x')", "SELECT [load_extension] /* a comment */ ('x')", "SELECT `Load_Extension`('x')",
		"SELECT * FROM 'pragma_database_list'", "SELECT * FROM \"pragma_database_list\"", "SELECT * FROM [_state]", "SELECT * FROM '_state'", "SELECT * FROM runs, '_state'",
		"SELECT * FROM main.'_state'", "SELECT * FROM runs JOIN '_state'", "SELECT 1 IN '_state'", "SELECT 1 FROM ('_state')", "SELECT '''', * FROM _state",
		"EXPLAIN PRAGMA user_version", "EXPLAIN QUERY PLAN DELETE FROM runs", "SELECT * FROM fts5vocab", "SELECT * FROM vec_each('[1]')",
		"SELECT sqlite_compileoption_get(1)", "SELECT sqlite_source_id()", "SELECT sqlite_offset(id) FROM runs", "SELECT sqlite_log(1, 'x')", "SELECT last_insert_rowid()",
		"SELECT * FROM pragma_database_list", "SELECT count(*) FROM pragma_database_list", "SELECT 1 FROM Pragma_database_list", "SELECT file FROM pragma_database_list()",
		"SELECT * FROM pragma_table_info('runs')", "SELECT * FROM main.pragma_database_list",
		"SELECT * FROM _state", "SELECT count(*) FROM _state", "SELECT 1 FROM _open", "SELECT * FROM main._state", "SELECT id FROM runs WHERE 1 IN (SELECT value FROM _state)",
		"SELECT * FROM dbstat", "SELECT count(*) FROM dbstat", "SELECT * FROM sqlite_dbpage", "SELECT * FROM sqlite_stmt", "SELECT * FROM bytecode('SELECT 1')",
		"SELECT * FROM sqlite_temp_schema", "SELECT JSON_GROUP_ARRAY (id) FROM runs", "SELECT json_group_object(id, 1) FROM runs", "SELECT jsonb_group_array(id) FROM runs",
		"SELECT jsonb_group_object(id, 1) FROM runs",
		"SELECT id FROM runs WHERE \"no such column\" = 'x'",
	} {
		a, err := ix.SQL(t.Context(), query, Limits{})
		if err == nil {
			t.Errorf("%s\n answers %v", query, a)
		} else if advice.Of(err) == "" {
			t.Errorf("%s: %v: without advice", query, err)
		} else if begin := regexp.MustCompile(`(?i)^(select|with|values|explain)\b`); !begin.MatchString(query) && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v: only SQLite refuses it", query, err)
		}
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a query has made a file")
	}
	if rows := must(ix.Runs(t.Context(), Filter{})); len(rows) != len(someRuns) {
		t.Errorf("the index has %d runs, want %d", len(rows), len(someRuns))
	}
	if n := ix.Notices(); len(n) != 0 {
		t.Errorf("the notices are %+v", n)
	}
}

// The connection of a query cannot write even without the checks of its text and of its operations.
func TestSQL_ConnectionIsReadOnly(t *testing.T) {
	store := openStore(t)
	for name, ix := range map[string]*Index{"file": openIndex(t, store), "memory": openIndex(t, store)} {
		if name == "memory" {
			ix.mu.Lock()
			err := errors.Join(ix.db.close(), ix.openMemory(t.Context(), errors.New("for the test")))
			ix.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
		}
		fill(t, ix, someRuns...)
		pool, err := openPool(ix.db.userName(), nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.ExecContext(t.Context(), "DELETE FROM runs"); err == nil {
			t.Errorf("%s: the connection writes", name)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		for _, query := range []string{"DELETE FROM runs", "ATTACH '" + filepath.Join(store.Dir(), databaseFile) + "' AS x"} {
			if _, err := answerUser(t.Context(), ix.db, query, nil, Limits{}.orDefaults()); err == nil {
				t.Errorf("%s: %s is answered", name, query)
			}
		}
	}
}

func TestLimits_Defaults(t *testing.T) {
	if got, want := (Limits{}).orDefaults(), (Limits{10 * time.Second, 10_000, 64 << 20}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if some := (Limits{time.Second, 1, 2}); some.orDefaults() != some {
		t.Errorf("got %+v, want %+v", some.orDefaults(), some)
	}
}

// TestSQL_Bombs has queries that would take all time or memory.
func TestSQL_Bombs(t *testing.T) {
	before := grace
	grace = 100 * time.Millisecond
	defer func() { grace = before }()
	ix := openIndex(t, openStore(t))
	fill(t, ix, someRuns...)
	endless := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) "
	doubling := "WITH c0(a) AS (SELECT 1 UNION ALL SELECT 2)"
	for i := range 40 {
		doubling += fmt.Sprintf(", c%d(a) AS (SELECT x.a FROM c%d AS x, c%d AS y)", i+1, i, i)
	}
	shadows := ""
	for range 40 {
		shadows = "WITH 'x' AS (" + shadows + "SELECT 1 FROM x AS a, [x] AS b) "
	}
	columns, nested := "WITH c0(a) AS (SELECT id FROM runs)", "(SELECT id AS a FROM runs)"
	for i := range 40 {
		columns += fmt.Sprintf(", c%d(a) AS (SELECT a||\"a\" FROM c%d)", i+1, i)
		nested = "(SELECT a||a AS a FROM " + nested + ")"
	}
	timeout := Limits{Timeout: 200 * time.Millisecond}
	for name, c := range map[string]struct {
		query  string
		limits Limits
		want   error // nil means any
	}{
		"endless recursion":   {endless + "SELECT count(*) FROM n", timeout, ErrTimeout},
		"endless, sorted":     {endless + "SELECT i FROM n ORDER BY i DESC", timeout, ErrTimeout},
		"endless, no row":     {endless + "SELECT i FROM n WHERE i < 0", timeout, ErrTimeout},
		"cross join":          {"SELECT count(*) FROM json_each(" + list(300) + ") a, json_each(" + list(300) + ") b, json_each(" + list(300) + ") c, json_each(" + list(300) + ") d", timeout, ErrTimeout},
		"zeroblob":            {"SELECT zeroblob(1000000000)", Limits{}, nil},
		"randomblob":          {"SELECT randomblob(1000000000)", Limits{}, nil},
		"printf":              {"SELECT printf('%1000000000d', 1)", Limits{}, nil},
		"printf with a width": {"SELECT printf('%.*c', 1000000000, 'x')", Limits{}, nil},
		"group_concat":        {endless + "SELECT group_concat(printf('%1000d', i)) FROM n", timeout, ErrTimeout},
		"distinct texts":      {endless + "SELECT count(DISTINCT printf('%1000d', i)) FROM n", timeout, ErrTimeout},
		"sorted texts":        {endless + "SELECT i FROM n ORDER BY printf('%1000d', i)", timeout, ErrTimeout},
		"window":              {endless + "SELECT sum(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM n", timeout, ErrTimeout},
		"json_group_array":    {endless + "SELECT json_group_array(printf('%1000d', i)) FROM n", Limits{}, ErrRefused},
		"replace":             {"SELECT replace(replace(printf('%5000d', 1), ' ', printf('%5000d', 1)), ' ', printf('%5000d', 1))", Limits{}, nil},
		"concatenation":       {"SELECT hex(hex(hex(hex(printf('%100000d', 1)))))", Limits{}, nil},
		"a long text":         {"SELECT '" + strings.Repeat("x", 200_000) + "'", Limits{}, nil},
		"deep expression":     {"SELECT " + strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 10_000), Limits{}, nil},
		"sum of many":         {"SELECT 1" + strings.Repeat("+1", 10_000), Limits{}, nil},
		"many selects":        {"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 3000), Limits{}, nil},
		"doubling subqueries": {doubling + " SELECT count(*) FROM c40", Limits{}, ErrRefused},
		"doubling by shadows": {shadows + "SELECT count(*) FROM x", Limits{}, ErrRefused},
		"doubling columns":    {columns + " SELECT length(a) FROM c40", Limits{}, ErrRefused},
		"doubling, nested":    {"SELECT length(a) FROM " + nested, Limits{}, ErrRefused},
		"long search":         {"SELECT 1" + strings.Repeat("+instr(hex(zeroblob(60000)), hex(zeroblob(30000))||'1')", 5), timeout, ErrTimeout},
		"long straight line":  {"SELECT 1" + strings.Repeat(", 1"+strings.Repeat("+length(hex(zeroblob(120000)))", 100), 30), timeout, nil},
		"long pattern":        {"SELECT printf('%60000d', 1) LIKE '" + strings.Repeat("% ", 20_000) + "x'", Limits{}, nil},
		"costly patterns":     {endless + "SELECT sum(printf('%60000d', i) LIKE '" + strings.Repeat("% ", 100) + "x') FROM n", timeout, ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			resetPeakMemory()
			before, began := peakMemory(t), time.Now()
			a, err := ix.SQL(t.Context(), c.query, c.limits)
			took := time.Since(began)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || advice.Of(err) == "" {
				t.Errorf("it answers with %d rows and %v, advice %q", len(a.Rows), err, advice.Of(err))
			}
			if name == "long search" && len(atWork) == 0 {
				t.Error("the query was not left to end by itself")
			}
			if took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			if grown := peakMemory(t) - before; grown > 64<<10 {
				t.Errorf("the process grew by %d kB", grown)
			}
		})
	}
	if rows := must(ix.Runs(t.Context(), Filter{})); len(rows) != len(someRuns) {
		t.Errorf("the index has %d runs, want %d", len(rows), len(someRuns))
	}
}

// resetPeakMemory has peakMemory count from now on.
func resetPeakMemory() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakMemory is the largest size that this process had, in kilobytes, where the system tells. SQLite's memory is not that of Go.
func peakMemory(t *testing.T) (kilobytes int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	_, text, _ := strings.Cut(string(must(os.ReadFile("/proc/self/status"))), "VmHWM:")
	if _, err := fmt.Sscan(text, &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes
}

// list is a JSON list as a text of SQL.
func list(n int) string { return "'[" + strings.Repeat("1,", n-1) + "1]'" }

func TestSQL_Limits(t *testing.T) {
	ix := openIndex(t, openStore(t))
	fill(t, ix, someRuns...)
	count := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) SELECT i FROM n"
	for name, c := range map[string]struct {
		query     string
		limits    Limits
		rows      int
		truncated bool
	}{
		"as many as allowed": {fmt.Sprintf(count, 5), Limits{Rows: 5}, 5, false},
		"one more":           {fmt.Sprintf(count, 6), Limits{Rows: 5}, 5, true},
		"endless":            {fmt.Sprintf(count, 1<<60), Limits{Rows: 5}, 5, true},
		"the default":        {fmt.Sprintf(count, 1<<60), Limits{}, 10_000, true},
		"bytes":              {strings.Replace(fmt.Sprintf(count, 1<<60), "SELECT i FROM", "SELECT printf('%1000d', i) FROM", 1), Limits{Bytes: 10_160}, 10, true},
	} {
		a, err := ix.SQL(t.Context(), c.query, c.limits)
		if err != nil || len(a.Rows) != c.rows || a.Truncated != c.truncated {
			t.Errorf("%s: %d rows, truncated %v, %v; want %d, %v", name, len(a.Rows), a.Truncated, err, c.rows, c.truncated)
		}
	}
	for range cap(atWork) { // SQLite is at work on as many queries as it may, though their callers have gone
		atWork <- struct{}{}
	}
	if _, err := ix.SQL(t.Context(), "SELECT 1", Limits{Timeout: 20 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Errorf("beside others: %v", err)
	}
	for range cap(atWork) {
		<-atWork
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ix.SQL(ctx, "SELECT 1", Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func TestCut_Texts(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 5, "short"}, {"longer", 5, "longe… [cut: 6 bytes]"}, {"aé", 2, "a… [cut: 3 bytes]"}, {"\xff\xff\xff", 1, "\xff… [cut: 3 bytes]"},
	} {
		if got := cutAt(c.text, c.limit); got != c.want {
			t.Errorf("cutAt(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestShortJSON_StaysJSON(t *testing.T) {
	long := strings.Repeat("é\"", maxText)
	quoted, _ := json.Marshal(long)
	for name, c := range map[string]struct {
		raw  string
		want func(any) bool
	}{
		"short":        {`{"a": 1.50}`, func(v any) bool { return v.(map[string]any)["a"] == 1.5 }},
		"a string":     {string(quoted), func(v any) bool { return strings.HasSuffix(v.(string), fmt.Sprintf("… [cut: %d bytes]", len(long))) }},
		"in an object": {`{"a":7,"b":[` + string(quoted) + `]}`, func(v any) bool { return v.(map[string]any)["a"] == 7.0 }},
		"many values":  {"[" + strings.Repeat("1,", maxText) + "1]", func(v any) bool { return v.(map[string]any)["cut"] == float64(2*maxText+3) }},
	} {
		got := shortJSON(json.RawMessage(c.raw))
		var v any
		if err := json.Unmarshal(got, &v); err != nil || len(got) > maxText || !c.want(v) {
			t.Errorf("%s: %.100s, %v", name, got, err)
		}
	}
}

// The page has a table for each table, with each column.
func TestPage_HasEveryTableAndColumn(t *testing.T) {
	page := string(must(os.ReadFile("../../docs/runs-sql.md")))
	sections := 0
	for _, table := range Tables() {
		rows := ""
		for _, c := range table.Columns {
			rows += "| `" + c.Name + "` | " + c.Type + " | " + c.About + " |\n"
		}
		want := "\n### `" + table.Name + "`\n\n" + table.About + "\n\n| column | type | |\n|---|---|---|\n" + rows + "\n"
		if !strings.Contains(page, want) {
			t.Errorf("the page needs this section:\n%s", want)
		}
		sections++
	}
	if got := strings.Count(page, "\n### "); got != sections {
		t.Errorf("the page has %d tables, want %d", got, sections)
	}
}

// The page's queries are queries.
func TestPage_QueriesAnswer(t *testing.T) {
	ix := openIndex(t, openStore(t))
	fill(t, ix, someRuns...)
	parts := strings.Split(string(must(os.ReadFile("../../docs/runs-sql.md"))), "\n```sql\n")[1:]
	for _, part := range parts {
		query, _, _ := strings.Cut(part, "\n```\n")
		if _, err := ix.SQL(t.Context(), query, Limits{}); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if len(parts) < 3 {
		t.Errorf("the page has %d queries, want some", len(parts))
	}
}

// BenchmarkRuns shows that a list does not take longer with a hundred times as many runs.
func BenchmarkRuns(b *testing.B) {
	took := map[int]time.Duration{}
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			ix := openIndex(b, openStore(b))
			rows := make([]map[string]any, n)
			for i := range rows {
				began := firstDay.Add(time.Duration(i) * time.Minute)
				rows[i] = map[string]any{"run": fmt.Sprintf("%s/%d", began.Format(time.DateOnly), i), "began": timeText(began), "words": "Fix the test.", "agent": "claude-code"}
			}
			fill(b, ix, rows...)
			for b.Loop() {
				sync1(b, ix)
				if got := must(ix.Runs(b.Context(), Filter{Limit: 50})); len(got) != 50 {
					b.Fatalf("%d rows", len(got))
				}
			}
			took[n] = b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(took[n])/float64(took[1000]), "times-as-long")
		})
	}
}
