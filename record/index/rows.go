// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/session"
)

// Unreadable is the state of a run whose files cannot be read. Package record has no name for it.
const Unreadable record.State = "unreadable"

// maxWords is how many characters of the prompt are in the column words.
const maxWords = 200

// timeForm is RFC 3339 in UTC. All times have the same length, so that their order is that of the texts.
const timeForm = "2006-01-02T15:04:05.000Z"

// A writer replaces the rows of runs in a transaction.
type writer struct {
	tx      *sql.Tx
	store   *record.Store
	inserts map[string]*sql.Stmt
}

func newWriter(ctx context.Context, tx *sql.Tx, store *record.Store) (*writer, error) {
	w := &writer{tx, store, map[string]*sql.Stmt{}}
	for _, t := range tables {
		insert, err := tx.PrepareContext(ctx, insertStatement(t))
		if err != nil {
			return nil, err
		}
		w.inserts[t.Name] = insert
	}
	return w, nil
}

func (w *writer) insert(ctx context.Context, table string, values ...any) error {
	_, err := w.inserts[table].ExecContext(ctx, values...)
	return err
}

// remove removes all rows of a run.
func (w *writer) remove(ctx context.Context, run string) error {
	for _, t := range tables {
		if _, err := w.tx.ExecContext(ctx, "DELETE FROM "+t.Name+" WHERE run = ?", run); err != nil {
			return err
		}
	}
	_, err := w.tx.ExecContext(ctx, "DELETE FROM _open WHERE run = ?", run)
	return err
}

// put replaces the rows of a run by those that its files give. A run that is gone has no rows.
func (w *writer) put(ctx context.Context, run string) error {
	r, err := w.store.Run(run)
	if errors.Is(err, fs.ErrNotExist) {
		return w.remove(ctx, run)
	}
	var size int64
	if err == nil && r.State == record.Running {
		var known int64
		size = logSize(r) // before it is read: more of it is another size
		switch scanned := w.tx.QueryRowContext(ctx, "SELECT size FROM _open WHERE run = ?", run).Scan(&known); {
		case scanned == nil && known == size:
			return nil
		case scanned != nil && !errors.Is(scanned, sql.ErrNoRows):
			return scanned
		}
	}
	if err := w.remove(ctx, run); err != nil {
		return err
	}
	if err != nil {
		return w.unreadable(ctx, run, err)
	}
	rows := newRunRows(run, r)
	for entry, err := range r.Entries() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			rows.problem = err.Error()
			break
		}
		if err := rows.entry(ctx, w, entry); err != nil {
			return err
		}
	}
	if err := rows.end(ctx, w); err != nil {
		return err
	}
	if r.State != record.Running {
		return nil
	}
	_, err = w.tx.ExecContext(ctx, "INSERT INTO _open VALUES (?, ?)", run, size)
	return err
}

// unreadable has a run in the index that cannot be read. It is tried again at each Sync.
func (w *writer) unreadable(ctx context.Context, run string, err error) error {
	day, id, _ := strings.Cut(run, "/")
	began, _ := time.Parse(time.DateOnly, day)
	values := map[string]any{
		"run": run, "id": id, "state": string(Unreadable), "error": cut(err.Error()), "began": timeText(began),
		"path": filepath.Join(w.store.Dir(), filepath.FromSlash(run)),
	}
	if err := w.insert(ctx, "runs", ordered("runs", values)...); err != nil {
		return err
	}
	_, err = w.tx.ExecContext(ctx, "INSERT INTO _open VALUES (?, -1)", run)
	return err
}

// logSize is the size of the log of a run, or -1.
func logSize(r *record.Run) int64 {
	info, err := os.Stat(filepath.Join(r.Path, "events.jsonl"))
	if err != nil {
		return -1
	}
	return info.Size()
}

// runRows collects what several entries of a run have in common.
type runRows struct {
	run       string
	r         *record.Run
	words     string
	model     string
	isolation string
	version   string
	problem   string
	turns     int
	calls     map[event.CallID]*callRow
	order     []event.CallID
	counted   map[string]*tokenRow // by model, of the gateway
	files     map[string]int
}

