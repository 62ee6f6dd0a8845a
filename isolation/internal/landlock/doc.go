// SPDX-License-Identifier: Apache-2.0

// Package landlock builds walls of Linux's Landlock for where no namespaces can be had: which files a
// program may read, run and write, and which TCP ports it may reach.
//
// Building them restricts nobody. [Ruleset.Open] gives a descriptor; the program that is to be walled
// in calls prctl(PR_SET_NO_NEW_PRIVS) and landlock_restrict_self with it before it runs anything
// else, and what it starts inherits the walls and cannot take them down.
//
// Every kernel knows more of it than the one before. What the running one can wall off is asked of it,
// feature by feature, and used; [Enforced] says in words what holds and what does not. Even the newest
// leaves gaps, which are part of it: these walls are weaker than a cell's. They must not be used for
// root, to whom too much stays open.
package landlock
