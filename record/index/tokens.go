// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
)

// A token is a part of a query: a word, a quoted text, or another character.
type token struct {
	text  string // of words and names in lower case, without quotes
	quote byte   // the first quote, or 0
	word  bool
}

// tokensOf divides a query as SQLite does, as far as it matters here: it finds each name, and what is a comment or a text.
func tokensOf(query string) (all []token) {
	for query != "" {
		c := query[0]
		switch {
		case strings.HasPrefix(query, "--"):
			_, query, _ = strings.Cut(query, "\n")
		case strings.HasPrefix(query, "/*"):
			_, query, _ = strings.Cut(query[2:], "*/")
		case strings.IndexByte(" \t\r\n\f", c) >= 0:
			query = query[1:]
		case strings.IndexByte("'\"`[", c) >= 0:
			var text string
			text, query = unquoted(query)
			all = append(all, token{text: strings.ToLower(text), quote: c})
		case isWord(c):
			n := 1
			for n < len(query) && isWord(query[n]) {
				n++
			}
			all = append(all, token{text: strings.ToLower(query[:n]), word: true})
			query = query[n:]
		default:
			all = append(all, token{text: query[:1]})
			query = query[1:]
		}
	}
	return all
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// unquoted is the quoted text at the beginning of a query, and the rest behind it. A doubled quote is one quote of the text.
func unquoted(query string) (text, rest string) {
	end := query[0]
	if end == '[' {
		text, rest, _ = strings.Cut(query[1:], "]")
		return text, rest
	}
	var b strings.Builder
	for rest = query[1:]; rest != ""; rest = rest[1:] {
		if rest[0] == end {
			if rest = rest[1:]; rest == "" || rest[0] != end {
				break
			}
		}
		b.WriteByte(rest[0])
	}
	return b.String(), rest
}

// readers are the words that a statement begins with that only reads.
var readers = []string{"select", "with", "values"}

// checkStatement refuses what is not one statement that reads.
func checkStatement(query string, tokens []token) error {
	first := tokens
	for len(first) > 0 && first[0].word && slices.Contains([]string{"explain", "query", "plan"}, first[0].text) {
		first = first[1:]
	}
	semicolon := slices.IndexFunc(tokens, func(t token) bool { return t.text == ";" && t.quote == 0 })
	switch {
	case strings.Contains(query, "\x00"):
		return advice.Wrap(fmt.Errorf("index: %w: it has a NUL character", ErrRefused), "remove the character")
	case len(first) == 0 || !first[0].word || !slices.Contains(readers, first[0].text):
		return advice.Wrap(fmt.Errorf("index: %w: it does not begin as a query does", ErrRefused), "begin with SELECT, WITH, VALUES or EXPLAIN")
	case semicolon >= 0 && slices.ContainsFunc(tokens[semicolon:], func(t token) bool { return t.text != ";" || t.quote != 0 }):
		return advice.Wrap(fmt.Errorf("index: %w: it has more than one statement", ErrRefused), "ask one query at a time")
	}
	return nil
}

// names are those that a query must not have, of functions before a parenthesis and of tables.
type names struct{ functions, tables map[string]bool }

// refusedNames are all functions and virtual tables that this SQLite has and that a query may not use, and the tables of the index
// itself.
func refusedNames(ctx context.Context, c *sql.Conn) (refused names, err error) {
	if refused.functions, err = namesOf(ctx, c, "SELECT name FROM pragma_function_list", functions); err != nil {
		return refused, err
	}
	refused.tables, err = namesOf(ctx, c, "SELECT name FROM pragma_module_list UNION SELECT name FROM sqlite_schema",
		slices.Concat(tablesOfSQLite, tableNames()))
	return refused, err
}

// namesOf are the names of a query's rows, without those that are allowed.
func namesOf(ctx context.Context, c *sql.Conn, query string, allowed []string) (all map[string]bool, err error) {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if name = strings.ToLower(name); !slices.Contains(allowed, name) {
			all[name] = true
		}
	}
	return all, rows.Err()
}

// checkNames refuses a query that has the name of something that it may not use. A text in single quotes may be the name of a table
// too, where a table can be.
func checkNames(tokens []token, refused names) error {
	for i, t := range tokens {
		var before, after string
		if i > 0 {
			before = tokens[i-1].text
		}
		if i+1 < len(tokens) && tokens[i+1].quote == 0 {
			after = tokens[i+1].text
		}
		isName := t.word || t.quote != 0 && t.quote != '\''
		isTable := isName || t.quote != 0 && slices.Contains([]string{"from", "join", "in", ",", "(", "."}, before)
		switch {
		case isTable && (refused.tables[t.text] || isSystem(t.text)):
			return advice.Wrap(fmt.Errorf("%w: it names %s", ErrRefused, t.text), "read the tables of docs/runs-sql.md")
		case isName && after == "(" && refused.functions[t.text]:
			return advice.Wrap(fmt.Errorf("%w: it calls %s", ErrRefused, t.text), "call functions that compute: dates, texts, numbers, JSON")
		}
	}
	return nil
}

