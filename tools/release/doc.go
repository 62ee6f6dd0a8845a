// SPDX-License-Identifier: Apache-2.0

// Command release builds the released files of a version into dist/VERSION: an archive of the drover command for each
// platform with its licence and those of all modules that it links, a bill of materials in the form of CycloneDX for each,
// and the checksums of everything. The same commit, built by the same Go, gives the same bytes.
package main
