// SPDX-License-Identifier: Apache-2.0

// Package mcp connects tools with the Model Context Protocol, in three ways:
//
//   - [Serve] and [NewServer] offer a registry as a normal MCP server, to anyone, over standard streams or HTTP.
//   - [Import] makes tools of any MCP server's.
//   - [InProcess] is a server of the official MCP SDK for an agent that calls tools in this process, such as
//     Claude Code: see MountMCP in agent/claudecode.
//
// It is the only package of Drover that imports that SDK, so that a program that does not use it does not link it.
//
// Promises:
//
//   - A served call goes through [tool.Registry.Execute], with its checks, decisions and events. What
//     is not a success is marked as an error and states the reason.
//   - Tools that are added to a registry, replaced or removed later are so for its clients, and those
//     of an imported server that announces changes are so here.
//   - The hints of an imported server never lower the risk of its tools, unless it is trusted.
//   - Closing waits for what was started: sessions, calls, and the whole process tree of a command.
//
// A server in this process is not changed and may serve several clients at once, each in a session of
// its own. A client may repeat its handshake; each one opens a fresh session and ends the old one.
package mcp
