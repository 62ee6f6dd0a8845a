// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package workspace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/prompt"
)

// Section describes the contents of the workspace to a model. The same mounts always give the same text: it names
// neither the host nor the folder. drover.Evaluate runs the agent in the workspace of the section.
func (w *Workspace) Section() *prompt.Section {
	return &prompt.Section{Key: "workspace", Title: "Workspace", Text: sectionText(w.previews), Workspace: w, NoOverrides: true}
}

func sectionText(previews []Preview) string {
	if len(previews) == 0 {
		return "Your working directory is empty, and yours alone. Create the files that you need in it."
	}
	var b strings.Builder
	b.WriteString("Your working directory is yours alone. It contains copies of the files below. Read and edit the copies; the originals do not change.\n\n")
	for i := range previews {
		previews[i].describe(&b)
	}
	return strings.ReplaceAll(b.String(), "$", "$$") // a name is not a placeholder
}

func (p *Preview) describe(b *strings.Builder) {
	if !p.Directory {
		fmt.Fprintf(b, "- %s: %s\n", showName(p.MountPath), p.fileText())
		return
	}
	fmt.Fprintf(b, "- %s: folder with %s, %s", showName(p.MountPath+"/"), count(p.Files, "file"), count(p.Folders, "folder"))
	if p.Links > 0 {
		fmt.Fprintf(b, ", %s", count(p.Links, "symbolic link"))
	}
	fmt.Fprintf(b, ", %s\n", count(p.BytesCopied, "byte"))
	for _, name := range p.Entries {
		fmt.Fprintf(b, "  - %s\n", showName(name))
	}
	if more := p.Files + p.Links - len(p.Entries); more > 0 {
		fmt.Fprintf(b, "  - and %d more\n", more)
	}
}

func (p *Preview) fileText() string {
	if p.Files == 0 {
		return "not copied"
	}
	return "file, " + count(p.BytesCopied, "byte")
}

const namedPaths = 20

func (r *Restored) text() string {
	var parts, paths []string
	disputed := map[string]bool{}
	for _, c := range r.Conflicts { // a path may be disputed more than once
		if !disputed[c.Path] {
			paths, disputed[c.Path] = append(paths, c.Path), true
		}
	}
	if restored := slices.DeleteFunc(slices.Clone(r.Restored), func(p string) bool { return disputed[p] }); len(restored) > 0 {
		parts = append(parts, fmt.Sprintf("This call failed, and its changes were rolled back: %s. Repeat the changes that you still need.", list(restored)))
	}
	if len(paths) > 0 {
		parts = append(parts, fmt.Sprintf("Other changes prevented a clean rollback of these paths: %s. Read them again before you use them.", list(paths)))
	}
	if r.Error != "" {
		parts = append(parts, "Some changes of this call could not be rolled back. Read the files that it may have changed before you use them.")
	}
	return strings.Join(parts, " ")
}

func callRejected(cause error) string {
	line, _, _ := strings.Cut(cause.Error(), "\n")
	return fmt.Sprintf("Error: call rejected: no checkpoint could be taken: %s. The tool did not run. Try again once; if that fails too, report this error.", line)
}

func list(paths []string) string {
	var names []string
	for _, p := range paths[:min(len(paths), namedPaths)] {
		names = append(names, showName(p))
	}
	text := strings.Join(names, ", ")
	if more := len(paths) - namedPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// showName writes a name so that it stays within its line. Otherwise the author of a file name could end the line and
// write text of the prompt. Unusual names are quoted as in Go.
func showName(name string) string {
	if safetext.Line(name) == name && !strings.ContainsAny(name, "`\"\\") {
		return "`" + name + "`"
	}
	return "`" + strings.ReplaceAll(strconv.QuoteToASCII(name), "`", `\x60`) + "`"
}
