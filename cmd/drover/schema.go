// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/agentfile"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of agent files",
		Long: `Schema prints the JSON Schema of the files that drover run -f takes, for editors and other programs.

A file names it in its first line: # yaml-language-server: $schema=agent.schema.json`,
		Example: `  drover schema > agent.schema.json`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(agentfile.Schema())
			return err
		},
		DisableFlagsInUseLine: true,
	}
}
