// SPDX-License-Identifier: Apache-2.0

package isolation

// A Home is the private home of one run.
type Home struct{ dir string }
