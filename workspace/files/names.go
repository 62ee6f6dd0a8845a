// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace"
)

// A refusal is a reason that is also one of the errors of io/fs.
type refusal struct {
	text string
	is   error
}

func (e *refusal) Error() string        { return e.text }
func (e *refusal) Is(target error) bool { return target == e.is }

var (
	errIsFolder  = &refusal{"is a folder", fs.ErrInvalid}
	errNoFolder  = &refusal{"is below an entry that is not a folder", fs.ErrInvalid}
	errNoFile    = &refusal{"is a pipe, a socket or a device, which are not opened", fs.ErrInvalid}
	errNoLink    = &refusal{"is not a link", fs.ErrInvalid}
	errRoot      = &refusal{"is the root, which stays", fs.ErrInvalid}
	errInside    = &refusal{"cannot be moved into itself", fs.ErrInvalid}
	errManyLinks = &refusal{"goes through too many links", fs.ErrInvalid}
	errReadOnly  = &refusal{"may not be written by its owner", fs.ErrPermission}
)

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// checkName applies the rules of io/fs, and returns the broken one.
func checkName(op, name string) error {
	switch {
	case fs.ValidPath(name) && !strings.ContainsRune(name, 0):
		return nil
	case strings.HasPrefix(name, "/"):
		return pathError(op, name, &workspace.SecurityError{
			Path: name, Reason: "is absolute",
			Next: "use a path relative to the workspace, with slashes", Err: fs.ErrInvalid,
		})
	case slices.Contains(strings.Split(name, "/"), ".."):
		return pathError(op, name, &workspace.SecurityError{
			Path: name, Reason: "has a .. segment",
			Next: "use a path that begins at the root of the workspace", Err: fs.ErrInvalid,
		})
	case name == "":
		return pathError(op, name, &refusal{`is empty; the root is "."`, fs.ErrInvalid})
	case !utf8.ValidString(name):
		return pathError(op, name, &refusal{"is not UTF-8", fs.ErrInvalid})
	case strings.ContainsRune(name, 0):
		return pathError(op, name, &refusal{"has a zero byte", fs.ErrInvalid})
	}
	return pathError(op, name, advice.Wrap(&refusal{"has an empty or a . segment", fs.ErrInvalid}, "use %s", path.Clean(name)))
}

// checkNew applies the limits for names that are made, which are without links.
func (o *Options) checkNew(name string) error {
	segments := strings.Split(name, "/")
	if o.MaxDepth >= 0 && len(segments) > o.MaxDepth {
		return &LimitError{Path: name, Option: "MaxDepth", Got: int64(len(segments)), Limit: int64(o.MaxDepth)}
	}
	for _, segment := range segments {
		if n := utf8.RuneCountInString(segment); o.MaxSegment >= 0 && n > o.MaxSegment {
			return &LimitError{Path: name, Option: "MaxSegment", Got: int64(n), Limit: int64(o.MaxSegment)}
		}
	}
	return nil
}

// A linkReader looks at names without following a link at their end.
type linkReader interface {
	Lstat(name string) (fs.FileInfo, error)
	ReadLink(name string) (string, error)
}

// maxLinksFollowed is how many links a name may go through, as on Linux.
const maxLinksFollowed = 40

// resolve returns the name without links: where its existing part really is, and what is missing below
// that as it was. The link at its end is followed only if last is true.
func resolve(files linkReader, name string, last bool) (string, error) {
	var done []string
	var link string // the one in name that is being followed
	missing, links := false, 0
	own := strings.Count(name, "/") + 1 // how many segments of rest are of name, not of a link's target
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		segment := rest[0]
		rest = rest[1:]
		if len(rest) < own {
			own, link = len(rest), ""
		}
		switch {
		case segment == "" || segment == ".":
			continue
		case segment == "..": // of the target of a link
			if missing {
				return "", fs.ErrNotExist
			}
			if len(done) == 0 {
				return "", leadsOut(link)
			}
			done = done[:len(done)-1]
			continue
		case missing:
			done = append(done, segment)
			continue
		}
		here := path.Join(append(slices.Clone(done), segment)...)
		info, err := files.Lstat(here)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = true
		case err != nil:
			return "", bareError(err)
		case info.Mode()&fs.ModeSymlink != 0 && (last || len(rest) > 0):
			if links++; links > maxLinksFollowed {
				return "", errManyLinks
			}
			link = cmp.Or(link, here)
			target, err := linkSegments(files, here, link)
			if err != nil {
				return "", err
			}
			rest = append(target, rest...)
			continue
		case !info.IsDir() && len(rest) > 0:
			return "", errNoFolder
		}
		done = append(done, segment)
	}
	return path.Join(".", path.Join(done...)), nil
}

// linkSegments returns the target of a link, which is there because of a link of the name.
func linkSegments(files linkReader, here, link string) ([]string, error) {
	target, err := files.ReadLink(here)
	if err != nil {
		return nil, bareError(err)
	}
	if path.IsAbs(target) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" {
		return nil, leadsOut(link)
	}
	return strings.Split(filepath.ToSlash(target), "/"), nil
}

func leadsOut(link string) error {
	return &workspace.SecurityError{
		Path: link, Reason: "is a link that leads out of the workspace",
		Next: "use a relative link that stays inside, or copy what it leads to",
	}
}

// bareError removes the operation and the path from an error; the caller adds them again.
func bareError(err error) error {
	for {
		if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
			err = wrapped.Err
			continue
		}
		return err
	}
}
