// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"slices"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/launch"
)

// A Program describes what runs in a cell: which program it is, what of the machine it needs, and how it is set up
// inside. The package of an agent makes one of the agent's options. The zero value is for a program that needs only the
// current directory and whose path is not known before it is started.
type Program struct {
	// Path is the program as the caller names it. No agent may replace it. Empty means unknown, or for Find to find.
	Path string
	// Find returns the path of the program to start, or "" without one, which makes the start fail. Unless
	// Path names one it must not take one in the workspace, where an earlier agent may have put it. Nil means Path.
	Find func(workspace string) (path string, err error)
	// PathSetting is what sets Path, for advice: "Options.Path". Empty means that there is nothing to name.
	PathSetting string
	// Spawner starts the program where there is no isolation ([LevelHost]). Nil means a [launch.HostSpawner].
	Spawner launch.Spawner
	// Check refuses what cannot be had at a level. Nil accepts all levels.
	Check func(Level) error
	// OwnSandbox means that the program has a sandbox of its own for commands, and that Populate sets it up.
	// [LevelSandbox] and [Sandbox.Nested] need one.
	OwnSandbox bool

	// Dir is the working directory, which is also the workspace. Empty means the current one.
	Dir string
	// AddDirs are further folders that the program reads and writes.
	AddDirs []string
	// Files are files and folders of the program's own.
	Files []File
	// Servers are programs that the program starts inside, such as MCP servers. Their files are shown to it.
	Servers []Server

	// HostEnviron are the variables of the host ("NAME=value") if [Host.Environ] is nil. Nil means [os.Environ].
	HostEnviron []string
	// Env are variables that the caller gives to the program. Refused variables are left out and reported.
	Env map[string]string
	// Refused are variables that neither Env nor Isolation.Env may have, beside those that are refused for every program.
	Refused []RefusedVariable
	// Permitted reports whether a variable of Env passes although Refused has it. Nil means none.
	Permitted func(name string) bool
	// Replaced are variables of Env that Variables sets: they are left out without a report.
	Replaced []string
	// Secrets are the variables in which the program looks for credentials. A [Probe] tries to read them inside.
	Secrets []string
	// Variables are those that the program needs inside, laid over all others. [Inside.Env] has those for its home, its
	// temporary files and the proxies already. Nil means none.
	Variables func(Inside) map[string]string

	// Wires are the model APIs that the program speaks: an upstream with another one is refused. Nil means any.
	Wires []*gateway.Wire
	// Upstream finds the upstream and its credential, if Isolation.Upstream is nil.
	Upstream func(context.Context, *Isolation) (gateway.Upstream, error)
	// RemoteTools are the tools of the model's API that the program may use although they reach the network from there.
	RemoteTools []string

	// ConfigDir is the folder of the program's configuration, as a name in its home. Empty means none.
	ConfigDir string
	// ConfigVariable is the variable that names that folder. A program that is started with another folder in it, that
	// of an earlier conversation, gets that folder, and in it what is in ConfigDir.
	ConfigVariable string
	// Populate puts files into the home. The addresses and variables of Inside are not known by then. Notes are gaps in
	// the isolation, for the Protection event. Nil leaves the home as made.
	Populate func(Inside) (notes []string, err error)
}

// A File is a file or folder of the host that a [Program] needs, at the same path inside. It can be read only.
type File struct {
	// Path may be relative to the working directory.
	Path string
	// Setting is what names it, for errors: "Options.Plugins".
	Setting string
	// Optional passes over a file that is missing.
	Optional bool
	// Output makes it a file that the program writes. A missing file is created.
	Output bool
}

// A Server is a program that a [Program] starts inside.
type Server struct {
	// Name is for errors.
	Name string
	// Command is the program, and Args its arguments. Paths among the arguments that are not there inside are reported.
	Command string
	Args    []string
}

// A RefusedVariable is a variable that a cell has to decide about itself.
type RefusedVariable struct {
	// Name is in capitals. A name that ends in * is a prefix, a name that begins with * a suffix.
	Name string
	// Instead is what to use, for the error.
	Instead string
}

// Inside is what a program finds in its cell.
type Inside struct {
	Level Level
	// Isolation is the one in effect. Sandbox is never nil; its AskBeforeBash is set if [OpenOptions.Judged] asks for it.
	Isolation *Isolation
	// Program is the path of the program, or "" if it is not known.
	Program string
	// Dir is the working directory, without symbolic links.
	Dir string
	// Home is its home, and Temp the folder for temporary files.
	Home *Home
	Temp string
	// Upstream is where model calls go, outside.
	Upstream gateway.Upstream
	// GatewayURL is where the program sends model calls, and Token is the key for it.
	GatewayURL, Token string
	// Env is the whole environment.
	Env map[string]string
}

// Environ is Env in the form of [os.Environ], sorted.
func (in Inside) Environ() []string {
	all := make([]string, 0, len(in.Env))
	for name, value := range in.Env {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// Ports of the proxy at [LevelCell], on the loopback of the cell.
const (
	HTTPProxyPort  = 47801
	SOCKSProxyPort = 47802
)
