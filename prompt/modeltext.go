// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"strings"
)

// This file has every text of the package that a model reads.

type openParams struct {
	SectionKeys []string `json:"section_keys" doc:"The section keys exactly as the summaries name them, with their dots." minItems:"1"`
	Reason      string   `json:"reason" doc:"Why you need the sections, in one sentence."`
}

type readParams struct {
	SectionKey string `json:"section_key" doc:"The section key exactly as the summary names it, with its dots."`
}

const (
	openDescription = "Opens sections of your instructions that are shown only as summaries. The result is their full text. " +
		"You can use their tools and skills from then on."
	restartDescription = "Opens sections of your instructions that are shown only as summaries, with their tools and skills. " +
		"The work then restarts from scratch with the full text, so call this before any other work."
	readDescription = "Returns the full text of one section of your instructions that is shown only as a summary. " +
		"It does not give you the tools and skills of the section."
	restartResult = "The sections are being opened. End this turn now and call no more tools. The work continues in a new turn with their full text."
	nothingHidden = "No section is hidden: all sections are open. Continue with the text that you have."
)

// summaryNotice follows the summary of a hidden section.
func summaryNotice(h HiddenSection) string {
	gain := "read the full section"
	if h.OpenWith == OpenSections {
		gain = "get the full section with its tools and skills"
	}
	text := fmt.Sprintf("---\nThis is a summary. Call `%s` with section key %q to %s.", h.OpenWith, h.Path, gain)
	return text + listed(" Its subsections: %s.", h.Subsections)
}

// textOnlyNotice follows the text of a section that was read and not opened.
func textOnlyNotice(key string) string {
	return fmt.Sprintf("\n\n---\nThis is only the text. Call `%s` with section key %q to get the tools and skills of the section.", OpenSections, key)
}

func unknownKeys(keys, hidden []string) string {
	return fmt.Sprintf("Unknown section key: %s. ", quoteKeys(keys)) + listed("Call again with keys of hidden sections: %s.", hidden)
}

func missingKeys(hidden []string) string {
	return listed("No section key is given. Call again with keys of hidden sections: %s.", hidden)
}

func openKeys(keys, hidden []string) string {
	return listed("Already open: %s. ", keys) + listed("Use the text that you have, or call again with keys of hidden sections: %s.", hidden)
}

func openedText(o Opened) string {
	var tools, skills []string
	for _, t := range reaching(o.Tools, o.Withheld) {
		if t.Served() {
			tools = append(tools, t.Name)
		}
	}
	for _, s := range o.Skills {
		skills = append(skills, s.Name())
	}
	return o.Text + "\n\n---\n" + listed("Opened: %s.", o.Paths) + listed(" You can call these tools now: %s.", tools) +
		listed(" These tools are not available in this run: %s. Continue without them.", o.Withheld) + listed(" You can use these skills now: %s.", skills)
}

func unopenedText(o Opened, reason error) string {
	return fmt.Sprintf("%s\n\n---\nThis is the full text of %s. The sections could not be opened, so their tools and skills are not available. "+
		"Continue without them, or call `%s` again later. Reason: %v", o.Text, strings.Join(o.Paths, ", "), OpenSections, reason)
}

// listed puts a list into a text. It is empty for an empty list.
func listed(format string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf(format, strings.Join(list, ", "))
}

func exampleText(e TaskExample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Example: %s\n", dedent(e.Objective))
	for i, step := range e.Steps {
		fmt.Fprintf(&b, "\n%d. %s", i+1, step)
	}
	if len(e.Steps) > 0 {
		b.WriteByte('\n')
	}
	if e.Outcome != "" {
		fmt.Fprintf(&b, "\nOutcome: %s\n", dedent(e.Outcome))
	}
	return b.String()
}

// String returns "Look for it. Call `find` with `{"q":"x"}`. It returns `{"n":1}`."
func (s ExampleStep) String() string {
	text := dedent(s.Text)
	if s.Tool == "" {
		return text
	}
	if text != "" {
		text += " "
	}
	text += fmt.Sprintf("Call `%s` with `%s`.", s.Tool, compact(s.input()))
	if len(s.Output) > 0 {
		text += fmt.Sprintf(" It returns `%s`.", compact(s.Output))
	}
	return text
}
