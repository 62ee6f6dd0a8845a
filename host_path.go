// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// rewrite leads the paths of file tools into the workspace of the session. It decides nothing: what the
// gate judges is the new input.
func (h *host) rewrite(_ context.Context, call event.ToolCall) (json.RawMessage, error) {
	native, known := h.adapter.Catalogue().Native(call.Name)
	place, set := session.Query[session.Workspace](h.opts.Session).Latest()
	if w := h.place.workspace(); w != nil { // whatever was opened with the session since
		place.Root, set = w.Root(), true
	}
	if !known || native.Files != tool.ReadsFile && native.Files != tool.WritesFile || !set || !filepath.IsAbs(place.Root) {
		return nil, nil
	}
	var input map[string]json.RawMessage
	if json.Unmarshal(call.Input, &input) != nil {
		return nil, nil // the agent itself says what is wrong with it
	}
	changed := false
	for _, field := range native.Paths {
		var path string
		if json.Unmarshal(input[field], &path) != nil || path == "" {
			continue
		}
		if led := ledInto(place.Root, call.Dir, path); led != path {
			input[field], changed = asText(led), true
		}
	}
	if !changed {
		return nil, nil
	}
	return plain(input)
}

// ledInto is a path of a tool's input as one of the workspace.
//
// Agents resolve relative paths against the folder that their shell is in before they ask, so that nobody
// can tell any more how a path was written. If the shell is in the workspace a path is what it says: one
// that leads elsewhere was meant so, and it is for gate and cell to refuse it. If the shell is elsewhere,
// a path below it counts as relative, and belongs to the workspace.
func ledInto(root, dir, path string) string {
	if !filepath.IsAbs(path) {
		if _, inside := within(root, dir); !inside {
			dir = root
		}
		path = filepath.Join(dir, path)
		return path
	}
	if _, inside := within(root, path); inside {
		return path
	}
	if _, inside := within(root, dir); inside || !filepath.IsAbs(dir) {
		return path
	}
	if rel, below := within(dir, path); below {
		return filepath.Join(root, rel)
	}
	return path
}

// within is where a path lies below a folder, and whether it does.
func within(folder, path string) (rel string, below bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	rel, err := filepath.Rel(folder, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// plain is JSON without the escapes that are for HTML.
func plain(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
