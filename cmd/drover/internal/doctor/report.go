// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
)

// exitIll is the exit code of a report that has something missing or broken that a run needs.
const exitIll = 3

// A State is the result of a check.
type State string

// The states. A run cannot do without what is missing or broken.
const (
	stateOK      State = "ok"
	stateWarning State = "warning"
	stateSkipped State = "skipped"
	stateMissing State = "missing"
	stateBroken  State = "broken"
)

func (s State) bad() bool { return s == stateMissing || s == stateBroken }

// A Check is the answer to one question. The JSON form is stable: docs/doctor.md.
type Check struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	// Fix are the ways to fix it, best first; each one is enough.
	Fix     []string `json:"fix,omitempty"`
	Version string   `json:"version,omitempty"`
	Tested  string   `json:"tested,omitempty"`
	Path    string   `json:"path,omitempty"`
	// Source is how the path was found, or which credential a run would use.
	Source string `json:"source,omitempty"`
	// Endpoint is scheme and host, never the rest of the address.
	Endpoint  string            `json:"endpoint,omitempty"`
	FreeBytes *uint64           `json:"freeBytes,omitempty"`
	Parts     map[string]string `json:"parts,omitempty"`
	// Attempts are attempts to break the isolation, from inside.
	Attempts []isolation.Attempt `json:"attempts,omitempty"`
}

// A Report is the result of all checks.
type Report struct {
	Drover string `json:"drover"`
	// Exit is the exit code of the command: 0 if a run can begin, and else 3.
	Exit    int     `json:"exit"`
	Summary string  `json:"summary"`
	Checks  []Check `json:"checks"`
}

func newReport(checks []Check) Report {
	r := Report{Drover: claude.Version, Checks: checks}
	names := map[State][]string{}
	for _, c := range checks {
		names[c.State] = append(names[c.State], c.Name)
		if c.State.bad() {
			r.Exit = exitIll
		}
	}
	r.Summary = summary(names)
	return r
}

// summary is the last sentence. names are those of the checks by their state.
func summary(names map[State][]string) string {
	missing, broken, warnings := names[stateMissing], names[stateBroken], names[stateWarning]
	bad := strings.Join(append(missing[:len(missing):len(missing)], broken...), ", ")
	switch {
	case len(missing)+len(broken) == 0 && len(warnings) == 0:
		return "all a run needs is here"
	case len(missing)+len(broken) == 0:
		return fmt.Sprintf("a run can begin; %s: %s", counted(len(warnings), "warning", "warnings"), strings.Join(warnings, ", "))
	case len(broken) == 0:
		return fmt.Sprintf("%s missing: %s", counted(len(missing), "thing is", "things are"), bad)
	case len(missing) == 0:
		return fmt.Sprintf("%s broken: %s", counted(len(broken), "thing is", "things are"), bad)
	}
	return fmt.Sprintf("%d things are missing or broken: %s", len(missing)+len(broken), bad)
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "one " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// WriteJSON writes one JSON object: docs/doctor.md.
func (r Report) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// detailIndent is where details begin, and narrowestDetail how few characters of them make a line.
const (
	detailIndent    = 21
	narrowestDetail = 30
)

// WriteText writes a line for each check, its fixes below, and the summary. Lines are folded at width; zero means never.
func (r Report) WriteText(out io.Writer, width int) error {
	var b strings.Builder
	for _, c := range r.Checks {
		writeLine(&b, width, c.Name, string(c.State), c.Detail)
		label := "fix"
		for _, fix := range c.Fix {
			writeLine(&b, width, "", label, fix)
			label = "or"
		}
		for _, a := range c.Attempts {
			writeLine(&b, width, "", attemptWord(a.Blocked), strings.TrimSuffix(a.Name+": "+a.Detail, ": "))
		}
	}
	fmt.Fprintf(&b, "exit %d: %s\n", r.Exit, r.Summary)
	_, err := io.WriteString(out, b.String())
	return err
}

// attemptWord is the result of an attempt to break the isolation.
func attemptWord(held bool) string {
	if held {
		return "held"
	}
	return "OPEN"
}

func writeLine(b *strings.Builder, width int, name, state, detail string) {
	for _, part := range folded(oneLine(detail), width-detailIndent) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-11s %-8s %s", name, state, part), " ") + "\n")
		name, state = "", ""
	}
}

// folded breaks text between words into parts of at most that length, where possible. Below narrowestDetail it does nothing.
func folded(text string, most int) []string {
	if most < narrowestDetail {
		return []string{text}
	}
	var parts []string
	for utf8.RuneCountInString(text) > most {
		runes := []rune(text)
		cut := strings.LastIndex(string(runes[:most+1]), " ")
		if cut <= 0 {
			if cut = strings.Index(text, " "); cut < 0 {
				break
			}
		}
		parts = append(parts, strings.TrimRight(text[:cut], " "))
		text = strings.TrimLeft(text[cut:], " ")
	}
	return append(parts, text)
}

// oneLine makes text of several lines one, and harmless: details may be words of programs and servers.
func oneLine(text string) string {
	return safetext.Line(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text))
}
