// SPDX-License-Identifier: Apache-2.0

package script

// IsSubagent reports whether a subagent of the CLI made the request.
func (r *Request) IsSubagent() bool { return r.Header.Get("X-Claude-Code-Agent-Id") != "" }
