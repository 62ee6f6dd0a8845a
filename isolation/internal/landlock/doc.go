// SPDX-License-Identifier: Apache-2.0

// Package landlock builds rulesets of Linux's Landlock for systems without namespaces: which files a
// program may read, run and write, and which TCP ports it may reach.
//
// Building a ruleset restricts no process. [Ruleset.Open] returns a descriptor. The program to restrict
// calls prctl(PR_SET_NO_NEW_PRIVS) and landlock_restrict_self with it before it runs anything else.
// Its child processes inherit the restrictions and cannot remove them.
//
// Each kernel version supports more of Landlock. The package asks the running kernel for each feature and uses the features
// that it has. [Enforced] describes what holds and what does not. Even the newest kernel leaves gaps, which Enforced lists:
// a ruleset is weaker than a cell. Rulesets must not be used for root, to whom too much stays open.
package landlock
