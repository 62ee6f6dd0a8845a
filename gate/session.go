// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/tool"
)

// Blocked denies the tools in [Facts.Blocked] and, where [Facts.Allowed] is set, those that are not in
// it, but for those without which the agent cannot use the others; see [tool.Native.Plumbing]. It allows
// nothing. A bare name never means a tool of another server.
func Blocked() Policy {
	return Policy{Name: "blocked", Stage: StageSession, Judge: func(c *Call, f *Facts) (event.Decision, bool) {
		if !blocks(f.Blocked, c) && (f.Allowed == nil || c.isPlumbing() || names(f.Allowed, c)) {
			return event.Decision{}, false
		}
		return event.Decision{Reason: fmt.Sprintf(toolBlocked, c.Name)}, true
	}}
}

// blocks looks at the name of the call, and at the tool that would run.
func blocks(blocked map[string]bool, c *Call) bool {
	return len(blocked) > 0 && (blocked[c.Name] || names(blocked, c))
}

func names(set map[string]bool, c *Call) bool {
	if c.Origin != Foreign && set[c.Tool] {
		return true
	}
	if c.Server == "" {
		return false
	}
	var buf [128]byte
	full := append(buf[:0], mcpPrefix...)
	full = append(append(append(full, c.Server...), "__"...), c.Tool...)
	return set[string(full)] || c.Origin == Registered && c.Server == tool.DefaultServerName && set[ident.FormerToolPrefix+c.Tool]
}

// RequireBefore denies a tool until others have succeeded; see [Facts.Invoked]. The keys and the
// values are names as [AllowTools] takes them, without arguments.
func RequireBefore(required map[string][]string) Policy {
	p := Policy{Name: "require-before", Stage: StageSession}
	var needs []need
	var errs []error
	for name, before := range required {
		n, err := newNeed(name, before)
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", name, err))
		}
		needs = append(needs, n)
		p.names = append(append(p.names, name), before...)
	}
	p.err = errors.Join(errs...)
	p.Judge = func(c *Call, f *Facts) (event.Decision, bool) {
		missing := missingBefore(needs, c, f.Invoked)
		if len(missing) == 0 {
			return event.Decision{}, false
		}
		return event.Decision{Reason: fmt.Sprintf(needsEarlier, c.Name, strings.Join(missing, ", "))}, true
	}
	return p
}

// A need is a tool, and what must have succeeded before it.
type need struct {
	tool   toolName
	before []string
}

func newNeed(name string, before []string) (need, error) {
	named, err := newToolName(strings.TrimSpace(name))
	for _, b := range before {
		if _, bad := newToolName(b); bad != nil {
			err = errors.Join(err, fmt.Errorf("%q: %w", b, bad))
		}
	}
	return need{named, slices.Clone(before)}, err
}

func missingBefore(needs []need, c *Call, invoked map[string]bool) []string {
	var missing []string
	for i := range needs {
		if !needs[i].tool.means(c, true) {
			continue
		}
		for _, name := range needs[i].before {
			_, bare, _ := splitName(name, nil)
			if !invoked[name] && (bare == "" || !invoked[bare]) {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// ReadBeforeWriteOptions configures [ReadBeforeWrite]. The zero value is ready to use.
type ReadBeforeWriteOptions struct {
	// WriteTools are further tools that write files, as [AllowTools] takes them, without arguments.
	// The agent's own tools that write files, write_file and edit_file always count.
	WriteTools []string
}

// ReadBeforeWrite denies to write to a file that has not been read; see [Facts.ReadPaths]. New files
// are free if the caller reports that the file does not exist; see [Target.Missing]. A call whose input names
// no file is denied; [tool.Fields] has the fields that name files.
func ReadBeforeWrite(opts ReadBeforeWriteOptions) Policy {
	p := Policy{Name: "read-before-write", Stage: StageSession, names: slices.Clone(opts.WriteTools)}
	var tools []toolName
	for _, name := range append([]string{"write_file", "edit_file"}, opts.WriteTools...) {
		named, err := newToolName(strings.TrimSpace(name))
		if err != nil {
			p.err = errors.Join(p.err, fmt.Errorf("%q: %w", name, err))
		}
		tools = append(tools, named)
	}
	p.Judge = func(c *Call, f *Facts) (event.Decision, bool) {
		writes := c.Origin != Foreign && c.native().Files == tool.WritesFile
		if !writes && !slices.ContainsFunc(tools, func(t toolName) bool { return t.means(c, true) }) {
			return event.Decision{}, false
		}
		reason := unread(c, f)
		return event.Decision{Reason: reason}, reason != ""
	}
	return p
}

// unread returns a reason for the first file of a call that has not been read, or "".
func unread(c *Call, f *Facts) string {
	isKnown := func(t Target) bool { return t.Missing || t.Path != "" && f.ReadPaths[t.Path] }
	in, many := c.fields(), c.inputFields().Scan != nil
	if !many && isKnown(f.Target) {
		return ""
	}
	for i, text := range in.paths {
		target := f.Target
		if many && i > 0 {
			target = Target{}
			if i <= len(f.Target.More) {
				target = f.Target.More[i-1]
			}
		}
		if many && isKnown(target) {
			continue
		}
		var at callPaths
		at.addSpelled(text, f.Dir, "")
		if in.bad || at.unknown || target.Unresolved {
			return undetermined(c)
		}
		for _, file := range at.list {
			if !wasRead(f, file) {
				return fmt.Sprintf(fileNotRead, file)
			}
		}
	}
	if in.bad || len(in.paths) == 0 || f.Target.Unresolved {
		return undetermined(c)
	}
	return ""
}

func undetermined(c *Call) string {
	return fmt.Sprintf(fileNotKnown, c.Name)
}

// wasRead looks a clean path up. The paths of Windows are compared in the form that rules have.
func wasRead(f *Facts, file string) bool {
	if f.ReadPaths[file] || !isWindows(f.Dir) {
		return f.ReadPaths[file]
	}
	for have, read := range f.ReadPaths {
		if normal, ok := normalPath(have, "", true); ok && read && strings.EqualFold(normal, file) {
			return true
		}
	}
	return false
}