type callRow struct {
	tool, input, status, output string
	verdict, policy, reason     string
	began, ended                time.Time
	duration                    time.Duration
}

type tokenRow struct {
	input, output, cacheRead, cacheWrite int64
	cost                                 *float64
	calls                                *int64
}

func newRunRows(run string, r *record.Run) *runRows {
	return &runRows{run: run, r: r, calls: map[event.CallID]*callRow{}, counted: map[string]*tokenRow{}, files: map[string]int{}}
}

// as decodes a payload into a type, whether the log gave it as that type or as JSON. One that does not fit is the zero value.
func as[T event.Payload](e event.Event, raw json.RawMessage) T {
	v, ok := e.Payload.(T)
	if !ok {
		_ = json.Unmarshal(raw, &v)
	}
	return v
}

// entry adds the row of an entry, and notes what else it tells.
func (r *runRows) entry(ctx context.Context, w *writer, entry session.Entry) error {
	e := entry.Event
	raw, err := plainjson.Marshal(e.Payload)
	if err != nil {
		raw = json.RawMessage("null")
	}
	id := e.CallID()
	switch e.Kind {
	case event.KindInit:
		init := as[event.Init](e, raw)
		r.model = cmp.Or(r.model, init.Model)
		r.version = cmp.Or(r.version, versionIn(init.Capabilities))
	case "prompt:rendered":
		if r.words == "" {
			r.words = firstWords(as[session.PromptRendered](e, raw).Text)
		}
	case event.KindToolUse:
		use := as[event.ToolCall](e, raw)
		c := r.call(use.ID)
		c.tool, c.input, c.began = use.Name, string(shortJSON(objectOf(use.Input))), e.Time
	case event.KindToolResult:
		result := as[event.ToolResult](e, raw)
		c := r.call(result.ID)
		c.tool, c.status, c.ended, c.duration = cmp.Or(c.tool, result.Name), string(result.Status), e.Time, result.Duration
		if c.output = textOf(result.Output); c.output == "" && result.Failure != nil {
			c.output = cut(result.Failure.Message)
		}
	case "tool:invoked":
		invoked := as[session.ToolInvoked](e, raw)
		if id = invoked.CallID; id != "" {
			r.invoked(invoked, e.Time)
		}
	case event.KindDecision:
		d := as[event.Decision](e, raw)
		if d.CallID != "" {
			c := r.call(d.CallID)
			c.tool, c.verdict, c.policy, c.reason = cmp.Or(c.tool, d.Tool), d.Verdict.String(), d.Policy, d.Reason
		}
		if err := w.insert(ctx, "decisions", r.run, entry.Pos, null(string(d.CallID)), null(d.Tool), d.Verdict.String(), null(d.Policy),
			null(cut(d.Reason)), d.Asked, null(string(shortJSON(chainOf(e, raw))))); err != nil {
			return err
		}
	case event.KindError:
		problem := as[event.Error](e, raw)
		if err := w.insert(ctx, "errors", r.run, entry.Pos, null(cut(problem.Code)), cut(problem.Message), problem.Recoverable); err != nil {
			return err
		}
	case "file:modified":
		if path := as[session.FileModified](e, raw).Path; path != "" {
			r.files[path]++
		}
	case gateway.KindModelCall:
		r.count(as[gateway.ModelCall](e, raw))
	case isolation.KindProtection:
		var protection struct{ Level string }
		if json.Unmarshal(raw, &protection) == nil {
			r.isolation = protection.Level
		}
	}
	r.turns = max(r.turns, e.Turn)
	return w.insert(ctx, "events", r.run, entry.Pos, null(e.Seq), string(e.Kind), timeText(e.Time), null(e.Turn), null(string(id)),
		null(e.AgentID), string(shortJSON(raw)))
}

func (r *runRows) call(id event.CallID) *callRow {
	c := r.calls[id]
	if c == nil {
		c = &callRow{}
		r.calls[id] = c
		r.order = append(r.order, id)
	}
	return c
}

