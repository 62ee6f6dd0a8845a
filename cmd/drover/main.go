// SPDX-License-Identifier: Apache-2.0

// Command drover drives coding agents from the terminal.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, newCommand())
	stop()
	os.Exit(code)
}

// execute runs the command and returns the exit code of the program: 0, 1 for an error, 130 if it
// was stopped by a signal.
func execute(ctx context.Context, cmd *cobra.Command) int {
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(cmd.ErrOrStderr(), "drover: stopped; the CLI and all it started are gone")
		return 130
	}
	if coded, ok := errors.AsType[doctorExit](err); ok {
		if coded.err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "drover:", coded)
		}
		return coded.code
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "drover:", strings.TrimPrefix(err.Error(), "claude: "))
	return 1
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Drive coding agents on the real Claude Code CLI",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newDemoCommand())
	root.AddCommand(newDoctorCommand())
	return root
}
