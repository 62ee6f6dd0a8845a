// SPDX-License-Identifier: Apache-2.0

// Droverclient is Drover as a client of the benchmark.
package main

func main() {}
