// SPDX-License-Identifier: Apache-2.0

package terminal

// This file has every text of the package that a model reads.

const (
	deniedByUser    = "The user denied this call of %s." + afterUserDenial
	afterUserDenial = " Do not repeat it. Continue without it, or explain in your answer why you need it." // not shown to the user
)
