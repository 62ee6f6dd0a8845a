// SPDX-License-Identifier: Apache-2.0

// Command setup prepares a checkout of Drover: the pinned Claude Code CLI in .drover, and bubblewrap, socat, tmux and Chromium from
// the distribution where they are missing and may be installed. Installed programs are not changed, so a second run only
// checks. If it cannot install something, it prints the command that does; only a missing CLI makes the command fail, since
// everything else has a weaker substitute.
package main
