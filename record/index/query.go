// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/record"
)

// A Filter chooses runs. The zero value chooses all.
type Filter struct {
	// Failed chooses those that ended without success, were lost or cannot be read.
	Failed bool
	// Since and Until bound when they began: from Since on, before Until.
	Since, Until time.Time
	// Agent is the name of the agent or of its adapter, and Folder where the run belongs.
	Agent, Folder string
	// Words must all be in the prompt's beginning, a name, the folder, the id or the error. Letters of ASCII match in both cases.
	Words []string
	State record.State
	// Limit is how many rows are wanted. Zero means all.
	Limit int
}

// where is the condition of a filter.
func (f Filter) where() (string, []any) {
	parts, args := []string{"1"}, []any{}
	add := func(condition string, values ...any) {
		parts = append(parts, condition)
		args = append(args, values...)
	}
	if f.Failed {
		add("(state IN ('lost', 'unreadable') OR state = 'ended' AND status <> 'success')")
	}
	if !f.Since.IsZero() {
		add("began >= ?", timeText(f.Since))
	}
	if !f.Until.IsZero() {
		add("began < ?", timeText(f.Until))
	}
	if f.Agent != "" {
		add("? IN (name, agent)", f.Agent)
	}
	if f.Folder != "" {
		add("folder = ?", f.Folder)
	}
	if f.State != "" {
		add("state = ?", string(f.State))
	}
	for _, word := range f.Words {
		pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(word) + "%"
		add(`concat_ws(char(10), id, words, name, prompt_name, agent, folder, error) LIKE ? ESCAPE '\'`, pattern)
	}
	return strings.Join(parts, " AND "), args
}

func (f Filter) limit() int {
	if f.Limit <= 0 {
		return -1
	}
	return f.Limit
}

// A Row is what a list of runs shows of one.
type Row struct {
	// Run is the folder in the store, as [record.Store.Run] takes it, and Path the folder of its files.
	Run, Path     string
	ID, Session   string
	Agent, Name   string
	Prompt, Words string
	Folder, Model string
	State         record.State
	Status        event.DoneStatus
	Kind, Error   string
	Problem       string
	Began, Ended  time.Time
	Duration      time.Duration
	Turns, Denied int
	Resumes       string
	ResumeToken   string
	Isolation     string
	AgentVersion  string
	DroverVersion string
	CostUSD       *float64 // nil where it is not known, as the tokens
	InputTokens   *int64
	OutputTokens  *int64
}

const rowColumns = `run, path, id, coalesce(session, ''), coalesce(agent, ''), coalesce(name, ''), coalesce(prompt_name, ''), coalesce(words, ''),
	coalesce(folder, ''), coalesce(model, ''), state, coalesce(status, ''), coalesce(kind, ''), coalesce(error, ''), coalesce(problem, ''),
	coalesce(began, ''), coalesce(ended, ''), coalesce(duration_ms, 0), coalesce(turns, 0), coalesce(denied, 0), coalesce(resumes, ''), coalesce(resume_token, ''),
	coalesce(isolation, ''), coalesce(agent_version, ''), coalesce(drover_version, ''), cost_usd, input_tokens, output_tokens`

func scanRow(rows *sql.Rows) (r Row, err error) {
	var began, ended string
	var ms int64
	err = rows.Scan(&r.Run, &r.Path, &r.ID, &r.Session, &r.Agent, &r.Name, &r.Prompt, &r.Words, &r.Folder, &r.Model, &r.State, &r.Status, &r.Kind, &r.Error,
		&r.Problem, &began, &ended, &ms, &r.Turns, &r.Denied, &r.Resumes, &r.ResumeToken, &r.Isolation, &r.AgentVersion, &r.DroverVersion,
		&r.CostUSD, &r.InputTokens, &r.OutputTokens)
	r.Began, r.Ended, r.Duration = parseTime(began), parseTime(ended), time.Duration(ms)*time.Millisecond
	return r, err
}

// parseTime reads what timeText writes. The zero time has no text.
func parseTime(text string) time.Time {
	t, _ := time.Parse(timeForm, text)
	return t
}

