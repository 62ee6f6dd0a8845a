// SPDX-License-Identifier: Apache-2.0

// Package filetree reads and changes a tree of files below one folder, through handles that never leave it: no link
// in a path is followed, also if entries are exchanged meanwhile. Names are bytes; they need not be UTF-8.
package filetree
