// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
)

// openWorkspace finds the working directory, without symbolic links, so that it is the same inside. Where it is
// mounted it stays open from now on: an agent may be able to change its name.
func (c *Cell) openWorkspace(dir string) error {
	fail := func(err error, next string) error {
		return advice.Wrap(fmt.Errorf("isolation: the working directory %q: %w", dir, err), "%s", next)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fail(err, "give an absolute path")
	}
	list := abs
	if c.level > LevelLandlock {
		c.dir, err = filepath.EvalSymlinks(abs)
		list = c.dir
	} else if c.workdir, c.dir, err = openWorkdir(dir, abs); err == nil {
		c.onClose(c.workdir.Close)
		list = handleName(c.workdir)
	}
	if _, link := errors.AsType[*linkError](err); link {
		return fail(fmt.Errorf("%w, which an agent may have made", err), "name the folder that the link leads to: "+leadsTo(abs))
	}
	if err != nil {
		return fail(err, "give a folder that there is")
	}
	if info, err := os.Stat(list); err != nil || !info.IsDir() {
		return fail(errors.Join(errors.New("is not a folder"), err), "give a folder")
	}
	if err := canList(list); err != nil {
		return fail(err, "give a folder that this user may enter and read")
	}
	if tooWide(c.dir) {
		return fail(errors.New("contains more than a workspace should"), "choose a folder below it: the agent may read and write all of the working directory")
	}
	return nil
}

// openWorkdir opens the working directory. The one of this process needs no name.
func openWorkdir(dir, abs string) (handle *os.File, real string, err error) {
	if dir != "" && dir != "." {
		return openPath(abs, agentsCannotWrite)
	}
	if handle, err = openHere(); err != nil {
		return nil, "", err
	}
	if real, err = realName(handle); err != nil {
		_ = handle.Close()
		return nil, "", err
	}
	return handle, real, nil
}

// leadsTo is where a path leads, for advice.
func leadsTo(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// canList is why a folder cannot be read, or nil.
func canList(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	_, err = file.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, file.Close())
}

// tooWide reports whether a folder is the home of a user or one of the system's own.
func tooWide(dir string) bool {
	wide := []string{"/", "/home", "/root", "/usr", "/etc", "/var", "/tmp", "/proc", "/sys", "/dev", "/run", "/opt", "/bin", "/lib", "/lib64", "/sbin", "/boot", "/usr/bin", "/usr/lib", "/usr/sbin", "/usr/local", "/var/lib", "/Users"}
	if home, err := os.UserHomeDir(); err == nil {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
		if within(dir, home) { // also the folder of all homes
			return true
		}
	}
	return slices.Contains(wide, dir)
}

// setVariables makes the environment of the program. It returns what of the host's variables was left out.
func (c *Cell) setVariables(p Program) (leftOut []string, err error) {
	env, err := c.isolation.BuildEnv(c.level)
	if err != nil {
		return nil, err
	}
	env.addGiven(p, c.isolation.Env)
	at, in := c.isolator.addresses(), &c.inside
	in.GatewayURL, in.Token, in.Env = at.gateway, c.run.Token(), env.Vars
	maps.Copy(in.Env, c.ownVariables(env.Path))
	maps.Copy(in.Env, at.proxyVariables())
	if p.Variables != nil {
		maps.Copy(in.Env, p.Variables(*in))
	}
	return env.LeftOut, nil
}

// ownVariables are those that every program has.
func (c *Cell) ownVariables(path string) map[string]string {
	return map[string]string{"PATH": path, "HOME": c.home.Path(), "TMPDIR": c.temp()}
}

func (a addresses) proxyVariables() map[string]string {
	vars := map[string]string{}
	set := func(value string, names ...string) {
		for _, name := range names {
			if value != "" {
				vars[name] = value
			}
		}
	}
	set(a.httpProxy, "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy")
	set(a.socksURL, "ALL_PROXY", "all_proxy")
	if len(vars) > 0 {
		set(strings.Join(a.noProxy, ","), "NO_PROXY", "no_proxy")
	}
	return vars
}

// addGiven adds what the caller gave the program by name. The cell alone sets the variables of the isolation.
func (e *Environ) addGiven(p Program, already map[string]string) {
	for name, value := range p.Env {
		_, given := already[name]
		switch {
		case given || slices.Contains(replaced, name) || slices.Contains(p.Replaced, name):
		case p.Permitted != nil && p.Permitted(name), p.ValidateEnv(map[string]string{name: value}) == nil:
			e.Vars[name] = value
		default:
			e.LeftOut = append(e.LeftOut, name)
		}
	}
	slices.Sort(e.LeftOut)
}

// replaced are variables that every cell has values of its own for, some of them made of the caller's.
var replaced = []string{"PATH", "HOME", "TMPDIR"}

func (c *Cell) temp() string {
	if c.level == LevelCell {
		return "/tmp" // private
	}
	return c.home.TempDir()
}
