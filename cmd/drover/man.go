// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
)

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man folder",
		Short:   "Write the manual pages into a folder",
		Long:    `Man writes one manual page for each command: drover.1, drover-run.1 and so on. The texts are those of --help.`,
		Example: `  drover man ~/.local/share/man/man1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return advice.Wrap(usageError("man takes one folder, and there are %d arguments", len(args)), "drover man ~/.local/share/man/man1")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeManPages(cmd.Root(), args[0])
		},
		DisableFlagsInUseLine: true,
	}
}

// writeManPages writes the pages of a command and of those below it.
func writeManPages(cmd *cobra.Command, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writeManPages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the page of a command in the macros of man(7). It has no date, so that the same version has the same page.
func manPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	name := manName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"drover %s\" \"Drover\"\n", strings.ToUpper(name), claude.Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(name), roff(cmd.Short), roff(cmd.UseLine()))
	if cmd.Long != "" {
		b.WriteString(".SH DESCRIPTION\n" + roffText(cmd.Long))
	}
	b.WriteString(".SH OPTIONS\n")
	titles, groups := flagLines(cmd, 0)
	for _, title := range titles {
		if len(titles) > 1 {
			fmt.Fprintf(&b, ".SS %s\n", title)
		}
		for _, f := range groups[title] {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(f.head), roff(f.usage))
		}
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, manName(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			others = append(others, manName(sub))
		}
	}
	for i, other := range others {
		others[i] = fmt.Sprintf("\\fB%s\\fR(1)", roff(other))
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ",\n"))
	}
	return b.String()
}

// roffText is a text with paragraphs. One with a line that begins with spaces keeps its lines.
func roffText(text string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.Contains("\n"+paragraph, "\n ") {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(paragraph))
		} else {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(paragraph))
		}
	}
	return b.String()
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// roff is a text without meaning for roff.
func roff(text string) string { return strings.TrimPrefix(roffEscapes.Replace("\n"+text), "\n") }
