// SPDX-License-Identifier: Apache-2.0

// Package agentfile reads agents that are kept as files: a prompt with its arguments, the form of its
// answer, and everything that bounds the agent which works on it.
//
// [Parse] is strict. A key that is not known, a value of another type, a key that is there twice: each is a
// [Problem] with its line and column, and all of them are reported at once. [Schema] is the JSON Schema of the
// format, for editors; Parse itself checks files against it.
//
// A file may be written by another user, so by itself it reaches only its own folder: mounts, skills and schemas from
// elsewhere are refused unless [File.Roots] names their folder, links included. This package only reads the isolation level
// of a file; the caller decides whether a level weaker than a cell is accepted.
package agentfile
