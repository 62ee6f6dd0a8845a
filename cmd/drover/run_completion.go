// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/isolation"
)

// completeRun tells shells what the flags of drover run take.
func completeRun(cmd *cobra.Command) {
	cmd.ValidArgsFunction = cobra.NoFileCompletions // nobody can complete a prompt
	for flag, values := range map[string]cobra.CompletionFunc{
		"agent":     completeAgents,
		"allow":     completeList(capabilityNames),
		"ask":       completeList(capabilityNames),
		"deny":      completeList(capabilityNames),
		"tools":     completeList(nativeTools),
		"isolation": cobra.FixedCompletions(isolation.LevelNames(), cobra.ShellCompDirectiveNoFileComp),
		"file":      completeFiles("yaml", "yml", "json"),
		"arg":       completeArgs,
		"schema":    completeFiles("json"), "model-script": completeFiles("yaml", "yml"),
		"model": cobra.NoFileCompletions, "max-turns": cobra.NoFileCompletions, "side-calls": cobra.NoFileCompletions, "max-usd": cobra.NoFileCompletions,
		"max-tokens": cobra.NoFileCompletions, "allow-domain": cobra.NoFileCompletions,
		"timeout": cobra.NoFileCompletions, "resume": cobra.NoFileCompletions,
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
			panic(err) // a flag that there is not: a mistake in this file
		}
	}
}

func completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	agents, err := newAgents(nil, nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return agents.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeArgs completes the names of the arguments of the file that -f names.
func completeArgs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	f, err := agentfile.Load(cmd.Flag("file").Value.String())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []string
	for _, name := range slices.Sorted(maps.Keys(f.Args)) {
		offers = append(offers, cobra.CompletionWithDesc(name+"=", f.Args[name].Usage()))
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// completeList completes the last name of a comma list with those that are not in it yet.
func completeList(names func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var offers []string
		for _, name := range names() {
			if !slices.Contains(splitList(before), name) && strings.HasPrefix(before+name, typed) {
				offers = append(offers, before+name)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func completeFiles(extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
}

// nativeTools are the tools of Claude Code that the catalogue knows, sorted.
func nativeTools() []string {
	var names []string
	for _, t := range catalogue.Tools().Natives {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}
