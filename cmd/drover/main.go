// SPDX-License-Identifier: Apache-2.0

// Command drover drives coding agents from the terminal.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/claude"
)

func main() {
	ctx, stop := withSignals(context.Background())
	code := execute(ctx, newCommand())
	stop()
	os.Exit(code)
}

// execute runs the command and returns the exit code of the program.
func execute(ctx context.Context, cmd *cobra.Command) int {
	refuseUnknown(cmd) // here, since the commands that it adds keep the output of this moment
	return exitCode(ctx, cmd.ExecuteContext(ctx), cmd.ErrOrStderr())
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Drive coding agents on the real Claude Code CLI",
		Version:       claude.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRunCommand(), newSchemaCommand(), newDoctorCommand(), newDemoCommand())
	return root
}
