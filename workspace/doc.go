// SPDX-License-Identifier: Apache-2.0

// Package workspace gives an agent a place to work in: a folder with copies of what it may see, which is
// checked, watched, rolled back to the byte, and written back to the host if somebody says so.
package workspace
