// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A normalised request is one without what is new in each run.
type normalised struct {
	method, path, query string

	doc any        // the body: a document, or its text
	key requestKey // equal for requests that are the same
	runNames
}

// runNames are the ids of its run in a request.
type runNames struct {
	// session is the id of the session; empty if the request does not have it.
	session string
	// ids are those of agents and tasks, in order of appearance. The normalised document has their number instead.
	ids []string
	// numbers are the positions of ids in that order, from 1.
	numbers map[string]int
}

type requestKey [sha256.Size]byte

// normalise takes out of a request what is new in each run. It masks first, as recording does.
func normalise(r recordedRequest, folders Folders, mask masker) normalised {
	n := normalised{method: r.Method, path: mask.text(r.Path), query: mask.text(r.Query)}
	body := mask.payload(r.Body)
	doc, err := decodeJSON(body.JSON)
	if err != nil {
		doc = string(body.bytes())
	}
	vary := &mask.wire.Replay
	doc = mapStrings(doc, func(s string) string {
		for former, now := range vary.Renamed {
			s = replaceName(s, former, now, endsAnywhere)
		}
		return s
	})
	if vary.Tidy != nil {
		n.session = vary.Tidy(doc, r.Headers)
	}
	n.collect(doc, vary.IDs)
	aliases := folders.aliases()
	n.doc = mapStrings(doc, func(s string) string { return n.plain(s, aliases, vary.Texts) })
	n.key = sha256.Sum256([]byte(n.method + " " + n.path + "?" + n.query + "\n" + encodeJSON(n.doc)))
	return n
}

func (n *normalised) collect(doc any, ids []Pattern) {
	mapStrings(doc, func(s string) string {
		for _, p := range ids {
			if !strings.Contains(s, p.Hint) {
				continue
			}
			for _, found := range p.Regexp().FindAllStringSubmatch(s, -1) {
				n.add(found[1])
			}
		}
		return s
	})
}

// maxIDs bounds the ids of a request: far more than a run has agents and tasks.
const maxIDs = 10_000

func (n *normalised) add(id string) {
	if id == n.session || n.numbers[id] > 0 || len(n.ids) == maxIDs {
		return
	}
	if n.numbers == nil {
		n.numbers = map[string]int{}
	}
	n.ids = append(n.ids, id)
	n.numbers[id] = len(n.ids)
}

func (n *normalised) plain(s string, aliases []folderAlias, texts []Pattern) string {
	for _, p := range aliases {
		s = replaceName(s, p.path, p.name, endsPath)
	}
	if n.session != "" {
		s = replaceName(s, n.session, "${session}", endsID)
	}
	if len(n.ids) > 0 {
		s = replaceWords(s, func(word string) (string, bool) {
			number := n.numbers[word]
			return "${id" + strconv.Itoa(number) + "}", number > 0
		})
	}
	for _, p := range texts {
		if strings.Contains(s, p.Hint) {
			s = p.Regexp().ReplaceAllString(s, p.Replace)
		}
	}
	return s
}

// renames are the ids of another run, which made the same request, instead of those of this one.
func (n runNames) renames(now runNames) map[string]string {
	renames := map[string]string{}
	if n.session != "" && now.session != "" {
		renames[n.session] = now.session
	}
	for i := range min(len(n.ids), len(now.ids)) {
		renames[n.ids[i]] = now.ids[i]
	}
	return renames
}

// A folderAlias is a spelling of a folder, with the name that is written for it.
type folderAlias struct{ name, path string }

