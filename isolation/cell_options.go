// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/launch"
)

// checkOptions refuses options that would lead around the walls.
func checkOptions(level Level, o *claude.Options) error {
	var errs []error
	refuse := func(field, why, next string) {
		errs = append(errs, fmt.Errorf("isolation: Options.%s %s\n  next: %s", field, why, next))
	}
	if level != LevelHost {
		if o.Spawner != nil {
			refuse("Spawner", "would start the CLI outside of the "+level.String(), "leave it out, or choose the level host by name")
		}
		if o.User != "" {
			refuse("User", "is chosen by the "+level.String(), "leave it out")
		}
		for _, field := range sandboxSettings(o) {
			refuse(field, "has settings of the CLI's own sandbox, which would take the place of the cell's", "use isolation.Sandbox and isolation.NetworkPolicy")
		}
		if o.Sandbox != nil {
			refuse("Sandbox", "is the CLI's own, which breaks inside of a cell", "use isolation.Sandbox, whose field Nested asks for it")
		}
	}
	for _, source := range []string{"project", "local"} {
		if slices.Contains(o.SettingSources, source) {
			refuse("SettingSources", "has "+source+", which the agent can write", "leave it out; put settings into Options.Settings")
		}
	}
	return errors.Join(errs...)
}

// sandboxSettings are the fields of options with settings of the CLI's own sandbox. What cannot be read the
// CLI complains of itself.
func sandboxSettings(o *claude.Options) (fields []string) {
	file := func(path string) []byte {
		text, _ := os.ReadFile(path)
		return text
	}
	settings := bytes.TrimSpace(o.Settings)
	if !bytes.HasPrefix(settings, []byte("{")) {
		settings = file(string(settings)) // it may be a path, too
	}
	for _, given := range []struct {
		field string
		text  []byte
	}{{"Settings", settings}, {"SettingsFile", file(o.SettingsFile)}, {"ManagedSettings", o.ManagedSettings}} {
		if read, err := claude.DecodeSettings(given.text); err == nil && read.Sandbox != nil {
			fields = append(fields, given.field)
		}
	}
	return fields
}

// openWorkspace finds the working directory, without symbolic links, so that it is the same inside. Where it is
// mounted it is held open from now on: its name may be an agent's to change.
func (c *Cell) openWorkspace(dir string) error {
	fail := func(err error, next string) error {
		return fmt.Errorf("isolation: the working directory %q: %w\n  next: %s", dir, err, next)
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
		return fail(errors.Join(errors.New("is no folder"), err), "give a folder")
	}
	if err := canList(list); err != nil {
		return fail(err, "give a folder that this user may enter and read")
	}
	if tooWide(c.dir) {
		return fail(errors.New("holds more than a workspace should"), "choose a folder below it: the agent may read and write all of the working directory")
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
		if within(dir, home) { // also what holds all homes
			return true
		}
	}
	return slices.Contains(wide, dir)
}

// furnish puts the cell into the options. It returns what of the host's variables was left out.
func (c *Cell) furnish(o *claude.Options, upstream gateway.Upstream) (leftOut []string, err error) {
	env, err := c.isolation.BuildEnv(c.level)
	if err != nil {
		return nil, err
	}
	env.addGiven(o.Env.Vars(), c.isolation.Env)
	at := c.walls.addresses()
	own := claude.CellEnv{
		Path: env.Path, Home: c.home.Path(), Config: c.home.ClaudeDir(), Temp: c.temp(),
		Endpoint:  claude.CellEndpoint{URL: at.gateway, Token: c.run.Token()},
		HTTPProxy: at.httpProxy, SOCKSProxy: at.socksURL, NoProxy: at.noProxy, Extra: env.Vars,
	}
	if upstream.Wire() == gateway.WireBedrock {
		// The CLI wants a region to choose a model's name by; where none is known any will do.
		own.Endpoint.BedrockRegion = cmp.Or(gateway.RegionOf(upstream), "us-east-1")
	}
	o.Env = claude.ExactEnv(own.Vars())
	o.SettingSources = SettingSources() // an empty list would leave out the settings of the home, and its sandbox
	o.StoreDir = c.home.TempDir()       // so that it goes with the home
	o.Spawner = launch.SpawnerFunc(c.spawn)
	return env.LeftOut, nil
}

// addGiven adds what the caller gave the CLI by name. What holds the walls is the cell's to say.
func (e *Environ) addGiven(given, already map[string]string) {
	for name, value := range given {
		_, said := already[name]
		switch {
		case said || name == "PATH" || slices.Contains(replaced, name):
		case choosesModel(name) || validateEnv(map[string]string{name: value}) == nil:
			e.Vars[name] = value
		default:
			e.LeftOut = append(e.LeftOut, name)
		}
	}
	slices.Sort(e.LeftOut)
}

// replaced are variables that the cell has values of its own for, some of them made of the caller's.
var replaced = []string{
	"HOME", "CLAUDE_CONFIG_DIR", "TMPDIR", "CLAUDE_CODE_TMPDIR", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY",
	"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL", "IS_SANDBOX",
	"DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
}

// choosesModel reports whether a variable says which model is used, and nothing else.
func choosesModel(name string) bool {
	return name == "ANTHROPIC_BETAS" || strings.HasPrefix(name, "ANTHROPIC_") && strings.HasSuffix(name, "_MODEL") || name == "ANTHROPIC_MODEL"
}

// temp is where the CLI puts temporary files.
func (c *Cell) temp() string {
	if c.level == LevelCell {
		return "/tmp" // private
	}
	return c.home.TempDir()
}

// chooseCLI finds the CLI, unless the options name one, and passes over one in the workspace, which an
// earlier agent may have put there. That there is none at all is told when it is started.
func (c *Cell) chooseCLI(o *claude.Options) error {
	find := claude.FindOptions{Path: o.CLIPath}
	if o.CLIPath == "" {
		find.Avoid = c.dir
	}
	found, err := claude.Find(find)
	if err == nil {
		c.cli, o.CLIPath = found.Path, found.Path
		return nil
	}
	if _, other := claude.Find(claude.FindOptions{Path: o.CLIPath}); other == nil {
		return err
	}
	return nil
}
