// SPDX-License-Identifier: Apache-2.0

// Package jsonscan reads one JSON text in a single pass, without allocating.
//
// A [Scanner] is a cursor: the caller enters objects and arrays, asks for the values it knows and
// skips the others. Promises:
//
//   - What is read to its end with [Scanner.End] without error is exactly what encoding/json's
//     Valid accepts, the nesting limit of 10,000 included: skipped values are checked too.
//   - A value of another type than the one asked for is consumed and reported as absent. Only
//     text that is not JSON is an error, and the error stays.
//   - Strings decode as encoding/json decodes them: bytes that are not UTF-8 and lone surrogates
//     become U+FFFD.
//   - Slices that are handed out point into the input; the input is never modified.
//
// A Scanner is not safe for use by several goroutines.
package jsonscan