// aliases lists the spellings of the folders, the longest first, because folders contain others.
func (f Folders) aliases() []folderAlias {
	var all []folderAlias
	for name, path := range map[string]string{"dir": f.Dir, "home": f.Home, "config": f.Config, "temp": f.Temp} {
		path = strings.TrimRight(path, `/\`)
		if path == "" {
			continue
		}
		all = append(all, folderAlias{"${" + name + "}", path}, folderAlias{"${" + name + "-}", flattened(path)})
		if quoted := jsonInside(path); quoted != path {
			all = append(all, folderAlias{`${"` + name + `"}`, quoted})
		}
	}
	slices.SortFunc(all, func(a, b folderAlias) int {
		if len(a.path) != len(b.path) {
			return len(b.path) - len(a.path)
		}
		return strings.Compare(a.name, b.name)
	})
	return all
}

// flattened is how an agent may name a folder of its own after another.
func flattened(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, path)
}

// A renamer replaces the names of the recorded run by those of this one.
type renamer struct {
	names []renaming
	words map[string]string // ids that are one word: there may be many
}

type renaming struct {
	old, new string
	ends     func(rest string) bool
}

func newRenamer(then, now Folders, ids, renamed map[string]string) renamer {
	present := map[string]string{}
	for _, p := range now.aliases() {
		present[p.name] = p.path
	}
	r := renamer{words: map[string]string{}}
	for _, p := range then.aliases() {
		if path, ok := present[p.name]; ok {
			r.names = append(r.names, renaming{p.path, path, endsPath})
		}
	}
	for former, name := range renamed {
		r.names = append(r.names, renaming{former, name, endsAnywhere})
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if wordLength(id) == len(id) {
			r.words[id] = ids[id]
		} else {
			r.names = append(r.names, renaming{id, ids[id], endsID})
		}
	}
	return r
}

// rewrite is a [rewriter]. It goes by way of marks, so that no new name is taken for an old one.
func (r renamer) rewrite(s string, isJSON bool) string {
	var marks []string
	for i, name := range r.names {
		was, is := name.old, name.new
		if isJSON {
			was, is = jsonInside(was), jsonInside(is)
		}
		mark := "\x00" + strconv.Itoa(i) + "\x00"
		if marked := replaceName(s, was, mark, name.ends); marked != s {
			s, marks = marked, append(marks, mark, is)
		}
	}
	if len(r.words) > 0 {
		s = replaceWords(s, func(word string) (string, bool) {
			is, known := r.words[word]
			if known && isJSON {
				is = jsonInside(is)
			}
			return is, known
		})
	}
	return strings.NewReplacer(marks...).Replace(s)
}

// replaceWords replaces the words that have a new name. It takes one pass, however many have one.
func replaceWords(s string, now func(word string) (string, bool)) string {
	var b strings.Builder
	written := 0
	for at := 0; at < len(s); {
		n := wordLength(s[at:])
		if n == 0 {
			at++
			continue
		}
		if name, ok := now(s[at : at+n]); ok {
			b.WriteString(s[written:at])
			b.WriteString(name)
			written = at + n
		}
		at += n
	}
	if written == 0 {
		return s
	}
	b.WriteString(s[written:])
	return b.String()
}

func wordLength(s string) int {
	for i := range len(s) {
		if !isWord(s[i]) {
			return i
		}
	}
	return len(s)
}

// jsonInside is s as it is between the quotes of a JSON string.
func jsonInside(s string) string {
	quoted := encodeJSON(s)
	return quoted[1 : len(quoted)-1]
}

// replaceName replaces old where it is a whole name, by what comes before it and by the rest of the text after it.
func replaceName(s, old, now string, ends func(rest string) bool) string {
	var b strings.Builder
	for from := 0; ; {
		i := strings.Index(s[from:], old)
		if i < 0 {
			b.WriteString(s[from:])
			return b.String()
		}
		begin, end := from+i, from+i+len(old)
		b.WriteString(s[from:begin])
		if inWord := begin > 0 && isWord(s[begin-1]) && isWord(old[0]); inWord || !ends(s[end:]) {
			b.WriteString(old)
		} else {
			b.WriteString(now)
		}
		from = end
	}
}

// endsPath distinguishes /work from /work2 and /work.old, but not from the end of a sentence.
func endsPath(rest string) bool {
	return endsID(rest) && (len(rest) < 2 || rest[0] != '.' || !isWord(rest[1]))
}

func endsAnywhere(string) bool { return true }

func endsID(rest string) bool { return rest == "" || !isWord(rest[0]) }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= 0x80
}

// mapStrings replaces each string value of a document, in an order that is always the same.
func mapStrings(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = mapStrings(v[i], f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = mapStrings(v[name], f)
		}
	}
	return v
}
