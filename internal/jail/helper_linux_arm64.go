// SPDX-License-Identifier: Apache-2.0

package jail

import _ "embed"

// helperELF is helper/helper.c, compiled. TestTheHelperIsBuiltFromItsSource tells how.
//
//go:embed helper_arm64.elf
var helperELF []byte
