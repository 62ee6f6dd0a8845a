// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

// Open makes the cell of one run and changes the options of its CLI so that it starts inside. A nil Isolation is the
// default one. Close must be called when the CLI has ended.
//
// The options must not have a Spawner, a User or a Sandbox of their own unless the level is [isolation.LevelHost],
// nor settings of the project among their sources: the agent can write those.
func Open(ctx context.Context, i *isolation.Isolation, o *claude.Options, opts isolation.OpenOptions) (*isolation.Cell, error) {
	cell, err := i.Open(ctx, Program(o), opts)
	if err != nil {
		return nil, err
	}
	in := cell.Inside()
	o.Dir, o.CLIPath = in.Dir, cmp.Or(in.Program, o.CLIPath)
	o.Env = claude.ExactEnv(in.Env)
	o.SettingSources = SettingSources() // an empty list would leave out the settings of the home, and its sandbox
	o.StoreDir = in.Home.TempDir()      // so that it goes with the home
	o.Spawner = cell
	return cell, nil
}

// Program describes a CLI with these options to a cell. The options must not be changed until the cell is open.
func Program(o *claude.Options) isolation.Program {
	return isolation.Program{
		Path: o.CLIPath, Find: func(workspace string) (string, error) { return find(o.CLIPath, workspace) },
		PathSetting: "Options.CLIPath, " + claude.EnvCLI,
		Spawner:     o.Spawner, Check: func(level isolation.Level) error { return checkOptions(level, o) },
		OwnSandbox: true,
		Dir:        o.Dir, AddDirs: o.AddDirs, Files: files(o), Servers: servers(o),
		HostEnviron: o.Environ(), Env: o.Env.Vars(),
		Refused: refused, Permitted: choosesModel, Replaced: replaced, Secrets: credentialVariables,
		Variables: variables,
		Wires:     []*gateway.Wire{gateway.WireAnthropic, gateway.WireBedrock},
		Upstream:  OpenUpstream, RemoteTools: remoteTools(o),
		ConfigDir: configDir, ConfigVariable: claude.EnvConfigDir,
		Populate: func(in isolation.Inside) ([]string, error) { return populate(in, o.AddDirs) },
	}
}

// configDir is the configuration folder of the CLI, as a name in its home.
const configDir = ".claude"

// find finds the CLI, unless the options name one, and passes over one in the workspace, which an
// earlier agent may have put there. A missing CLI is reported when it is started.
func find(named, workspace string) (string, error) {
	o := claude.FindOptions{Path: named}
	if named == "" {
		o.Avoid = workspace
	}
	found, err := claude.Find(o)
	if err == nil {
		return found.Path, nil
	}
	if _, other := claude.Find(claude.FindOptions{Path: named}); other == nil {
		return "", err
	}
	return "", nil
}

// files are the files that the options name. The CLI itself reports missing files, except plugins.
func files(o *claude.Options) []isolation.File {
	var files []isolation.File
	for _, plugin := range o.Plugins {
		files = append(files, isolation.File{Path: plugin.Path, Setting: "Options.Plugins"})
	}
	optional := []string{o.SettingsFile, o.MCPConfig}
	if o.ProjectConfigRoot != "" {
		optional = append(optional, filepath.Join(o.ProjectConfigRoot, configDir))
	}
	switch prompt := o.SystemPrompt.(type) {
	case claude.PromptFile:
		optional = append(optional, prompt.Path)
	case *claude.PromptFile:
		if prompt != nil {
			optional = append(optional, prompt.Path)
		}
	}
	for _, path := range optional {
		if path != "" {
			files = append(files, isolation.File{Path: path, Setting: "the options of the CLI", Optional: true})
		}
	}
	if o.DebugFile != "" {
		files = append(files, isolation.File{Path: o.DebugFile, Setting: "Options.DebugFile", Output: true})
	}
	return files
}

func servers(o *claude.Options) (servers []isolation.Server) {
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		if server, ok := o.MCPServers[name].(claude.MCPStdio); ok {
			servers = append(servers, isolation.Server{Name: name, Command: server.Command, Args: server.Args})
		}
	}
	return servers
}

// remoteTools are searches, if the options name the tool for them.
func remoteTools(o *claude.Options) []string {
	for _, tool := range slices.Concat(o.Tools, o.AllowedTools) {
		if name, _, _ := strings.Cut(tool, "("); name == "WebSearch" {
			return []string{"web_search"}
		}
	}
	return nil
}

func variables(in isolation.Inside) map[string]string {
	env := claude.CellEnv{
		Path: in.Env["PATH"], Home: in.Home.Path(), Config: in.Home.ConfigDir(), Temp: in.Temp,
		Endpoint: claude.CellEndpoint{URL: in.GatewayURL, Token: in.Token},
	}
	if in.Upstream.Wire() == gateway.WireBedrock {
		// The CLI wants a region to choose a model's name by; where none is known any will do.
		env.Endpoint.BedrockRegion = cmp.Or(gateway.RegionOf(in.Upstream), "us-east-1")
	}
	return env.Vars()
}
