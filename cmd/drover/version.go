// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
)

// A build describes this program: docs/run.md.
type build struct {
	Module  string `json:"module"`
	Version string `json:"version"`
	// Commit and Time are empty where the program was built without version control.
	Commit string `json:"commit,omitempty"`
	Time   string `json:"time,omitempty"`
	// Modified means that the files differed from the commit.
	Modified bool          `json:"modified,omitempty"`
	Go       string        `json:"go"`
	Platform string        `json:"platform"`
	Agents   []testedAgent `json:"agents"`
}

// A testedAgent is an agent and the versions of it that the tests run with.
type testedAgent struct {
	Name   string `json:"name"`
	Oldest string `json:"oldest"`
	Pinned string `json:"pinned"`
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, and the versions of agents that are tested",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			b, out := describeBuild(info), cmd.OutOrStdout()
			if asJSON {
				enc := json.NewEncoder(out)
				enc.SetIndent("", "  ")
				return enc.Encode(b)
			}
			_, err := fmt.Fprint(out, b.text())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object and nothing else")
	return cmd
}

// describeBuild describes the program that info is of, which may be nil.
func describeBuild(info *debug.BuildInfo) build {
	b := build{
		Module: "github.com/drover-agents/drover", Version: cmp.Or(releaseVersion, claude.Version), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Agents: []testedAgent{{claudecode.Agent, claude.OldestTested, claude.PinnedVersion}},
	}
	if info == nil {
		return b
	}
	b.Module = cmp.Or(info.Main.Path, b.Module)
	if v := strings.TrimPrefix(info.Main.Version, "v"); v != "(devel)" && releaseVersion == "" {
		b.Version = cmp.Or(v, b.Version)
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "drover       %s\nmodule       %s\n", b.Version, b.Module)
	commit := strings.TrimSpace(b.Commit + " " + b.Time)
	if b.Modified {
		commit += ", modified"
	}
	fmt.Fprintf(&s, "commit       %s\ngo           %s %s\n", cmp.Or(commit, "unknown"), b.Go, b.Platform)
	for _, a := range b.Agents {
		fmt.Fprintf(&s, "%-12s tested %s to %s\n", a.Name, a.Oldest, a.Pinned)
	}
	return s.String()
}
