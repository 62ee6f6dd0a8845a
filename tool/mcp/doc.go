// SPDX-License-Identifier: Apache-2.0

// Package mcp mounts a server of the official MCP SDK as an in-process server of the CLI. It is the
// only package of Drover that imports that SDK, so that whoever does not use it does not link it.
//
// A server is mounted unchanged and may serve several clients at once, each in a session of its
// own. The CLI may repeat its handshake; each one opens a fresh session and ends the old one.
// Closing the client ends its session and waits for the handlers, within a limit.
package mcp
