// SPDX-License-Identifier: Apache-2.0

// Package safetext makes texts safe that leave the program: to keep ([Redactor]), to show ([Line], [Lines], [Start],
// [Few]) and to send to a model ([PromptProblem]), and writes figures and errors as people read them.
//
// Promises of the redactor, which is the only one: stderr tails, logs, spans, recordings and bundles all pass through it.
//
//   - A known value of at least four bytes never survives, neither as it is nor escaped for JSON or
//     a URL, nor in base64.
//   - What looks like a secret is taken out without being known: keys and tokens of common makers,
//     authorization headers, assignments to names like X_API_KEY, JSON Web Tokens, private keys.
//   - Both are found behind up to eight levels of escapes, as in JSON in JSON.
//   - The text around a secret stays, so that a log can still be read. A text of more than 1 MiB with an escaped secret is given up.
//   - A nil [*Redactor] works and knows the patterns only. All methods are safe for several
//     goroutines at once; a [Writer] is for one.
//
// Not promised: a secret that is neither known nor of a known shape, or one that was cut apart before it came here.
package safetext
