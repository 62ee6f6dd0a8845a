// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
)

// examineIsolation reports the isolation level that a run can have, and tests it from inside. By default a run needs a cell.
func (m *machine) examineIsolation(ctx context.Context) *Check {
	level, reasons := m.best(ctx)
	report, err := m.probe(ctx, level)
	c := &Check{State: stateOK, Source: level.String(), Attempts: report.Attempts}
	switch {
	case level != isolation.LevelCell:
		c.State, c.Detail = stateMissing, noCell(level, reasons)
		c.Fix = append(m.cellFixes(ctx, reasons), fmt.Sprintf(`drover run --isolation %s "prompt"   to accept weaker isolation`, level))
	case errors.Is(err, context.DeadlineExceeded):
		c.State, c.Detail, c.Fix = stateBroken, "the test of the isolation did not end in time", []string{moreTime}
	case err != nil:
		c.State, c.Detail, c.Fix = stateBroken, safetext.FirstLine(wording.Error(err)), []string{"drover run --help lists the weaker isolation levels"}
	case report.Err() != nil:
		c.State, c.Detail, c.Fix = stateBroken, "cell: some attempts to get out succeeded", []string{"do not run agents here; report what is open"}
	default:
		c.Detail = fmt.Sprintf("cell: files, processes and network of its own; %d attempts to get out were blocked", len(report.Attempts))
	}
	return c
}

// noCell states the best available level, and why there is no cell.
func noCell(level isolation.Level, reasons []error) string {
	text := "no cell, at most the level " + level.String()
	if len(reasons) > 0 {
		text += ": " + strings.TrimPrefix(strings.TrimSpace(safetext.FirstLine(wording.Error(reasons[0]))), "cell: ")
	}
	return text
}

// cellFixes are the ways to give this machine a cell: a command where one is known, or else the advice in the reasons.
func (m *machine) cellFixes(ctx context.Context, reasons []error) []string {
	if m.goos == "linux" {
		if f := m.sandbox(ctx); f.bubblewrap.err != nil && !f.lackedTime() {
			return []string{f.install("bubblewrap")}
		}
	}
	for _, reason := range reasons {
		if next := advice.Of(reason); next != "" {
			return []string{next}
		}
	}
	return nil
}

func probeLevel(ctx context.Context, level isolation.Level) (isolation.Report, error) {
	in := &isolation.Isolation{Weakest: level, Strongest: level}
	if level == isolation.LevelHost {
		in.Sandbox = &isolation.Sandbox{Disabled: true}
	}
	return isolation.Probe(ctx, in, claudecell.Program(&claude.Options{}))
}
