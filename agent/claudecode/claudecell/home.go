// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

// HomeOptions are what the settings of a home are made from. The zero value is a cell without network for tools.
type HomeOptions struct {
	Network *isolation.NetworkPolicy
	Sandbox *isolation.Sandbox
	// Level is the isolation level of the CLI.
	Level isolation.Level
	// Workspace is what relative paths of Sandbox are meant from. AddDirs are further folders of the agent.
	Workspace string
	AddDirs   []string
	// CLI is the agent's program, and HostHome the home of the host's user. Both matter to the CLI's
	// own sandbox, which hides HostHome but for what is needed.
	CLI, HostHome string
	// ProxyPort and SOCKSPort are those of Drover's proxy in a cell, for the CLI's own sandbox when it is nested.
	ProxyPort, SOCKSPort int

	dir string
}

// populate puts the settings of the CLI into its home, and the AWS files where there is no isolation.
func populate(in isolation.Inside, addDirs []string) (notes []string, err error) {
	if in.Level == isolation.LevelSandbox {
		if err := checkSocketNames(runtime.GOOS, in.Home.TempDir()); err != nil {
			return nil, err
		}
	}
	hostHome, _ := in.Isolation.Host.HomeDir() // without one there is nothing to hide
	err = fill(in.Home, HomeOptions{
		Network: in.Isolation.Network, Sandbox: in.Isolation.Sandbox, Level: in.Level, Workspace: in.Dir, AddDirs: addDirs,
		CLI: in.Program, HostHome: hostHome, ProxyPort: isolation.HTTPProxyPort, SOCKSPort: isolation.SOCKSProxyPort,
	})
	if err != nil {
		return nil, err
	}
	return copyAWS(in)
}

// NewHome makes a home for a CLI that is started without [Open]; see [isolation.NewHome].
func NewHome(parent string, o HomeOptions) (*isolation.Home, error) {
	h, err := isolation.NewHome(isolation.HomeOptions{TempDir: parent, ConfigDir: configDir})
	if err != nil {
		return nil, err
	}
	if err := fill(h, o); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func fill(h *isolation.Home, o HomeOptions) error {
	o.dir = h.Path()
	content, err := settingsFor(o).Encode()
	if err == nil {
		err = os.Mkdir(SkillsDir(h), 0o700)
	}
	if err == nil {
		err = os.WriteFile(SettingsPath(h), content, 0o600)
	}
	if err != nil {
		return advice.Wrap(fmt.Errorf("claudecell: the private home %s: %w", h.Path(), err),
			"make room there, or set Isolation.TempDir to another folder")
	}
	return nil
}

// SettingsPath is the settings file of a home.
func SettingsPath(h *isolation.Home) string { return settingsFile(h.ConfigDir()) }

// SkillsDir is where skills belong in a home: each in a folder of its name.
func SkillsDir(h *isolation.Home) string { return filepath.Join(h.ConfigDir(), "skills") }

// maxSocketFolder is how long the name of a folder may be in which the CLI's sandbox on Linux can make its
// sockets: what the kernel takes, less "/claude-socks-", sixteen digits and ".sock".
const maxSocketFolder = 107 - 35

// checkSocketNames refuses a folder for temporary files in which the CLI's sandbox could not be set up: the
// CLI would start all the same, and fail at each command.
func checkSocketNames(goos, temp string) error {
	if goos != "linux" || len(temp) <= maxSocketFolder {
		return nil
	}
	return advice.Wrap(fmt.Errorf("claudecell: the CLI's own sandbox cannot make sockets in %s: the name is longer than %d bytes", temp, maxSocketFolder),
		"set Isolation.TempDir to a folder with a shorter name, such as /tmp")
}
