// SPDX-License-Identifier: Apache-2.0

// Command apilist writes down the exported API of every public package, one file per package below api/, so that a change of
// it shows in the diff of the change that makes it. With -check it only compares, and fails naming the lines that differ.
package main
