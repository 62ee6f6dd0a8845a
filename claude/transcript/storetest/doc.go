// SPDX-License-Identifier: Apache-2.0

// Package storetest is the definition of a [transcript.Store] as a test suite. A new store is one
// when [RunStoreSuite] passes on it; contracts of optional interfaces are skipped for a store that
// does not have them. The suite uses no network and no files of its own.
package storetest
