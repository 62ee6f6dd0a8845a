// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package doctor

import "context"

// probeSandbox is not asked: the checks say what this system lacks.
func probeSandbox(context.Context) sandboxFacts { return sandboxFacts{} }