// isSystem reports whether a name is one that SQLite keeps for itself.
func isSystem(name string) bool {
	return !slices.Contains(tablesOfSQLite, name) && (strings.HasPrefix(name, "sqlite_") || strings.HasPrefix(name, "pragma_"))
}

// maxSubqueries is how many subqueries a query may become when each name that its WITH defines is replaced by what it stands for, and
// maxCopies how often a column of the innermost one may then be in the outermost. SQLite makes these copies before it runs the query,
// and cannot be interrupted then.
const (
	maxSubqueries = 500
	maxCopies     = 100_000
)

// checkSubqueries refuses a query whose subqueries or their columns multiply.
func checkSubqueries(tokens []token) error {
	bodies := map[string][]token{}
	for i, t := range tokens {
		if !t.word && t.quote == 0 {
			continue
		}
		next := i + 1
		if at(tokens, next) == "(" {
			next = behindParentheses(tokens, next)
		}
		if at(tokens, next) != "as" {
			continue
		}
		for next++; at(tokens, next) == "not" || at(tokens, next) == "materialized"; next++ {
		}
		if at(tokens, next) != "(" {
			continue
		}
		if _, twice := bodies[t.text]; twice {
			return advice.Wrap(fmt.Errorf("index: %w: it defines %s twice", ErrRefused, t.text), "give each subquery a name of its own")
		}
		bodies[t.text] = tokens[next:behindParentheses(tokens, next)]
	}
	if size := (&expansion{bodies, map[string]int{}}).size(tokens); size > maxSubqueries {
		return advice.Wrap(fmt.Errorf("index: %w: it has more than %d subqueries", ErrRefused, maxSubqueries), "use the names of WITH less often")
	}
	if n := (&expansion{bodies, map[string]int{}}).copies(tokens); n > maxCopies {
		return advice.Wrap(fmt.Errorf("index: %w: the columns of its subqueries multiply", ErrRefused), "use each column of a subquery less often")
	}
	return nil
}

// An expansion is what becomes of a query when names are replaced by what they stand for.
type expansion struct {
	bodies map[string][]token
	known  map[string]int
}

// of measures what a name stands for, once.
func (x *expansion) of(name string, measure func([]token) int) int {
	if _, known := x.known[name]; !known {
		x.known[name] = 1 // in itself it is not replaced again
		x.known[name] = measure(x.bodies[name])
	}
	return x.known[name]
}

// size is how many subqueries there are.
func (x *expansion) size(body []token) int {
	size := 1
	for i := 1; i < len(body) && size <= maxSubqueries; i++ {
		name := body[i].text
		_, defined := x.bodies[name]
		if defined && slices.Contains([]string{"from", "join", "in", ",", "("}, body[i-1].text) && at(body, i+1) != "." {
			size += x.of(name, x.size)
		}
	}
	return size
}

// copies is how often a column of the innermost subquery may be in the outermost: at each step as often as the name that is used most.
func (x *expansion) copies(body []token) int {
	used, most, inner := map[string]int{}, 1, 1
	for i := 0; i < len(body); i++ {
		t, next := body[i], at(body, i+1)
		_, defined := x.bodies[t.text]
		isName := t.quote != 0 && t.quote != '\'' || t.word && (t.text[0] < '0' || t.text[0] > '9') && !slices.Contains(keywords, t.text)
		switch {
		case at(body, i) == "(" && slices.Contains(readers, next):
			end := behindParentheses(body, i)
			inner = max(inner, x.copies(body[i+1:end]))
			i = end - 1
		case defined:
			inner = max(inner, x.of(t.text, x.copies))
		case isName && next != "(" && next != ".":
			used[t.text]++
			most = max(most, used[t.text])
		}
	}
	return min(inner*most, maxCopies+1)
}

// keywords may be in a query often, and are no columns.
var keywords = strings.Fields(`all and as asc between by case collate cross desc distinct else end escape except exists filter from full glob group having
	in inner intersect is isnull join left like limit not notnull null offset on or order outer over partition right select then union using values
	when where with`)

// at is the text of a token that is not quoted, or nothing.
func at(tokens []token, i int) string {
	if i >= len(tokens) || tokens[i].quote != 0 {
		return ""
	}
	return tokens[i].text
}

// behindParentheses is the position behind the parenthesis that closes the one at a position.
func behindParentheses(tokens []token, i int) int {
	for depth := 0; i < len(tokens); i++ {
		switch at(tokens, i) {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}
