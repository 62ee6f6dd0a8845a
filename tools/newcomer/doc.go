// SPDX-License-Identifier: Apache-2.0

// Package newcomer tests the pages as a new user reads them: a module in an empty folder, the programs as they are pasted.
package newcomer
