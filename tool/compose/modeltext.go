// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package compose

const (
	partFailed    = "Part %s: %s"
	partStopped   = "part %s did not succeed"
	callStopped   = "the call of %s did not succeed"
	partNoObject  = "Part %s: its value is not a JSON object, which part %s of %s needs. Do not call %s again; report that its author must put a Postprocess around %s."
	partMisfit    = "Part %s: Validation error: it does not take the value of part %s: %v. Call %s with other arguments; if that fails too, report that its author must put a Postprocess around %s."
	fixedArgument = "%q is fixed; leave it out"
	rateLimited   = "Rate limit: %s takes %d calls per %s. Try again in %s."
	searchManual  = "Finds tools by words in their names, tags, parameters and descriptions. Use it when you need a tool whose name you do not know."
)
