// SPDX-License-Identifier: Apache-2.0

// Package house holds the rules of this repository as tests: licence headers, package comments, the drawing of the layers,
// what documents promise about the code, and what must never be committed. It has no code that others use.
package house
