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
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
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
	run     string
	r       *record.Run
	details *record.Collector
	problem string
	denied  int // calls
}

func newRunRows(run string, r *record.Run) *runRows {
	return &runRows{run: run, r: r, details: r.Collector()}
}

// entry adds the row of an entry, and notes what else it tells.
func (r *runRows) entry(ctx context.Context, w *writer, entry session.Entry) error {
	e := entry.Event
	raw, err := plainjson.Marshal(shortPayload(e.Payload))
	if err != nil {
		raw = json.RawMessage("null")
	}
	id := e.CallID()
	switch p := e.Payload.(type) {
	case event.Decision:
		if err := w.insert(ctx, "decisions", r.run, entry.Pos, null(string(p.CallID)), null(p.Tool), p.Verdict.String(), null(p.Policy),
			null(cut(p.Reason)), p.Asked, null(string(shortJSON(chainOf(e, raw))))); err != nil {
			return err
		}
	case event.Error:
		if err := w.insert(ctx, "errors", r.run, entry.Pos, null(cut(p.Code)), cut(p.Message), p.Recoverable); err != nil {
			return err
		}
	case session.ToolInvoked:
		id = p.CallID
	}
	r.collect(entry)
	return w.insert(ctx, "events", r.run, entry.Pos, null(e.Seq), string(e.Kind), timeText(e.Time), null(e.Turn), null(string(id)),
		null(e.AgentID), string(shortJSON(raw)))
}

// collect notes what an entry tells about the run, cut as the columns are: a log may be larger than memory.
func (r *runRows) collect(entry session.Entry) {
	e := &entry.Event
	switch p := e.Payload.(type) {
	case event.Text:
		p.Content = ""
		e.Payload = p
	case session.PromptRendered:
		p.Text = safetext.FirstWords(p.Text, maxWords)
		e.Payload = p
	case event.ToolCall:
		p.Input = shortJSON(objectOf(p.Input))
		e.Payload = p
	case event.ToolResult:
		text := textOf(p.Output)
		if text == "" && p.Failure != nil {
			text = cut(p.Failure.Message)
		}
		p.Output, p.Failure = quoted(text), nil
		e.Payload = p
	case session.ToolInvoked:
		p.Params, p.Output, p.Error, p.Value = shortJSON(objectOf(p.Params)), cut(cmp.Or(p.Output, p.Error)), "", nil
		e.Payload = p
	}
	r.details.Add(entry)
}

// shortPayload has the output of a call cut before it is written: it may have megabytes, of which the column has the start.
func shortPayload(p event.Payload) event.Payload {
	switch p := p.(type) {
	case event.ToolResult:
		p.Output = shortJSON(p.Output)
		return p
	case session.ToolInvoked:
		if len(p.Output) > maxText {
			p.Output = cutAt(p.Output, maxString)
		}
		return p
	}
	return p
}

func quoted(text string) json.RawMessage {
	raw, _ := plainjson.Marshal(text) // a text can always be written
	return raw
}

// textIn is the text that quoted has quoted, or empty.
func textIn(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// end adds the rows that all entries together give.
func (r *runRows) end(ctx context.Context, w *writer) error {
	d := r.details.Details()
	last := map[event.CallID]record.Call{} // of those with the same id
	for _, c := range d.Calls {
		last[c.ID] = c
	}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		c := last[id]
		var output, verdict, policy, reason string
		var duration any
		if c.Result != nil {
			output = textIn(c.Result.Output)
			duration = null(c.Result.Duration.Milliseconds())
		}
		if n := len(c.Decisions); n > 0 {
			decided := c.Decisions[n-1]
			verdict, policy, reason = decided.Verdict.String(), decided.Policy, cut(decided.Reason)
		}
		if err := w.insert(ctx, "calls", r.run, string(id), null(c.Name), null(string(c.Input)), null(string(c.Status())), null(output), null(verdict),
			null(policy), null(reason), timeText(c.Began), timeText(c.Ended), duration); err != nil {
			return err
		}
	}
	for _, c := range d.Calls {
		if c.Denied() != nil {
			r.denied++
		}
	}
	for _, path := range d.Files {
		if err := w.insert(ctx, "files", r.run, cut(path), d.Writes[path]); err != nil {
			return err
		}
	}
	for _, m := range d.Models {
		if err := w.insert(ctx, "tokens", r.run, m.Model, m.Input, m.Output, m.CacheRead, m.CacheWrite, costOf(m), null(m.Calls)); err != nil {
			return err
		}
	}
	return w.insert(ctx, "runs", ordered("runs", r.row(d))...)
}

// costOf is the cost of a model, nil where it is not known.
func costOf(m record.ModelUse) any {
	if m.Unpriced && m.CostUSD == 0 {
		return nil
	}
	return m.CostUSD
}

// row has the columns of the table runs.
func (r *runRows) row(d *record.Details) map[string]any {
	i := r.r.Info
	row := map[string]any{
		"run": r.run, "id": i.ID, "session": null(i.Session), "agent": null(i.Agent), "name": null(i.Name), "prompt_name": null(i.Prompt),
		"words": null(d.Prompt), "folder": null(i.Folder), "model": null(d.Model), "state": string(r.r.State), "problem": null(cut(r.problem)),
		"began": timeText(i.Began), "turns": d.Turns, "denied": r.denied, "isolation": null(d.Isolation), "agent_version": null(d.AgentVersion), "drover_version": null(i.Versions["drover"]),
		"resumes": null(i.Resumes), "path": r.r.Path,
	}
	var sum record.ModelUse
	known := false
	for _, m := range d.Models {
		sum.Input += m.Input
		sum.Output += m.Output
		sum.CostUSD += m.CostUSD
		known = known || costOf(m) != nil
		row["input_tokens"], row["output_tokens"] = sum.Input, sum.Output
	}
	if known {
		row["cost_usd"] = sum.CostUSD
	}
	if e := r.r.End; e != nil {
		row["status"], row["kind"], row["error"], row["resume_token"] = string(e.Status), null(e.Kind), null(cut(e.Error)), null(e.ResumeToken)
		row["ended"], row["duration_ms"], row["turns"] = timeText(e.Ended), e.Duration.Milliseconds(), max(e.Turns, d.Turns)
		row["problem"] = null(cut(cmp.Or(r.problem, e.Problem)))
		if !known && e.Usage.Cost != nil { // of models that the gateway has no price for
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

// chainOf is how a decision was made, in its payload or in the metadata of its event.
func chainOf(e event.Event, raw json.RawMessage) json.RawMessage {
	var own struct{ Chain json.RawMessage }
	if json.Unmarshal(raw, &own) == nil && len(own.Chain) > 0 {
		return own.Chain
	}
	return e.Metadata["chain"]
}
