// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A Path names a file of a workspace, relative to its root. It is made of segments, each the name of a folder or file, and
// never leads out of the workspace. Names are bytes; they need not be UTF-8. The zero value names nothing.
type Path struct{ posix string }

// A PathError is why a text is not a [Path].
type PathError struct{ Path, Reason string }

func (e *PathError) Error() string {
	return fmt.Sprintf("workspace: path %q %s", e.Path, e.Reason)
}

// Advice implements [advice.Adviser].
func (e *PathError) Advice() string {
	return "name a file below the workspace, such as src/main.go"
}

// ParsePath makes a path of a text with slashes. Segments that are empty or "." are left out: "./a//b/"
// is "a/b". It refuses absolute paths, the segment "..", and paths without a segment.
func ParsePath(text string) (Path, error) {
	switch {
	case text == "":
		return Path{}, &PathError{text, "is empty"}
	case text[0] == '/':
		return Path{}, &PathError{text, "is absolute"}
	case strings.IndexByte(text, 0) >= 0:
		return Path{}, &PathError{text, "has a NUL byte"}
	}
	var kept []string
	for segment := range strings.SplitSeq(text, "/") {
		switch segment {
		case "", ".":
			continue
		case "..":
			return Path{}, &PathError{text, "has the segment .."}
		}
		kept = append(kept, segment)
	}
	if len(kept) == 0 {
		return Path{}, &PathError{text, "names the workspace itself"}
	}
	return Path{strings.Join(kept, "/")}, nil
}

// PathOf makes a path of segments, none of which may be empty or have a slash.
func PathOf(segments ...string) (Path, error) {
	text := strings.Join(segments, "/")
	for _, segment := range segments {
		if segment == "" {
			return Path{}, &PathError{text, "has an empty segment"}
		}
		if strings.Contains(segment, "/") {
			return Path{}, &PathError{text, fmt.Sprintf("has a slash in the segment %q", segment)}
		}
	}
	return ParsePath(text)
}

// Segments are the names on the way to the file.
func (p Path) Segments() []string {
	if p.posix == "" {
		return nil
	}
	return strings.Split(p.posix, "/")
}

// String is the path with slashes.
func (p Path) String() string { return p.posix }

// Compare orders paths by their segments: what is in a folder comes right after it, before "folder.go".
func (p Path) Compare(other Path) int { return filetree.ComparePaths(p.posix, other.posix) }

// pathBytes is the JSON of a path that is not UTF-8, which a JSON string would change.
type pathBytes struct {
	Bytes []byte `json:"bytes"`
}

// MarshalJSON gives a string, or {"bytes": base64} for names that are not UTF-8.
func (p Path) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(p.posix) {
		return plainjson.Marshal(pathBytes{[]byte(p.posix)})
	}
	return plainjson.Marshal(p.posix)
}

// UnmarshalJSON reads what MarshalJSON gives, and checks it.
func (p *Path) UnmarshalJSON(data []byte) error {
	var text string
	if bytes.HasPrefix(data, []byte("{")) {
		var raw pathBytes
		if err := json.Unmarshal(data, &raw); err != nil {
			return err
		}
		text = string(raw.Bytes)
	} else if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := ParsePath(text)
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}
