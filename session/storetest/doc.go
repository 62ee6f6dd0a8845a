// SPDX-License-Identifier: Apache-2.0

// Package storetest is the definition of a [session.Store] as a test suite. A new store is one when [Run]
// passes on it. The suite uses no network and no files of its own.
package storetest
