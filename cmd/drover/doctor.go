// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/cmd/drover/internal/doctor"
	"github.com/drover-agents/drover/terminal"
)

// doctorWait bounds all checks together.
const doctorWait = 5 * time.Second

func newDoctorCommand() *cobra.Command {
	o := doctor.Options{WorkDir: workFolder, Credentials: credentialNames, Clouds: cloudNames}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a run needs, and show how to fix what is wrong",
		Long: `Doctor looks at everything a run needs: the CLI, isolation, sandbox tools, a credential, the model's
endpoint, disk and temporary space. It prints one line for each, and below what is wrong the
command that fixes it. Doctor tests the isolation from inside, by attempts to get out of a cell. It starts no model, costs nothing, and neither sends nor prints a secret.

Exit code: 0 if a run can begin (there may be warnings), 3 if something it needs is missing or
broken, 1 if doctor itself failed, 2 for wrong usage, 130 if it was stopped.`,
		Example: `  drover doctor
  drover doctor --offline
  drover doctor --json | jq '.checks[] | select(.state != "ok")'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Timeout <= 0 {
				return advice.Wrap(usageError("--timeout is %v", o.Timeout), "give a time above zero, like 5s")
			}
			return diagnose(cmd.Context(), o, asJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object and nothing else")
	cmd.Flags().BoolVar(&o.Offline, "offline", false, "do not try to reach the model")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", doctorWait, "how long all checks together may take")
	return cmd
}

// diagnose examines and reports. Its error is that of the context, of the output, or an ending.
func diagnose(ctx context.Context, o doctor.Options, asJSON bool, out io.Writer) error {
	report, err := doctor.Examine(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		err = report.WriteJSON(out)
	} else {
		err = report.WriteText(out, terminal.Width(out))
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if report.Exit != 0 {
		return ending{code: report.Exit}
	}
	return nil
}
