// SPDX-License-Identifier: Apache-2.0

// Package overrides keeps overrides of prompts on disk: one JSON file for each template and tag, which
// people may edit and keep under version control. [prompt.RenderOptions] takes what [File.Resolve] reads.
//
// Promises:
//
//   - An override is kept with the hash of the text that it was made for and applies to that text
//     alone. A file can have overrides for several versions of a text.
//   - Any number of processes may read and write. A change is made under a lock and replaces the whole
//     file atomically, so that readers see it before or after, and a crash loses at most the
//     change that was not confirmed.
//   - Every override that a setter has written can be applied: it is checked like the template itself.
//   - Nothing outside [Store].Dir is read or written, whatever names and links there are.
//   - A file has at most 16 MiB; what would be larger is not written.
//
// Beside the files there is one named ".lock", and after a crash there may be one that ends in
// ".tmp"; they need not be kept.
package overrides
