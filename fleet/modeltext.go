// SPDX-License-Identifier: Apache-2.0

package fleet

// Texts that a model reads.

const interrupted = "You have begun this task before and were interrupted. Do the steps that are missing. " +
	"A call that you have finished before is not executed again: you get its recorded result, marked as recorded."

const resumed = "You were interrupted in the middle of this task, and go on now, perhaps on another machine. " +
	"The conversation so far is what you have done. The working directory may be another one, with what your finished calls have left in it: look before you rely on other files. " +
	"Go on with the task from where you left off."

const notBegun = "This call was not made: you were interrupted before it began. Make it again if it is still needed."

// alreadyDone is the reason of a denied call that an earlier attempt has finished.
func alreadyDone(result string) string {
	return "Recorded: this call was executed before the interruption, and is not executed again. Continue with its result:\n" + result
}

// alreadyFailed is the reason of a denied call that an earlier attempt has made without success.
func alreadyFailed(reason string) string {
	return "Recorded: this call failed before the interruption, and is not executed again. Call it once more to try again. Its error:\n" + reason
}

const outcomeUnknown = "The outcome of this call is unknown: it was under way at the interruption, and may have taken effect. " +
	"Check whether it did. Call it once more only if it did not."
