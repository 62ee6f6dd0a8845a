// SPDX-License-Identifier: Apache-2.0

// Package filestest is the definition of a [files.FS] as a test suite. A new file system is one when [Run]
// passes on it.
package filestest
