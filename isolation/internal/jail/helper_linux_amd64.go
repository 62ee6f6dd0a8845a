// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"debug/elf"
	_ "embed"
)

// helperELF is helper/helper.c, compiled, and guardELF is helper/guard.c. TestHelperFile_IsBuiltFromItsSource builds them.
var (
	//go:embed helper_amd64.elf
	helperELF []byte
	//go:embed guard_amd64.elf
	guardELF []byte
)

// guardMachine is the processor of programs that the guard fits.
const guardMachine = elf.EM_X86_64
