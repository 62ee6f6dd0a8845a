// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package doctor

import "context"

// probeSandbox is not called: the checks report what this system lacks.
func probeSandbox(context.Context) sandboxFacts { return sandboxFacts{} }
