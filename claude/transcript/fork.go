// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/drover-agents/drover/internal/ident"
)

// ForkOptions configure [Fork]. The zero value copies the whole conversation.
type ForkOptions struct {
	Options
	// UpTo is the uuid of the last message to copy. Empty means all.
	UpTo string
	// Title of the new session. Empty means the old description with " (fork)" after it.
	Title string
	// Now is the clock, and NewID the source of UUIDs. Nil means the real ones.
	Now   func() time.Time
	NewID func() string
}

// Fork copies a session into a new one beside it and returns the new id. The copy has fresh uuids throughout, and forkedFrom
// of every entry names its source. Subagent conversations are not copied, nor are the marks of tool calls that a hook
// deferred. A copy that cannot be written whole is removed.
func Fork(ctx context.Context, id string, opts ForkOptions) (string, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.NewID == nil {
		opts.NewID = ident.NewUUID
	}
	p, s, err := open(ctx, id, opts.Options)
	if err != nil {
		return "", err
	}
	defer p.Close()
	data, err := p.readAll(ctx, s.file())
	if err != nil {
		return "", fmt.Errorf("transcript: reading session %s: %w", id, err)
	}
	f := newForker(id, data, opts)
	lines, err := f.lines()
	if err != nil {
		return "", fmt.Errorf("transcript: forking session %s: %w", id, err)
	}
	copied := session{key: s.key, id: f.newID}
	return f.newID, p.create(copied.file(), lines)
}

// create writes a new file that only its owner can read.
func (p *projects) create(name string, data []byte) error {
	f, err := p.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("transcript: creating session: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("transcript: creating session: %w", err), p.Remove(name))
	}
	return nil
}

type forker struct {
	opts         ForkOptions
	oldID, newID string
	entries      []Entry           // the links of the main conversation
	byUUID       map[string]Entry  // the same, by uuid
	fresh        map[string]string // new uuid for every uuid of the source
	replacements []json.RawMessage
	summary      Summary
}

func newForker(id string, data []byte, opts ForkOptions) *forker {
	f := &forker{opts: opts, oldID: id, newID: opts.NewID(), byUUID: map[string]Entry{}, fresh: map[string]string{}}
	for _, e := range parseEntries(splitLines(data)) {
		f.summary.fold(e.Raw)
		if e.UUID != "" && f.fresh[e.UUID] == "" {
			f.fresh[e.UUID] = opts.NewID()
		}
		switch {
		case e.Type == "content-replacement" && e.SessionID == id:
			f.addReplacements(e.Raw)
		case e.isChain() && !e.IsSidechain:
			f.entries = append(f.entries, e)
		}
	}
	return f
}

func (f *forker) addReplacements(line []byte) {
	var l struct {
		Replacements []json.RawMessage `json:"replacements"`
	}
	if json.Unmarshal(line, &l) == nil {
		f.replacements = append(f.replacements, l.Replacements...)
	}
}

func (f *forker) lines() ([]byte, error) {
	if err := f.cut(); err != nil {
		return nil, err
	}
	var kept []Entry
	for _, e := range f.entries {
		f.byUUID[e.UUID] = e
		if isCopied(e) {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("%w: no messages", ErrNotFound)
	}
	var out bytes.Buffer
	for i, e := range kept {
		line, err := f.entry(e, i == len(kept)-1)
		if err != nil {
			return nil, err
		}
		out.Write(append(line, '\n'))
	}
	f.trailer(&out)
	return out.Bytes(), nil
}

func (f *forker) cut() error {
	if f.opts.UpTo == "" {
		return nil
	}
	for i, e := range f.entries {
		if e.UUID == f.opts.UpTo {
			f.entries = f.entries[:i+1]
			return nil
		}
	}
	return fmt.Errorf("%w: message %.80q", ErrNotFound, f.opts.UpTo)
}

// entry returns the copy of one entry. The last one gets a new timestamp, so that the copy is the most recent session.
func (f *forker) entry(e Entry, last bool) ([]byte, error) {
	o, err := parseObject(e.Raw)
	if err != nil {
		return nil, err
	}
	o = o.without("teamName", "agentName", "slug", "sourceToolAssistantUUID")
	for i, m := range o {
		if m.key != "message" && m.key != "toolUseResult" {
			o[i].value = f.renew(m.value)
		}
	}
	o = o.set("uuid", f.fresh[e.UUID]).set("parentUuid", f.parent(e)).set("sessionId", f.newID).set("isSidechain", false)
	if e.LogicalParentUUID != "" {
		o = o.set("logicalParentUuid", f.copied(e.LogicalParentUUID))
	}
	if last {
		o = o.set("timestamp", f.opts.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
	from := object{}.set("sessionId", f.oldID).set("messageUuid", e.UUID)
	return o.set("forkedFrom", json.RawMessage(from.bytes())).bytes(), nil
}

var quotedUUID = lazyRegexp(`"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"`)

// renew replaces the source's uuids at any depth: a compaction boundary names messages by them.
func (f *forker) renew(value json.RawMessage) json.RawMessage {
	return quotedUUID().ReplaceAllFunc(value, func(quoted []byte) []byte {
		old := strings.Trim(string(quoted), `"`)
		if fresh, ok := f.fresh[old]; ok {
			return encode(fresh)
		}
		if old == f.oldID {
			return encode(f.newID)
		}
		return quoted
	})
}

// parent returns the new uuid of the nearest ancestor that is copied, or nil.
func (f *forker) parent(e Entry) any {
	seen := map[string]bool{}
	for at := e.ParentUUID; at != "" && !seen[at]; at = f.byUUID[at].ParentUUID {
		if uuid := f.copied(at); uuid != nil {
			return uuid
		}
		seen[at] = true
	}
	return nil
}

// copied returns the new uuid of an entry that is in the copy, or nil.
func (f *forker) copied(old string) any {
	if e, ok := f.byUUID[old]; ok && isCopied(e) {
		return f.fresh[old]
	}
	return nil
}

// isCopied reports whether a link of the source is copied. The mark of a deferred call is not: two sessions would run it.
func isCopied(e Entry) bool {
	_, deferred := parseDeferral(e.Raw)
	return e.Type != "progress" && !deferred
}

// trailer writes the entries that are not part of the chain.
func (f *forker) trailer(out *bytes.Buffer) {
	if len(f.replacements) > 0 {
		o := object{}.set("type", "content-replacement").set("sessionId", f.newID).set("replacements", f.replacements)
		out.Write(append(o.bytes(), '\n'))
	}
	info := f.summary.Info()
	title := strings.TrimSpace(f.opts.Title)
	if title == "" {
		title = cmp.Or(info.Title, info.FirstPrompt, "Session") + " (fork)"
	}
	o := object{}.set("type", "custom-title").set("customTitle", title).set("sessionId", f.newID)
	out.Write(append(o.bytes(), '\n'))
}
