// SPDX-License-Identifier: Apache-2.0

// Package objects keeps contents of files by their hash, each once, in few files of one folder.
package objects
