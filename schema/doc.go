// SPDX-License-Identifier: Apache-2.0

// Package schema turns Go types into JSON Schema, checks JSON values against a schema, and
// rewrites a schema into the dialect that the Claude Code CLI accepts.
//
// Promises:
//
//   - A [Schema] is immutable and safe for use by several goroutines. Schemas of Go types are computed once per type.
//   - The JSON of a schema is deterministic: properties appear in the order of the struct fields,
//     or in the order of the text that was parsed.
//   - [Schema.Validate] reports every violation it can find, not only the first, each with a JSON
//     pointer to the value, so that a model can repair all of them at once.
//   - A value that passes the schema of a Go type decodes into that type, as what was checked: a
//     property that appears twice, or only in another case, does not pass.
//   - Checking takes time in proportion to value and schema. A schema whose references multiply is
//     given up on, and the value refused.
//   - A schema is self-contained. References lead to places inside it; nothing is ever fetched.
//   - "format" describes a value and is not enforced, as in the CLI; what a Go type needs to decode is.
package schema
