// SPDX-License-Identifier: Apache-2.0

// Package corpus makes the lines that the fake CLI of the benchmarks writes. The lines depend on
// nothing but the code: every client of every run reads the same bytes.
package corpus
