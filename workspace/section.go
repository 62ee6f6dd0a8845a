// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/prompt"
)

// Section tells a model what is in the workspace. The same mounts give the same text every time: it names
// neither the host nor the folder, which is the working directory of the run: drover.Evaluate uses the workspace of
// the section.
func (w *Workspace) Section() *prompt.Section {
	return &prompt.Section{Key: "workspace", Title: "Workspace", Text: sectionText(w.previews), Workspace: w, NoOverrides: true}
}

func sectionText(previews []Preview) string {
	if len(previews) == 0 {
		return "Your working directory is an empty folder of your own."
	}
	var b strings.Builder
	b.WriteString("Your working directory is a folder of your own. It has copies of these files; changing them does not change the originals.\n\n")
	for i := range previews {
		previews[i].describe(&b)
	}
	return strings.ReplaceAll(b.String(), "$", "$$") // a name is no placeholder
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
		return "left out"
	}
	return "file, " + count(p.BytesCopied, "byte")
}

func count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// showName writes a name so that it stays within its line. The author of a file name could otherwise end the
// line and write text in the name of another author. A name with anything unusual is quoted as Go does.
func showName(name string) string {
	if safetext.Line(name) == name && !strings.ContainsAny(name, "`\"\\") {
		return "`" + name + "`"
	}
	return "`" + strings.ReplaceAll(strconv.QuoteToASCII(name), "`", `\x60`) + "`"
}
