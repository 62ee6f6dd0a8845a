// SPDX-License-Identifier: Apache-2.0

// Command drover drives coding agents from the terminal.
package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/claude"
)

func main() {
	ctx, stop := withSignals(context.Background())
	code := untilKilled(ctx, func() int { return execute(ctx, newCommand()) })
	stop()
	os.Exit(code)
}

// untilKilled returns the exit code of a command. A command that is killed has timeToDie to return it.
func untilKilled(ctx context.Context, run func() int) int {
	done := make(chan int, 1)
	go func() { done <- run() }()
	select {
	case code := <-done:
		return code
	case <-killed(ctx):
	}
	select {
	case code := <-done:
		return code
	case <-time.After(timeToDie):
		return exitInterrupted
	}
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
