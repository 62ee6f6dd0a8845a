// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/terminal"
)

// flagGroups are the headings under which the help of drover run has its flags, in this order.
var flagGroups = []struct {
	title string
	flags []string
}{
	{"Agent", []string{"file", "arg", "allow-root", "no-project-file", "agent"}},
	{"Permissions", []string{"permission-mode", "allow", "ask", "deny", "read-only", "tools", "unknown-tools"}},
	{"Limits", []string{"max-turns", "side-calls", "max-usd", "max-tokens", "timeout"}},
	{"Output", []string{"schema", "json", "quiet"}},
	{"Conversation", []string{"continue", "resume"}},
	{"Record", []string{"watch", "no-keep", "keep-traffic", "secret"}},
	{"Workspace", []string{"mount", "write-back", "write-back-incomplete", "diff"}},
	{"Isolation", []string{"isolation", "allow-domain", "allow-localhost", "writable", "readable"}},
	{"Model", []string{"model", "stored-login", "record", "replay", "model-script"}},
}

// A flagLine is the help of one flag: "  -f, --file file   run the agent". Its line may be several in a narrow terminal.
type flagLine struct{ line, name, head, usage string }

var flagForm = regexp.MustCompile(`^ +((?:-\w, )?--([\w-]+).*?) {3,}(.*)$`)

// flagLines is the help of the flags of a command by groups, in so many columns; zero means any number. Those of no group come last.
func flagLines(cmd *cobra.Command, columns int) (titles []string, groups map[string][]flagLine) {
	groups = map[string][]flagLine{}
	title := "Other"
	for line := range strings.Lines(cmd.LocalFlags().FlagUsagesWrapped(columns)) {
		parts := flagForm.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if parts == nil {
			if of := groups[title]; len(of) > 0 {
				of[len(of)-1].line += line
			}
			continue
		}
		title = "Other"
		for _, g := range flagGroups {
			if cmd.Name() == "run" && slices.Contains(g.flags, parts[2]) {
				title = g.title
			}
		}
		groups[title] = append(groups[title], flagLine{line, parts[2], parts[1], parts[3]})
	}
	for _, g := range flagGroups {
		if groups[g.title] != nil {
			titles = append(titles, g.title)
		}
	}
	return append(titles, "Other"), groups
}

// helpColumns is how many columns a command has for its help; zero means any number. Cobra collects the help in a buffer first.
func helpColumns(cmd *cobra.Command) int { return terminal.Width(cmd.Root().OutOrStdout()) }

// groupedUsage prints what the help has below the description.
func groupedUsage(cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n\nFlags:\n", cmd.UseLine(), cmd.Example)
	titles, groups := flagLines(cmd, helpColumns(cmd))
	for _, title := range titles {
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, l := range groups[title] {
			b.WriteString(l.line)
		}
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}
