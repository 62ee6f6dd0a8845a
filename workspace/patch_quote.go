// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"path"
	"strings"
)

var cEscapes = map[byte]string{
	'\a': `\a`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\v': `\v`, '\f': `\f`, '\r': `\r`, '"': `\"`, '\\': `\\`,
}

// quoteName spells a name as git reads it in patches: as it is if it has only printable ASCII, and otherwise
// in quotes with the escapes of C. Git leaves names with spaces bare, and then cannot read back all of
// them where no line has the name alone; in quotes it can.
func quoteName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case cEscapes[c] != "":
			b.WriteString(cEscapes[c])
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == len(name) && !strings.Contains(name, " ") {
		return name
	}
	return `"` + b.String() + `"`
}

// gitRefuses reports a path that git never applies a patch to: one that is, or that some system takes for,
// a part of a repository's own folder, and a .gitmodules that is a link.
func gitRefuses(name string, link bool) bool {
	if inGit(name) != "" {
		return true
	}
	return link && looksLikeModules(strings.ToLower(path.Base(name)))
}

// looksLikeModules reports .gitmodules, also by the short names that Windows gives it.
func looksLikeModules(base string) bool {
	plain, _, _ := strings.Cut(base, ":")
	plain = strings.TrimRight(plain, " .")
	return plain == ".gitmodules" || strings.HasPrefix(plain, "gitmod~") || strings.HasPrefix(plain, "gi7eba~")
}
