// SPDX-License-Identifier: Apache-2.0

// Package fsuite is the definition of a [workspace.FS] as a test suite. A new file system is one when [Run]
// passes on it.
package fsuite
