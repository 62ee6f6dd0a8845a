// SPDX-License-Identifier: Apache-2.0

// Package storetest defines the contract of a [transcript.Store] as a test suite. A store is valid if
// [RunStoreSuite] passes; contracts of optional interfaces are skipped for a store that does not have
// them. The suite uses no network and no files of its own.
package storetest
