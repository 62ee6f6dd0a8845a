// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"
)

// version is that of the tables. Raise it with each change of them or of what is in them: an older index is built again.
const version = 3

// applicationID marks the file as an index of ours.
const applicationID = 0x44525652

// maxText bounds a text in a column, in bytes.
const maxText = 64 << 10

// A Table is a table that [Index.SQL] can read.
type Table struct {
	Name, About string
	Columns     []Column

	key     string
	indexes []string
}

// A Column is a column of a table.
type Column struct{ Name, Type, About string }

// Tables are the tables that [Index.SQL] can read.
func Tables() []Table { return slices.Clone(tables) }

var tables = []Table{
	{
		Name: "runs", About: "One row per run.", key: "run",
		indexes: []string{"began, run", "id", "state"},
		Columns: []Column{
			{"run", "text", "the folder in the store, `<day>/<id>`: the key that all tables have"},
			{"id", "text", "the id. Runs of different days may have the same one"},
			{"session", "text", "the id of the session"},
			{"agent", "text", "the adapter: `claude-code`"},
			{"name", "text", "what the owner calls the agent, as an agent file does"},
			{"prompt_name", "text", "the name of the prompt"},
			{"words", "text", "the beginning of the rendered prompt, on one line without headings"},
			{"folder", "text", "where the run belongs: the current folder of the command"},
			{"model", "text", "the model that the agent reports, or else that of the settings"},
			{"state", "text", "`running`, `ended`, `lost` if its program is gone without an end, or `unreadable`"},
			{"status", "text", "how it ended: `success`, `error`, `interrupted`, `max_turns` or `max_budget`; null before the end"},
			{"kind", "text", "the kind of failure"},
			{"error", "text", "why it failed, or why it cannot be read"},
			{"problem", "text", "why the record is not complete"},
			{"began", "text", "when"},
			{"ended", "text", "when; null before the end"},
			{"duration_ms", "integer", "null before the end"},
			{"turns", "integer", "the model calls of the main agent"},
			{"denied", "integer", "the tool calls that were denied"},
			{"cost_usd", "real", "what the gateway counted, or else what the agent reports; null if neither is known"},
			{"input_tokens", "integer", "all input, cached or not, from the same source; null if not known"},
			{"output_tokens", "integer", "the same for output"},
			{"isolation", "text", "the isolation level; null without a cell"},
			{"agent_version", "text", "the version that the agent reports"},
			{"drover_version", "text", "the version of Drover"},
			{"resumes", "text", "the token of the conversation that it continues"},
			{"resume_token", "text", "the token that continues its conversation"},
			{"path", "text", "the folder of its files"},
		},
	},
	{
		Name: "events", About: "One row per entry of a run's log.", key: "run, pos",
		indexes: []string{"kind"},
		Columns: []Column{
			{"run", "text", "the run"},
			{"pos", "integer", "the number of the entry in the run, from 1"},
			{"seq", "integer", "the number in the stream; null for entries that are only in the log"},
			{"kind", "text", "the kind of event, as in [events](events.md)"},
			{"at", "text", "when"},
			{"turn", "integer", "the model call of the main agent, from 1"},
			{"call", "text", "the tool call that it is about"},
			{"agent_id", "text", "the subagent"},
			{"payload", "text", "JSON. Long strings in it are cut"},
		},
	},
	{
		Name: "calls", About: "One row per tool call.", key: "run, call",
		indexes: []string{"tool"},
		Columns: []Column{
			{"run", "text", "the run"},
			{"call", "text", "the tool use id"},
			{"tool", "text", "the tool, as the caller names it"},
			{"input", "text", "the arguments as JSON. Long strings in it are cut"},
			{"status", "text", "`success`, `error`, `denied`, `needs_approval` or `cancelled`; null before the end"},
			{"output", "text", "what the caller got, or why it failed"},
			{"verdict", "text", "the last decision about it: `allow`, `ask` or `deny`"},
			{"policy", "text", "who decided"},
			{"reason", "text", "why"},
			{"began", "text", "when"},
			{"ended", "text", "when; null before the end"},
			{"duration_ms", "integer", "as it was measured; null if it was not"},
		},
	},
	{
		Name: "tokens", About: "One row per run and model: what the gateway counted, or else what the agent reports at the end.", key: "run, model",
		indexes: []string{"model"},
		Columns: []Column{
			{"run", "text", "the run"},
			{"model", "text", "the model that answered"},
			{"input", "integer", "all input, with that from and to the cache"},
			{"output", "integer", "all output"},
			{"cache_read", "integer", "the part of the input that came from the cache"},
			{"cache_write", "integer", "the part of the input that was written to the cache"},
			{"cost_usd", "real", "US dollars; null if not known"},
			{"calls", "integer", "how many model calls; null if not known"},
		},
	},
	{
		Name: "decisions", About: "One row per decision about a tool call.", key: "run, pos",
		Columns: []Column{
			{"run", "text", "the run"},
			{"pos", "integer", "the number of its entry"},
			{"call", "text", "the tool call"},
			{"tool", "text", "the tool"},
			{"verdict", "text", "`allow`, `ask` or `deny`"},
			{"policy", "text", "who decided"},
			{"reason", "text", "why"},
			{"asked", "integer", "1 if an approver was asked"},
			{"chain", "text", "JSON: how it was decided step by step, where that is recorded"},
		},
	},
	{
		Name: "errors", About: "One row per error that is in the log.", key: "run, pos",
		Columns: []Column{
			{"run", "text", "the run"},
			{"pos", "integer", "the number of its entry"},
			{"code", "text", "for programs"},
			{"message", "text", "what failed, and why"},
			{"recoverable", "integer", "1 if the run went on"},
		},
	},
	{
		Name: "files", About: "One row per run and file that its tools wrote.", key: "run, path",
		indexes: []string{"path"},
		Columns: []Column{
			{"run", "text", "the run"},
			{"path", "text", "the file"},
			{"calls", "integer", "how often it was written"},
		},
	},
}

// The tables of the index itself. In _state is how far the journal was read, and in _open are the runs that may change without a line
// in the journal, with the size of their log.
const ownTables = `
CREATE TABLE _state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE _open (run TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID;
`

// createStatements makes all tables.
func createStatements() string {
	var b strings.Builder
	for _, t := range tables {
		b.WriteString("CREATE TABLE " + t.Name + " (")
		for _, c := range t.Columns {
			b.WriteString(c.Name + " " + strings.ToUpper(c.Type) + ", ")
		}
		b.WriteString("PRIMARY KEY (" + t.key + "));\n")
		for _, columns := range t.indexes {
			b.WriteString("CREATE INDEX " + t.Name + "_" + strings.ReplaceAll(columns, ", ", "_") + " ON " + t.Name + " (" + columns + ");\n")
		}
	}
	return b.String() + ownTables
}

// insertStatement adds a row with a value for each column of a table.
func insertStatement(t Table) string {
	return "INSERT OR REPLACE INTO " + t.Name + " VALUES (?" + strings.Repeat(", ?", len(t.Columns)-1) + ")"
}
