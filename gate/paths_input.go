// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unsafe"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// callPaths are the files or directories that a call may use, as clean absolute paths with
// slashes. There are several if the spelling is ambiguous or leads through a link.
type callPaths struct {
	list []string
	few  [8]string // where list is, as long as it fits
	// unknown is set if there may be others.
	unknown bool
}

func (p *callPaths) add(file string) {
	if p.list == nil {
		p.list = p.few[:0]
	}
	p.list = append(p.list, file)
}

func (p *callPaths) find(c *Call, f *Facts, home string) {
	in := c.fields()
	p.unknown = in.bad || f.Target.Unresolved
	for _, text := range in.paths {
		p.addSpelled(text, f.Dir, home)
	}
	if c.Argument != "" {
		p.addSpelled(c.Argument, f.Dir, home)
	}
	if use := c.native().Files; use == tool.ListsFiles || use == tool.SearchesFiles {
		p.search(in.glob, f.Dir, home)
	}
	if f.Target.Path != "" && (len(p.list) != 1 || p.list[0] != f.Target.Path) {
		p.addSpelled(f.Target.Path, f.Dir, home)
	}
	for _, target := range f.Target.More {
		p.addSpelled(target.Path, f.Dir, home)
	}
}

// search adds where a search begins: the working directory without a path, and with a pattern the directory it begins with.
func (p *callPaths) search(pattern, dir, home string) {
	given := len(p.list) > 0 || p.unknown
	start := ""
	if pattern != "" {
		start = pattern
		if wild := strings.IndexAny(pattern, "*?[{"); wild >= 0 {
			start = pattern[:strings.LastIndexByte(pattern[:wild], '/')+1]
		}
		if strings.Contains(pattern[len(start):], "..") || strings.Contains(pattern, `\`) {
			p.unknown = true
			return
		}
	}
	away := strings.HasPrefix(start, "/") || strings.HasPrefix(start, "~")
	if !given && !away {
		p.addSpelled(".", dir, home)
	}
	switch {
	case away:
		p.addSpelled(start, dir, home)
	case start != "":
		for i := range p.list {
			p.list[i] = path.Join(p.list[i], start)
		}
	}
}

// addSpelled adds a path as a call spells it. Where programs differ on what a spelling means, as with
// "~", backslashes on Unix, and space at the ends, all meanings are added.
func (p *callPaths) addSpelled(text, dir, home string) {
	windows := isWindows(dir) || dir == "" && isWindows(text)
	if !windows && isNormal(text) {
		p.add(text)
		return
	}
	p.addMeaning(text, dir, windows)
	trimmed := strings.TrimSpace(text)
	if trimmed == "~" || strings.HasPrefix(trimmed, "~/") || strings.HasPrefix(trimmed, `~\`) {
		if home == "" {
			p.unknown = true
			return
		}
		trimmed = home + "/" + trimmed[1:]
	}
	if trimmed != text {
		p.addMeaning(trimmed, dir, windows)
	}
	if !windows && strings.Contains(trimmed, `\`) {
		p.addMeaning(strings.ReplaceAll(trimmed, `\`, "/"), dir, false)
	}
}

func (p *callPaths) addMeaning(text, dir string, windows bool) {
	file, ok := normalPath(text, dir, windows)
	if !ok {
		p.unknown = true
		return
	}
	p.add(file)
}

// normalPath makes a clean absolute path with slashes. "C:\x" becomes "/c/x", as Claude Code writes it in rules.
func normalPath(text, dir string, windows bool) (string, bool) {
	if !windows && isNormal(text) {
		return text, true
	}
	if text == "" || strings.IndexByte(text, 0) >= 0 {
		return "", false
	}
	if windows {
		var ok bool
		if text, ok = slashed(text); !ok || hidesName(text) {
			return "", false
		}
	}
	if text[0] == '/' {
		return path.Clean(text), true
	}
	if dir == "" {
		return "", false
	}
	base, ok := normalPath(dir, "", isWindows(dir))
	return path.Clean(base + "/" + text), ok
}

// slashed writes a path of Windows with slashes. It reports false for one that depends on the current drive, or has none.
func slashed(text string) (string, bool) {
	text = strings.ReplaceAll(text, `\`, "/")
	switch {
	case len(text) >= 2 && text[1] == ':' && isLetter(text[0]):
		return "/" + strings.ToLower(text[:1]) + text[2:], len(text) > 2 && text[2] == '/'
	case len(text) >= 3 && text[0] == '/' && isLetter(text[1]) && text[2] == '/':
		return "/" + strings.ToLower(text[1:2]) + text[2:], true
	}
	return text, text[0] != '/'
}

// hidesName reports whether Windows would read another name than the one that is written: it drops
// dots and spaces at the end, and takes what follows a colon for a stream of the file.
func hidesName(text string) bool {
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "." || segment == ".." {
			continue
		}
		if strings.HasSuffix(segment, ".") || strings.HasSuffix(segment, " ") || strings.Contains(segment, ":") {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isWindows(dir string) bool {
	return strings.HasPrefix(dir, `\\`) || len(dir) >= 2 && dir[1] == ':' && isLetter(dir[0])
}

// isNormal reports whether a path is clean, absolute and has one meaning everywhere.
func isNormal(text string) bool {
	if text == "" || text[0] != '/' {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if c == '\\' || c < ' ' {
			return false
		}
		// Most names begin with a letter; the call is for the others.
		if c == '/' && (i+1 == len(text) || text[i+1] == '/' || text[i+1] == '.') && !beginsName(text[i+1:]) {
			return text == "/"
		}
	}
	last := text[len(text)-1]
	return last > ' ' && last < 0x80 || text == strings.TrimSpace(text)
}

// beginsName reports whether a path without its first slash begins with a name other than "." and "..".
func beginsName(rest string) bool {
	if rest == "" || rest[0] == '/' {
		return false
	}
	if rest[0] != '.' {
		return true
	}
	name, _, _ := strings.Cut(rest, "/")
	return name != "." && name != ".."
}

// An input holds what rules look at in the input of a call. The strings are parts of it where they
// can be, so they must not outlive the judgement.
type input struct {
	paths         []string
	few           [4]string // where paths are, as long as they fit
	glob, command string
	// bad is set if the input is ambiguous or cannot be read.
	bad bool
}

func (in *input) read(raw json.RawMessage, of *tool.Fields) {
	if len(raw) == 0 {
		return
	}
	in.paths = in.few[:0:len(in.few)]
	for range of.Paths {
		in.paths = append(in.paths, "")
	}
	var s plainjson.Scanner
	s.Reset(raw)
	if !s.Object() {
		in.bad = true
		return
	}
	for {
		key, ok := s.Field()
		if !ok {
			break
		}
		if field := in.field(key, of); field != nil {
			in.readText(&s, field)
		} else {
			s.Skip()
		}
	}
	in.bad = in.bad || s.End() != nil
	in.paths = slices.DeleteFunc(in.paths, func(path string) bool { return path == "" })
	if of.Scan != nil {
		more, ok := of.Scan(raw)
		in.paths, in.bad = append(in.paths, more...), in.bad || !ok
	}
}

// mayRun reports whether there is a command in the input.
func (in *input) mayRun() bool { return in.command != "" || in.bad }

func (in *input) field(key []byte, of *tool.Fields) *string {
	switch string(key) {
	case "":
		return nil
	case of.Glob:
		return &in.glob
	case of.Command:
		return &in.command
	}
	for i, name := range of.Paths {
		if string(key) == name {
			return &in.paths[i]
		}
	}
	return nil
}

// readText reads a string into a field that was not read before. Null is as good as nothing.
func (in *input) readText(s *plainjson.Scanner, field *string) {
	if s.Kind() == plainjson.Null {
		s.Skip()
		in.bad = in.bad || *field != "" // it takes back what was there
		return
	}
	raw, plain, ok := s.Text()
	if !ok || *field != "" {
		in.bad = true
		return
	}
	if !plain {
		raw = plainjson.Unescape(nil, raw)
	}
	*field = unsafe.String(unsafe.SliceData(raw), len(raw))
}