// invoked is the session's report of a call. The agent's own comes first, where there is one.
func (r *runRows) invoked(t session.ToolInvoked, at time.Time) {
	c := r.call(t.CallID)
	if c.input == "" {
		c.tool, c.input, c.began = cmp.Or(c.tool, t.Name), string(shortJSON(objectOf(t.Params))), at.Add(-t.Duration)
	}
	if c.status == "" {
		c.status, c.ended, c.output = string(t.Status), at, cut(cmp.Or(t.Output, t.Error))
	}
	c.duration = cmp.Or(c.duration, t.Duration)
}

// count adds a model call of the gateway. Those that ask for no answer cost nothing and are not counted.
func (r *runRows) count(call gateway.ModelCall) {
	if call.Operation == "count_tokens" || call.Operation == "inference_profiles" {
		return
	}
	row := r.counted[call.Model]
	if row == nil {
		row = &tokenRow{calls: new(int64)}
		r.counted[call.Model] = row
	}
	t := call.Tokens
	*row.calls++
	row.input += t.AllInput()
	row.output += t.Output
	row.cacheRead += t.CacheRead
	row.cacheWrite += t.CacheWrite5m + t.CacheWrite1h
	if !call.Unpriced {
		row.cost = plus(row.cost, &call.CostUSD)
	}
}

// plus adds figures of which either may be unknown.
func plus[N int64 | float64](a, b *N) *N {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}

// reported are the rows of what the agent reports at the end, by model.
func (r *runRows) reported() map[string]*tokenRow {
	rows := map[string]*tokenRow{}
	if r.r.End == nil {
		return rows
	}
	usage := r.r.End.Usage
	add := func(model string, requests int64, count event.TokenCount, cost *event.Cost) {
		row := rows[model]
		if row == nil {
			row = &tokenRow{}
			rows[model] = row
		}
		row.input += count.Input.Total
		row.output += count.Output.Total
		row.cacheRead += value(count.Input.CacheRead)
		row.cacheWrite += value(count.Input.CacheWrite)
		if requests > 0 {
			row.calls = plus(row.calls, &requests)
		}
		if cost != nil {
			row.cost = plus(row.cost, &cost.USD)
		}
	}
	model := cmp.Or(r.model, r.r.Model)
	switch {
	case usage.Tokens == nil && usage.Cost == nil:
	case usage.Tokens == nil:
		add(model, 0, event.TokenCount{}, usage.Cost)
	case len(usage.Tokens.Records) == 0:
		add(model, 0, usage.Tokens.Totals, usage.Cost)
	default:
		for _, record := range usage.Tokens.Records {
			cost := record.Cost
			if len(usage.Tokens.Records) == 1 && cost == nil {
				cost = usage.Cost
			}
			add(cmp.Or(record.Model, model), record.Requests, record.Tokens, cost)
		}
	}
	return rows
}

func value[N any](p *N) (v N) {
	if p != nil {
		v = *p
	}
	return v
}

// end adds the rows that all entries together give.
func (r *runRows) end(ctx context.Context, w *writer) error {
	for _, id := range r.order {
		c := r.calls[id]
		var duration any
		if c.duration != 0 {
			duration = c.duration.Milliseconds()
		}
		if err := w.insert(ctx, "calls", r.run, string(id), null(c.tool), null(c.input), null(c.status), null(c.output), null(c.verdict), null(c.policy),
			null(cut(c.reason)), timeText(c.began), timeText(c.ended), duration); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(r.files)) {
		if err := w.insert(ctx, "files", r.run, cut(path), r.files[path]); err != nil {
			return err
		}
	}
	models := r.counted
	if len(models) == 0 {
		models = r.reported()
	}
	var sum tokenRow
	for _, model := range slices.Sorted(maps.Keys(models)) {
		t := models[model]
		sum.input += t.input
		sum.output += t.output
		sum.cost = plus(sum.cost, t.cost)
		if err := w.insert(ctx, "tokens", r.run, model, t.input, t.output, t.cacheRead, t.cacheWrite, t.cost, t.calls); err != nil {
			return err
		}
	}
	return w.insert(ctx, "runs", ordered("runs", r.row(sum, len(models) > 0))...)
}

