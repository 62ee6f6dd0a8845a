// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/agentfile"
)

func newSchemaCommand() *cobra.Command {
	project := false
	cmd := &cobra.Command{
		Use:   "schema [--project]",
		Short: "Print the JSON Schema of agent files",
		Long: `Schema prints the JSON Schema of the files that drover run -f takes, for editors and other programs. With --project
it is that of the project file, .drover.yaml.

A file names it in its first line: # yaml-language-server: $schema=agent.schema.json`,
		Example: `  drover schema > agent.schema.json`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := agentfile.Schema()
			if project {
				text = agentfile.ProjectSchema()
			}
			_, err := cmd.OutOrStdout().Write(text)
			return err
		},
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().BoolVar(&project, "project", false, "print the schema of "+agentfile.ProjectFile)
	return cmd
}
