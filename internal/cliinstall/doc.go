// SPDX-License-Identifier: Apache-2.0

// Package cliinstall puts the pinned Claude Code CLI, and the oldest version still tested, into a project's .drover folder.
//
// The versions and checksums come from a lock file in this package that holds no download address:
// npm takes the packages from the registry this machine is set up for and checks them against the
// lock. No install script runs; the program comes straight from the package of the platform.
//
// Any number of processes may ask at once: one installs, the others wait for it. An install is
// complete or absent, never half there, and asking again costs a few file lookups.
package cliinstall
