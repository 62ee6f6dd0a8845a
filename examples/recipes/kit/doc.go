// SPDX-License-Identifier: Apache-2.0

// Package kit has a test of an agent: the real CLI, and a script in place of the model. It needs no key.
package kit
