// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/ident"
)

// Conditions that callers test for with errors.Is.
var (
	// ErrNotFound is returned when no such session, subagent or message exists.
	ErrNotFound = errors.New("transcript: not found")
	// ErrBadID is returned for a session id that is not a UUID.
	ErrBadID = errors.New("transcript: session id is not a UUID")
	// ErrBadKey is returned for a store key whose path could lead out of the store.
	ErrBadKey = errors.New("transcript: unsafe store key")
	// ErrOutside is reported for a mirror frame whose file is not a session below the projects directory.
	ErrOutside = errors.New("transcript: file is outside the projects directory")
	// ErrInUse is returned by [Locker.Lock] for a session that goes on elsewhere.
	ErrInUse = advice.Wrap(errors.New("transcript: the session is in use"), "wait until the other run has ended, or fork the session")
	// ErrEmptyText is returned for a title or tag without visible characters.
	ErrEmptyText = errors.New("transcript: text has no visible characters")
)

// maxKeyLen is the length above which the CLI cuts a project key and adds a hash.
const maxKeyLen = 200

// Options select sessions on disk. The zero value means every project of the current user.
type Options struct {
	// Dir is the CLI's config directory. Empty means CLAUDE_CONFIG_DIR, else ~/.claude.
	Dir string
	// Project is the working directory whose sessions are meant. Empty means all projects.
	Project string
	// ProjectDirName overrides the name of the project's directory, as the variable
	// CLAUDE_CODE_PROJECT_DIR_NAME does for the CLI. Empty means that variable, which counts only
	// where the config directory is not the default one, and only with a valid value.
	ProjectDirName string
	// NoWorktrees keeps Project to its own directory. By default the other git worktrees of its repository belong to it.
	NoWorktrees bool
}

// ConfigDir returns dir or, if it is empty, the default config directory: CLAUDE_CONFIG_DIR, else ~/.claude.
func ConfigDir(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv("CLAUDE_CONFIG_DIR")
	}
	if dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("transcript: no config directory: %w; set Options.Dir or CLAUDE_CONFIG_DIR", err)
	}
	return filepath.Join(home, ".claude"), nil
}

// ProjectKey returns the name of the directory below projects in which the CLI keeps the sessions of the working directory
// cwd. Symbolic links in cwd are resolved; a cwd that does not exist is taken as written.
func ProjectKey(cwd string) string {
	if abs, err := filepath.Abs(cwd); err == nil {
		cwd = abs
	}
	if real, err := filepath.EvalSymlinks(cwd); err == nil {
		cwd = real
	}
	return keyOfPath(cwd)
}

// keyOfPath works on UTF-16 units because the CLI counts and hashes those.
func keyOfPath(path string) string {
	units := utf16.Encode([]rune(path))
	key := make([]byte, len(units))
	hash := int32(0)
	for i, u := range units {
		hash = hash*31 + int32(u)
		key[i] = '-'
		if u >= '0' && u <= '9' || u >= 'A' && u <= 'Z' || u >= 'a' && u <= 'z' {
			key[i] = byte(u)
		}
	}
	if len(key) <= maxKeyLen {
		return string(key)
	}
	return string(key[:maxKeyLen]) + "-" + strconv.FormatInt(max(int64(hash), -int64(hash)), 36)
}

var (
	dirNamePattern = lazyRegexp(`^[A-Za-z0-9_-]{1,64}$`)
	deviceName     = lazyRegexp(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
)

func checkID(id string) error {
	if !ident.ValidUUID(id) {
		return fmt.Errorf("%w: %.80q", ErrBadID, id)
	}
	return nil
}

// dirName returns the valid override of the project directory's name, or "".
func (o Options) dirName() string {
	name := o.ProjectDirName
	if name == "" && (o.Dir != "" || os.Getenv("CLAUDE_CONFIG_DIR") != "") {
		name = os.Getenv("CLAUDE_CODE_PROJECT_DIR_NAME")
	}
	if !dirNamePattern().MatchString(name) || deviceName().MatchString(name) {
		return ""
	}
	return name
}

// A projects is the opened projects directory. No access leaves its root.
type projects struct {
	*os.Root
	path string
}

// openProjects opens the projects directory. If it does not exist, the error wraps ErrNotFound.
func openProjects(dir string) (*projects, error) {
	config, err := ConfigDir(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(config, "projects")
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no projects directory %s", ErrNotFound, path)
	}
	if err != nil {
		return nil, fmt.Errorf("transcript: opening projects: %w", err)
	}
	return &projects{root, path}, nil
}

// readDir lists a directory below the root, in any order.
func (p *projects) readDir(name string) ([]fs.DirEntry, error) {
	f, err := p.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (p *projects) keys() ([]string, error) {
	entries, err := p.readDir(".")
	if err != nil {
		return nil, fmt.Errorf("transcript: listing projects: %w", err)
	}
	var keys []string
	for _, e := range entries {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			keys = append(keys, e.Name())
		}
	}
	return keys, nil
}

// keysLike returns the directories that hold the sessions of a project with this key. For a cut
// key also those with another hash: other builds of the CLI may hash differently.
func (p *projects) keysLike(key string) []string {
	if len(key) <= maxKeyLen {
		return []string{key}
	}
	all, err := p.keys()
	if err != nil {
		return []string{key}
	}
	found := []string{key}
	for _, k := range all {
		if k != key && strings.HasPrefix(k, key[:maxKeyLen+1]) {
			found = append(found, k)
		}
	}
	return found
}

// lazyRegexp returns a function that compiles an expression at its first call: most programs use few of them.
func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
