// SPDX-License-Identifier: Apache-2.0

package claudecode

import "github.com/drover-agents/drover/event"

// UsageDiffers is the key in the metadata of the done event under which a [UsageDifference] stands, if the
// CLI's count of the run and the gateway's do not agree. Neither is corrected.
const UsageDiffers = "usageDiffers"

// A UsageDifference tells the two counts of a run that do not agree: the CLI says less than the answers
// that came to their end, as when a command in the cell called the model by itself; or more than all that
// has passed the gateway. An answer that was cut may be in the CLI's count or not, and is no difference. A
// run of which the CLI's own count is partial, or missing, is not compared.
type UsageDifference struct {
	// CLI is what the CLI says.
	CLI Tokens `json:"cli"`
	// Gateway is all that the gateway has counted, and Whole the part of it in answers that came to their
	// end.
	Gateway Tokens `json:"gateway"`
	Whole   Tokens `json:"whole"`
}

// compare adds a difference between the counts, if there is one.
func (e *ending) compare(whole, counted Tokens) {
	said := e.done.Usage.Tokens
	if said == nil || said.Coverage != event.CoverageComplete {
		return
	}
	cli := Tokens{said.Totals.Input.Total, said.Totals.Output.Total}
	if !cli.within(whole, counted) {
		e.describe(UsageDiffers, UsageDifference{CLI: cli, Gateway: counted, Whole: whole})
	}
}

func (t Tokens) within(least, most Tokens) bool {
	return t.Input >= least.Input && t.Input <= most.Input && t.Output >= least.Output && t.Output <= most.Output
}
