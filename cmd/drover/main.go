// SPDX-License-Identifier: Apache-2.0

// Command drover drives coding agents from the terminal.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
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

func execute(ctx context.Context, cmd *cobra.Command) int {
	refuseUnknown(cmd) // here, since the commands that it adds keep the output of this moment
	return exitCode(ctx, cmd.ExecuteContext(ctx), cmd.ErrOrStderr())
}

// releaseVersion is the version of a release, which tools/release sets when it links. Other builds have none.
var releaseVersion string

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Drive coding agents on the real Claude Code CLI",
		Version:       cmp.Or(releaseVersion, claude.Version),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(flagError)
	cobra.AddTemplateFunc("columns", helpColumns)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages", "FlagUsagesWrapped (columns $)"))
	root.AddCommand(newRunCommand(), newRunsCommand(), newServeCommand(), newSubmitCommand(), newWorkerCommand(), newReportCommand(), newCheckCommand(), newSchemaCommand(), newDoctorCommand(), newDemoCommand(),
		newVersionCommand(), newManCommand())
	return root
}

// A stopSignal is the cause of a context that a signal has ended.
type stopSignal struct{ os.Signal }

func (s stopSignal) Error() string { return fmt.Sprintf("stopped by the signal %q", s.Signal) }

type killKey struct{}

// timeToDie is how long a run that is killed may take to give the terminal back and to remove its files.
const timeToDie = 2 * time.Second

// withSignals ends the context at the first ctrl-C, and closes the channel of killed at the second one. One that comes later
// than timeToDie after that ends the program in any case. Other signals that end programs count in the same way.
//
// A broken pipe is not such a signal: it is an error of the writer.
func withSignals(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	kill, over := make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // to ignore it would be inherited by the agent
	go func() {
		select {
		case s := <-signals:
			cancel(stopSignal{s})
		case <-over:
			return
		}
		select {
		case <-signals:
			close(kill)
		case <-over:
			return
		}
		select {
		case <-time.After(timeToDie):
			signal.Reset(stopSignals()...)
		case <-over:
		}
	}()
	return context.WithValue(ctx, killKey{}, (<-chan struct{})(kill)), func() {
		signal.Reset()
		close(over)
		cancel(nil)
	}
}

// stopSignals returns the signals that end programs, without those that this one ignores, as by nohup.
func stopSignals() []os.Signal {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

// killed is closed when the user does not want to wait for an orderly end. It is nil, never closed, if no signal ends ctx.
func killed(ctx context.Context) <-chan struct{} {
	kill, _ := ctx.Value(killKey{}).(<-chan struct{})
	return kill
}
