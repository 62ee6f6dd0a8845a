// SPDX-License-Identifier: Apache-2.0

// Package prompt holds prompts.
package prompt
