// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// deferralType marks the attachment by which the CLI remembers a call that a hook deferred. A CLI that
// resumes a session with such a mark, and without a result of the call after it, runs the call at once:
// before the handshake, and so without the hooks that the handshake registers.
const deferralType = "hook_deferred_tool"

// deferralWindow is how much of a session's end is searched for marks. The CLI searches 1 MiB.
const deferralWindow = 4 << 20

type deferral struct{ call, uuid, parent string }

// parseDeferral reads a mark. It compares names exactly and reads every duplicate, to find all marks that the CLI finds.
func parseDeferral(line []byte) (d deferral, ok bool) {
	if !bytes.Contains(line, []byte(deferralType)) && !bytes.Contains(line, []byte(`\u`)) {
		return deferral{}, false
	}
	entry, err := parseObject(line)
	if err != nil { // the CLI may read objects that are too deep for this parser
		return deferral{}, bytes.Contains(line, []byte(deferralType)) || strings.Contains(err.Error(), "max depth")
	}
	for _, m := range entry {
		switch m.key {
		case "uuid":
			d.uuid = unquote(m.value)
		case "parentUuid":
			d.parent = unquote(m.value)
		case "attachment":
			attachment, _ := parseObject(m.value) // only an object is a mark
			for _, a := range attachment {
				switch a.key {
				case "type":
					ok = ok || unquote(a.value) == deferralType
				case "toolUseID":
					d.call = unquote(a.value)
				}
			}
		}
	}
	return d, ok
}

// withoutDeferrals returns the entries without marks of deferred calls. Children of a mark become those of its parent.
func withoutDeferrals(entries []json.RawMessage) []json.RawMessage {
	parents := map[string]string{} // of the marks, by uuid
	kept := make([]json.RawMessage, 0, len(entries))
	for _, e := range entries {
		if d, ok := parseDeferral(e); ok {
			parents[d.uuid] = d.parent
		} else {
			kept = append(kept, e)
		}
	}
	if len(kept) == len(entries) {
		return entries
	}
	for i, e := range kept {
		kept[i] = reparented(e, parents)
	}
	return kept
}

// reparented is an entry whose references to marks are replaced by the parents of the marks.
func reparented(entry json.RawMessage, parents map[string]string) json.RawMessage {
	o, err := parseObject(entry)
	if err != nil {
		return entry
	}
	changed := false
	for i, m := range o {
		if !slices.Contains([]string{"parentUuid", "logicalParentUuid", "leafUuid"}, m.key) {
			continue
		}
		at := unquote(m.value)
		parent, isMark := parents[at]
		if !isMark {
			continue
		}
		for range parents { // a circle ends too
			if next, more := parents[parent]; more {
				parent = next
			}
		}
		changed = true
		if o[i].value = encode(parent); parent == "" {
			o[i].value = json.RawMessage("null")
		}
	}
	if !changed {
		return entry
	}
	return o.bytes()
}

// Deferred returns the ids of the tool calls that a CLI would run as soon as it resumes the session on
// disk: a hook deferred them, and no result follows. With an empty id it searches all sessions of the
// project. It reads the last 4 MiB of a session. A session that it cannot read is an error.
func Deferred(ctx context.Context, id string, opts Options) ([]string, error) {
	if id != "" {
		if err := checkID(id); err != nil {
			return nil, err
		}
	}
	p, keys, err := opts.openKeys(ctx)
	if p == nil {
		return nil, err
	}
	defer p.Close()
	var calls []string
	for _, key := range keys {
		open, err := p.deferredIn(ctx, key, id)
		if err != nil {
			return nil, fmt.Errorf("transcript: searching %s for deferred calls: %w", key, err)
		}
		calls = append(calls, open...)
	}
	return calls, nil
}

// deferredIn searches a project, or one session of it. A link out of the projects directory is an error: the CLI follows it.
func (p *projects) deferredIn(ctx context.Context, key, id string) (calls []string, err error) {
	ids := []string{id}
	if id == "" {
		if _, err := p.readDir(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		ids = p.idsIn(key)
	}
	for _, id := range ids {
		open, err := p.deferred(ctx, session{key: key, id: id})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		calls = append(calls, open...)
	}
	return calls, nil
}

var plainID = lazyRegexp(`^[A-Za-z0-9_-]+$`)

// deferred are the deferred calls of one session. The CLI takes a call for finished if a later line has the
// id of the call in exactly this spelling.
func (p *projects) deferred(ctx context.Context, s session) ([]string, error) {
	f, err := p.Open(s.file())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := min(st.Size(), deferralWindow)
	tail, err := readAt(f, st.Size()-n, n)
	if err != nil {
		return nil, err
	}
	var calls []string
	for _, line := range splitLines(tail) {
		calls = slices.DeleteFunc(calls, func(call string) bool {
			return plainID().MatchString(call) && bytes.Contains(line, []byte(`"tool_use_id":"`+call+`"`))
		})
		if d, ok := parseDeferral(line); ok {
			calls = append(calls, d.call)
		}
	}
	return calls, ctx.Err()
}
