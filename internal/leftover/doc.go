// SPDX-License-Identifier: Apache-2.0

// Package leftover manages the folders of our programs: it makes folders for the time that a program runs,
// removes what killed programs left of theirs, and knows where a program keeps what must outlive it.
//
// Beside each folder is a marker: a file of the same name that ends in ".lock", describes the folder, and is locked as long
// as the program lives. It is made before everything else and removed after everything else. So whenever a program is
// killed there is either nothing left or an unlocked marker, and a sweep finds what belongs to it.
//
// A sweep leaves alone what is not surely such a leftover: links, folders without a marker of the same
// kind, what belongs to other users, and what belongs to programs that live.
package leftover
