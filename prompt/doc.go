// SPDX-License-Identifier: Apache-2.0

// Package prompt defines the instructions of an agent: text in sections, the tools, skills and policies
// that belong to each, and the type of the answer.
//
// A [Template] is the definition, a [Prompt] is a template with the values of its params, and
// [Rendered] is what one run is given. Promises:
//
//   - A template is checked as a whole when it is made. Every mistake is reported at once, with the
//     section and, in texts, line and column.
//   - A template and a prompt never change and are safe for use by several goroutines. Later changes
//     of the caller's sections have no effect; tools are used as they are and must not be changed.
//   - Rendering is deterministic to the byte: the same prompt, options and session state give the
//     same text and the same order of tools, skills and policies. Numbers of sections count the
//     disabled ones too, so that they do not move.
//   - Values are put into the text as they are. A value is never searched for placeholders.
//   - A section that is disabled or only summarised takes its whole subtree with it: text, tools,
//     skills and policies.
//
// # Placeholders
//
// In the text and the summary of a section, $name and ${name} are replaced by a value and $$ by a dollar
// sign. A name has ASCII letters, digits and underscores and does not begin with a digit; a dollar
// sign before anything else, as in $5, is text. A name is that of a field of a params struct: the
// tag `prompt:"name"`, else the name in its json tag, else the name of the field.
package prompt
