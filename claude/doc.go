// SPDX-License-Identifier: Apache-2.0

// Package claude drives the Claude Code CLI: it finds and launches the program, speaks its stream-json and control protocol,
// serves its hooks, permission questions and in-process MCP servers, and gives back typed messages that keep their raw JSON.
package claude
