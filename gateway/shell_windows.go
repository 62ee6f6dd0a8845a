// SPDX-License-Identifier: Apache-2.0

package gateway

// shell runs the command of a [KeyCommand].
var shell = []string{"cmd.exe", "/c"}
