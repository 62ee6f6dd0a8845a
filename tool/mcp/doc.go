// SPDX-License-Identifier: Apache-2.0

// Package mcp connects tools with the Model Context Protocol, in three ways:
//
//   - [Serve] and [NewServer] offer a registry as a normal MCP server, to anyone, over standard
//     streams or HTTP.
//   - [Import] makes tools of an MCP server's, whoever wrote it.
//   - [Mount] makes a server of the official MCP SDK an in-process server of the CLI.
//
// It is the only package of Drover that imports that SDK, so that whoever does not use it does not
// link it.
//
// Promises:
//
//   - A served call goes through [tool.Registry.Execute], with its checks, decisions and events. What
//     is not a success is marked as an error and says why.
//   - Tools that are added to a registry, replaced or removed later are so for its clients, and those
//     of an imported server that announces changes are so here.
//   - What an imported server says of its own tools never lowers their risk, unless it is trusted.
//   - Closing waits for what was started: sessions, calls, and the whole process tree of a command.
//
// A mounted server is mounted unchanged and may serve several clients at once, each in a session of
// its own. The CLI may repeat its handshake; each one opens a fresh session and ends the old one.
package mcp