// Runs lists runs, the latest first.
func (ix *Index) Runs(ctx context.Context, f Filter) ([]Row, error) {
	where, args := f.where()
	return ix.rows(ctx, "listing runs", "SELECT "+rowColumns+" FROM runs WHERE "+where+" ORDER BY began DESC, run DESC LIMIT ?", append(args, f.limit())...)
}

// ErrNoRun is wrapped where there is no run.
var ErrNoRun = errors.New("there is no run")

// Last is the run that began last.
func (ix *Index) Last(ctx context.Context) (Row, error) {
	rows, err := ix.Runs(ctx, Filter{Limit: 1})
	if err == nil && len(rows) == 0 {
		err = advice.Wrap(fmt.Errorf("index: the last run in %s: %w", ix.store.Dir(), ErrNoRun), "run an agent first")
	}
	if err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

// Prefix lists the runs whose ids begin with a text, the latest first.
func (ix *Index) Prefix(ctx context.Context, prefix string) ([]Row, error) {
	return ix.rows(ctx, "finding runs", "SELECT "+rowColumns+" FROM runs WHERE id >= ? AND substr(id, 1, ?) = ? ORDER BY began DESC, run DESC",
		prefix, len([]rune(prefix)), prefix)
}

func (ix *Index) rows(ctx context.Context, what, query string, args ...any) (all []Row, err error) {
	err = ix.ask(ctx, what, func(db *database) error {
		all = nil
		return each(ctx, db, query, args, func(rows *sql.Rows) error {
			r, err := scanRow(rows)
			all = append(all, r)
			return err
		})
	})
	return all, err
}

// ask is do for a query of ours.
func (ix *Index) ask(ctx context.Context, what string, f func(*database) error) error {
	return ix.do(ctx, what, func(error) bool { return true }, f)
}

// each calls f for each row of a query.
func each(ctx context.Context, db *database, query string, args []any, f func(*sql.Rows) error) (err error) {
	rows, err := db.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A CostRow is what a group of runs cost.
type CostRow struct {
	// Key is the day in UTC, the agent, the folder or the model.
	Key  string
	Runs int
	// Unknown is how many of them have no known cost.
	Unknown       int
	CostUSD       float64
	Input, Output int64
}

// The groups that [Index.Cost] knows. An agent is known by the name that its owner gave it, or else by its adapter.
var groups = map[string]struct{ key, from, cost, input, output, order string }{
	"day":    {"coalesce(substr(began, 1, 10), '')", "runs", "cost_usd", "input_tokens", "output_tokens", "1 DESC"},
	"agent":  {"coalesce(name, agent, '')", "runs", "cost_usd", "input_tokens", "output_tokens", "4 DESC, 1"},
	"folder": {"coalesce(folder, '')", "runs", "cost_usd", "input_tokens", "output_tokens", "4 DESC, 1"},
	"model":  {"tokens.model", "tokens JOIN runs USING (run)", "tokens.cost_usd", "tokens.input", "tokens.output", "4 DESC, 1"},
}

// Cost sums what runs cost by "day", "agent", "folder" or "model". Days are in order, the latest first; others by cost. By model there
// are only runs that report their tokens.
func (ix *Index) Cost(ctx context.Context, by string, f Filter) (all []CostRow, err error) {
	g, ok := groups[by]
	if !ok {
		return nil, advice.Wrap(fmt.Errorf("index: cost by %q: there is no such group", by), "use day, agent, folder or model")
	}
	where, args := f.where()
	query := fmt.Sprintf(`SELECT %s, count(*), count(*) - count(%[2]s), coalesce(sum(%[2]s), 0.0), coalesce(sum(%[3]s), 0), coalesce(sum(%[4]s), 0)
		FROM %[5]s WHERE %[6]s GROUP BY 1 ORDER BY %[7]s LIMIT ?`, g.key, g.cost, g.input, g.output, g.from, where, g.order)
	err = ix.ask(ctx, "summing the cost", func(db *database) error {
		all = nil
		return each(ctx, db, query, append(args, f.limit()), func(rows *sql.Rows) error {
			var r CostRow
			err := rows.Scan(&r.Key, &r.Runs, &r.Unknown, &r.CostUSD, &r.Input, &r.Output)
			all = append(all, r)
			return err
		})
	})
	return all, err
}
