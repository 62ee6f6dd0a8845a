// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// An Environ are the variables of an agent, but for those that a cell adds for the home, the proxies and the gateway.
type Environ struct {
	// Vars are what the agent gets. PATH is not among them.
	Vars map[string]string
	// Path is where the agent finds programs.
	Path string
	// LeftOut are the sorted names of the host's variables that IncludeHostEnv did not bring because they look sensitive.
	LeftOut []string
}

// hostAllowed are the host's variables that every agent gets: how to write and show text, and the time.
// Windows cannot start most programs without the last ones.
var hostAllowed = []string{
	"LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT",
}

// cellPath is where programs are in a cell, which has the host's /usr.
const cellPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// BuildEnv builds the variables from nothing: what the host has of a few harmless ones, with IncludeHostEnv the rest of the
// host that is not sensitive, then Env. It fails if Env has a variable that would weaken the isolation.
//
// PATH is that of Env, if it has one. Otherwise it is the host's with IncludeHostEnv and where the host's
// files are not hidden, and else that of the system's programs.
func (i *Isolation) BuildEnv(level Level) (*Environ, error) {
	if err := (Program{}).ValidateEnv(i.Env); err != nil {
		return nil, err
	}
	env := &Environ{Vars: map[string]string{}, Path: i.path(level)}
	for _, entry := range i.Host.environ() {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		env.addHost(name, value, i.IncludeHostEnv)
	}
	slices.Sort(env.LeftOut)
	env.LeftOut = slices.Compact(env.LeftOut)
	maps.Copy(env.Vars, i.Env)
	delete(env.Vars, "PATH")
	return env, nil
}

func (i *Isolation) path(level Level) string {
	if path, given := i.Env["PATH"]; given {
		return path
	}
	if i.IncludeHostEnv || level > LevelLandlock {
		if path := absolutePath(i.Host.Getenv("PATH")); path != "" {
			return path
		}
	}
	return cellPath
}

// absolutePath drops the folders that are relative to the working directory, where the agent could put programs.
func absolutePath(list string) string {
	var folders []string
	for _, folder := range filepath.SplitList(list) {
		if filepath.IsAbs(folder) {
			folders = append(folders, folder)
		}
	}
	return strings.Join(folders, string(filepath.ListSeparator))
}

// addHost takes a variable of the host if it may pass. Its value counts too: nothing is harmless by name alone.
func (e *Environ) addHost(name, value string, all bool) {
	switch {
	case name == "PATH", !isHarmless(name) && !all, strings.ContainsRune(value, 0):
	case sensitiveName(name), sensitiveValue(value):
		e.LeftOut = append(e.LeftOut, name)
	default:
		e.Vars[name] = value
	}
}

func isHarmless(name string) bool {
	return slices.Contains(hostAllowed, strings.ToUpper(name)) || strings.HasPrefix(name, "LC_")
}
