// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/drover-agents/drover/internal/ident"
)

// Rename gives a session a title, which precedes other descriptions. It may be called while the CLI has the session open.
func Rename(ctx context.Context, id, title string, opts Options) error {
	if title = strings.TrimSpace(strings.ToValidUTF8(title, "\uFFFD")); title == "" {
		return fmt.Errorf("%w: title of session %.80q", ErrEmptyText, id)
	}
	return appendLine(ctx, id, opts, struct {
		Type      string `json:"type"`
		Title     string `json:"customTitle"`
		SessionID string `json:"sessionId"`
	}{"custom-title", title, id})
}

// Tag sets the tag of a session; it replaces an earlier one, and an empty tag removes it. Invisible
// characters (controls, format characters, private use, unassigned) are removed from the tag.
func Tag(ctx context.Context, id, tag string, opts Options) error {
	clean := sanitise(tag)
	if clean == "" && tag != "" {
		return fmt.Errorf("%w: tag of session %.80q", ErrEmptyText, id)
	}
	// The CLI finds tags by the text at the start of the line: type is the first member.
	return appendLine(ctx, id, opts, struct {
		Type      string `json:"type"`
		Tag       string `json:"tag"`
		SessionID string `json:"sessionId"`
	}{"tag", clean, id})
}

func sanitise(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, s))
}

// appendLine adds a line to an existing session. It never creates the file, so that one deleted meanwhile stays deleted.
func appendLine(ctx context.Context, id string, opts Options, line any) error {
	return change(ctx, id, opts, "changing", func(p *projects, s session) error {
		f, err := p.OpenFile(s.file(), os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		text := append(encode(line), '\n')
		if last, err := readAt(f, s.size-1, 1); err == nil && len(last) == 1 && last[0] != '\n' {
			text = append([]byte{'\n'}, text...) // do not grow a torn line
		}
		_, err = f.Write(text)
		return errors.Join(err, f.Close())
	})
}

// Delete removes a session with its subagents and other files. A session of the same id below another project stays.
func Delete(ctx context.Context, id string, opts Options) error {
	return change(ctx, id, opts, "deleting", func(p *projects, s session) error {
		// The directory goes first: if it cannot, the session is still found by the next try.
		if err := p.RemoveAll(s.dir()); err != nil {
			return err
		}
		return p.Remove(s.file())
	})
}

// Archive marks a session as archived. The next prompt in it removes the mark.
func Archive(ctx context.Context, id string, opts Options) error {
	return change(ctx, id, opts, "marking", func(p *projects, s session) error {
		if err := p.MkdirAll(s.dir(), 0o700); err != nil {
			return err
		}
		return p.replace(path.Join(s.dir(), "archived.json"), encode(archiveMark{true, time.Now().UTC()}))
	})
}

// Unarchive removes the mark of [Archive]. A session without it is left as it is.
func Unarchive(ctx context.Context, id string, opts Options) error {
	return change(ctx, id, opts, "marking", func(p *projects, s session) error {
		err := p.Remove(path.Join(s.dir(), "archived.json"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// change opens a session and calls do with it. An error names the change by doing.
func change(ctx context.Context, id string, opts Options, doing string, do func(*projects, session) error) error {
	p, s, err := open(ctx, id, opts)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := do(p, s); err != nil {
		return fmt.Errorf("transcript: %s session %s: %w", doing, id, err)
	}
	return nil
}

// replace writes a small file so that a reader sees the old content or the new one.
func (p *projects) replace(name string, data []byte) error {
	temp := name + "." + ident.NewUUID() + ".tmp"
	if err := p.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	if err := p.Rename(temp, name); err != nil {
		return errors.Join(err, p.Remove(temp))
	}
	return nil
}