// row has the columns of the table runs.
func (r *runRows) row(sum tokenRow, counted bool) map[string]any {
	i := r.r.Info
	row := map[string]any{
		"run": r.run, "id": i.ID, "session": null(i.Session), "agent": null(i.Agent), "name": null(i.Name), "prompt_name": null(i.Prompt),
		"words": null(r.words), "folder": null(i.Folder), "model": null(cmp.Or(r.model, i.Model)), "state": string(r.r.State), "problem": null(cut(r.problem)),
		"began": timeText(i.Began), "turns": r.turns, "isolation": null(r.isolation), "agent_version": null(r.version), "drover_version": null(i.Versions["drover"]),
		"resumes": null(i.Resumes), "path": r.r.Path,
	}
	if counted {
		row["input_tokens"], row["output_tokens"], row["cost_usd"] = sum.input, sum.output, sum.cost
	}
	if e := r.r.End; e != nil {
		row["status"], row["kind"], row["error"], row["resume_token"] = string(e.Status), null(e.Kind), null(cut(e.Error)), null(e.ResumeToken)
		row["ended"], row["duration_ms"], row["turns"] = timeText(e.Ended), e.Duration.Milliseconds(), max(e.Turns, r.turns)
		row["problem"] = null(cut(cmp.Or(r.problem, e.Problem)))
		if sum.cost == nil && e.Usage.Cost != nil { // of models that the gateway has no price for
			row["cost_usd"] = e.Usage.Cost.USD
		}
	}
	return row
}

// ordered are values by the name of their column, in the order of the table.
func ordered(table string, values map[string]any) []any {
	at := slices.IndexFunc(tables, func(t Table) bool { return t.Name == table })
	list := make([]any, len(tables[at].Columns))
	for i, c := range tables[at].Columns {
		list[i] = values[c.Name]
	}
	return list
}

// null is nil for a value that is not there.
func null[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// timeText is nil for the zero time.
func timeText(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(timeForm)
}

// cut bounds a text, and names its length where something is missing.
func cut(text string) string { return cutAt(text, maxText) }

func cutAt(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	at := limit
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return fmt.Sprintf("%s… [cut: %d bytes]", text[:at], len(text))
}

// firstWords is the beginning of a text, on one line.
func firstWords(text string) string {
	text = strings.Join(strings.Fields(cutAt(text, 64*maxWords)), " ")
	if utf8.RuneCountInString(text) <= maxWords {
		return text
	}
	return string([]rune(text)[:maxWords-1]) + "…"
}

// textOf is the text of an output: that of a JSON string, or JSON.
func textOf(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return cut(text)
	}
	return string(shortJSON(raw))
}

func objectOf(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// maxString bounds the strings of JSON that is too long.
const maxString = 4 << 10

// shortJSON bounds JSON so that it stays JSON: SQL functions fail over a part of one.
func shortJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxText {
		return raw
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) == nil {
		if short, err := plainjson.Marshal(shortStrings(v)); err == nil && len(short) <= maxText {
			return short
		}
	}
	short, _ := plainjson.Marshal(map[string]any{"cut": len(raw), "start": cutAt(string(raw), maxString)})
	return short
}

func shortStrings(v any) any {
	switch v := v.(type) {
	case string:
		return cutAt(v, maxString)
	case []any:
		for i := range v {
			v[i] = shortStrings(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = shortStrings(v[name])
		}
	}
	return v
}

// versionIn is the version among what an agent reports about itself, such as claudeCodeVersion.
func versionIn(capabilities map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(capabilities)) {
		var version string
		if (name == "version" || strings.HasSuffix(name, "Version")) && json.Unmarshal(capabilities[name], &version) == nil {
			return version
		}
	}
	return ""
}

// chainOf is how a decision was made, in its payload or in the metadata of its event.
func chainOf(e event.Event, raw json.RawMessage) json.RawMessage {
	var own struct{ Chain json.RawMessage }
	if json.Unmarshal(raw, &own) == nil && len(own.Chain) > 0 {
		return own.Chain
	}
	return e.Metadata["chain"]
}
