// SPDX-License-Identifier: Apache-2.0

// Command pictures makes the pictures of the page in docs again, from a run of the demo: drover demo with its scripted model, whose
// run is then shown in Chromium, in light and in dark. Names, times and figures differ from run to run.
package main
