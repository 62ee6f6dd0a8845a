// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/drover-agents/drover/tool"
)

const (
	searchToolName  = "search-tools"
	searchToolLimit = 10
)

type searchParams struct {
	Query string `json:"query" doc:"words for what the tool should do; empty lists all tools"`
	Limit int    `json:"limit,omitzero" doc:"how many tools to return at most; 10 if left out"`
}

type searchReply struct {
	Tools []Summary `json:"tools" doc:"the best first"`
	More  int       `json:"more" doc:"how many more were found; ask with a higher limit or other words"`
}

// SearchTool makes the tool "search-tools", which lets a model find tools of the registry by what
// they do. It is read-only, and shows neither tools that are deprecated or not served nor itself.
// It sees the tools that the registry has at the time of a call.
func SearchTool(r *tool.Registry) *tool.Tool {
	return tool.Must(searchToolName, searchManual,
		func(_ context.Context, p searchParams) (tool.Reply[searchReply], error) {
			if p.Limit <= 0 {
				p.Limit = searchToolLimit
			}
			found := Find(r, Query{Text: p.Query, Where: func(t *tool.Tool) bool { return t.Served() && t.Name != searchToolName }})
			shown := found[:min(p.Limit, len(found))]
			return tool.Reply[searchReply]{Value: searchReply{Tools: Summarise(shown), More: len(found) - len(shown)}}, nil
		}, tool.ReadOnly, tool.WithTitle("Search tools"))
}

// What a word counts in a field where it is found. A part of a word counts half.
const (
	nameWeight        = 20
	tagWeight         = 8
	keyWeight         = 4
	descriptionWeight = 2
)

// proseWord is the least length of a word to be looked for in prose, which is full of shorter ones
// that mean nothing, and of a part of a word to count as one.
const proseWord = 3

// score returns how well the tool fits the words; zero means not at all. Each word counts once, where it counts most.
func score(t *tool.Tool, words []string) int {
	if len(words) == 0 {
		return 0
	}
	fields := []struct {
		words  []string
		weight int
		prose  bool
	}{
		{splitWords(t.Name), nameWeight, false},
		{splitWords(strings.Join(t.Tags, " ")), tagWeight, false},
		{splitWords(t.Title + " " + t.SearchHint), tagWeight, true},
		{splitWords(strings.Join(schemaKeys(t), " ")), keyWeight, false},
		{splitWords(t.Description), descriptionWeight, true},
	}
	sum := 0
	for _, word := range words {
		best := 0
		for _, field := range fields {
			if !field.prose || len(word) >= proseWord {
				best = max(best, field.weight*closeness(field.words, word)/2)
			}
		}
		sum += best
	}
	return sum
}

// closeness is 2 if the word is there, 1 if a word has it as a part or is its beginning, as "file" is of "files".
func closeness(have []string, word string) int {
	best := 0
	for _, h := range have {
		switch {
		case h == word:
			return 2
		case len(word) >= proseWord && strings.Contains(h, word), len(h) >= proseWord && strings.HasPrefix(word, h):
			best = 1
		}
	}
	return best
}

// splitWords gives the words of a text in small letters, each once. "readFile" and "read-file" are two words each.
func splitWords(text string) []string {
	var spaced strings.Builder
	var last rune
	for _, r := range text {
		if unicode.IsUpper(r) && (unicode.IsLower(last) || unicode.IsDigit(last)) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(unicode.ToLower(r))
		last = r
	}
	words := strings.FieldsFunc(spaced.String(), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
	slices.Sort(words)
	return slices.Compact(words)
}
