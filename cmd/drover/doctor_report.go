// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// A doctorState is what came of a check.
type doctorState string

// The states. A run cannot do without what is missing or broken.
const (
	doctorOK      doctorState = "ok"
	doctorWarning doctorState = "warning"
	doctorSkipped doctorState = "skipped"
	doctorMissing doctorState = "missing"
	doctorBroken  doctorState = "broken"
)

// bad reports whether a run would fail.
func (s doctorState) bad() bool { return s == doctorMissing || s == doctorBroken }

// A doctorCheck is the answer to one question. The JSON form is stable: docs/doctor.md.
type doctorCheck struct {
	Name   string      `json:"name"`
	State  doctorState `json:"state"`
	Detail string      `json:"detail"`
	// Fix are ways to mend it, best first; each one is enough.
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
	// Attempts are tries to get through the walls, from inside.
	Attempts []isolation.Attempt `json:"attempts,omitempty"`
}

// A doctorReport is all that doctor has to say.
type doctorReport struct {
	Drover  string        `json:"drover"`
	Exit    int           `json:"exit"`
	Summary string        `json:"summary"`
	Checks  []doctorCheck `json:"checks"`
}

func newDoctorReport(checks []doctorCheck) doctorReport {
	r := doctorReport{Drover: claude.Version, Checks: checks}
	names := map[doctorState][]string{}
	for _, c := range checks {
		names[c.State] = append(names[c.State], c.Name)
		if c.State.bad() {
			r.Exit = exitIll
		}
	}
	r.Summary = doctorSummary(names)
	return r
}

// doctorSummary is the last sentence. names are those of the checks by their state.
func doctorSummary(names map[doctorState][]string) string {
	missing, broken, warnings := names[doctorMissing], names[doctorBroken], names[doctorWarning]
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

func (r doctorReport) writeJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
