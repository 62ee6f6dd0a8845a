// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/schema"
)

//go:embed review.schema.json
var reviewSchema string

// A codeReview is the answer of an agent that reviews code. review.schema.json is its JSON Schema.
type codeReview struct {
	Summary  string    `json:"summary"`
	Findings []finding `json:"findings"`
}

// A finding is about a line of a file. A model wrote all of it.
type finding struct {
	Path     string   `json:"path"`
	Line     int      `json:"line"`
	Severity severity `json:"severity"`
	Rule     string   `json:"rule"`
	Message  string   `json:"message"`
}

type severity string

// severities are in the order of their weight.
var severities = []severity{"note", "warning", "error"}

// exitFindings is the exit code of a report with a finding that --fail-on names.
const exitFindings = 3

type reportOptions struct {
	annotations           bool
	sarif, review, prefix string
	failOn                string
}

func newReportCommand() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report [flags] file",
		Short: "Turn the review of an agent into annotations and SARIF",
		Long: `Report reads a review, and prints its findings. The file has the answer of a run (drover run --quiet) or its
events (drover run --json). The answer has to fit the JSON Schema of a review; see docs/ci.md.

A finding whose path leads out of the repository has no file in the annotations, and is not in the SARIF
file. The exit code is 1 then.

Exit codes:
  0  the review was reported
  1  it was not, or not completely
  2  the command line is wrong
  3  it has a finding as severe as --fail-on, or more`,
		Example: `  drover report review.json
  drover report --annotations --sarif review.sarif events.jsonl`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.report(args[0], cmd.OutOrStdout())
		},
		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.annotations, "annotations", false, "print workflow commands of GitHub Actions instead of lines")
	f.Var(textFlag{&o.sarif, "file"}, "sarif", "write the findings as SARIF 2.1.0 to file")
	f.Var(textFlag{&o.review, "file"}, "review", "write the review as JSON to file")
	f.Var(textFlag{&o.prefix, "folder"}, "strip-prefix", "the folder that was the repository for the agent; it is taken from paths")
	f.Var(textFlag{&o.failOn, "severity"}, "fail-on", "end with exit code 3 if a finding is as severe: note, warning, error, or none (the default)")
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return advice.Wrap(usageError("%s takes one file, and there are %d arguments", cmd.CommandPath(), len(args)),
		"give it the answer or the events of a run: %s review.json", cmd.CommandPath())
}

// report reads a review and does what the flags ask for.
func (o *reportOptions) report(file string, out io.Writer) error {
	if o.failOn != "" && o.failOn != "none" && !slices.Contains(severities, severity(o.failOn)) {
		return advice.Wrap(usageError("--fail-on: there is no severity %q", o.failOn), "choose note, warning, error or none")
	}
	r, err := readReview(file)
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return err // it names the file
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	strays := r.clean(o.prefix)
	if o.review != "" {
		err = writeJSON(o.review, r)
	}
	if o.sarif != "" {
		err = errors.Join(err, writeJSON(o.sarif, newSARIF(r)))
	}
	for _, f := range r.Findings {
		line := f.line()
		if o.annotations {
			line = f.annotation()
		}
		if _, failed := fmt.Fprintln(out, line); failed != nil {
			return errors.Join(err, failed)
		}
	}
	switch {
	case err != nil:
		return err
	case strays > 0:
		return advice.Wrap(fmt.Errorf("%s: %d of %d findings name no path in the repository", file, strays, len(r.Findings)),
			"read them above; they are not in the SARIF file")
	case r.atLeast(severity(o.failOn)):
		return ending{exitFindings, fmt.Errorf("%s has a finding of severity %s or above", file, o.failOn)}
	}
	return nil
}

// readReview reads a review, or the one in the last of the events of a run.
func readReview(name string) (*codeReview, error) {
	file, err := plainfile.Open(name)
	if err != nil {
		return nil, advice.Wrap(err, "give the path of a review, or of the events of a run")
	}
	defer file.Close()
	var last json.RawMessage
	for d := json.NewDecoder(file); ; {
		err := d.Decode(&last)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
	}
	var e struct {
		Type    string
		Payload event.Done
	}
	if json.Unmarshal(last, &e) == nil && e.Type != "" {
		if last = e.Payload.Output; len(last) == 0 {
			return nil, advice.Wrap(errors.New("the run ended without an answer in JSON"), "look at its last event")
		}
	}
	parsed, err := schema.Parse(json.RawMessage(reviewSchema))
	if err != nil {
		return nil, err
	}
	r, err := schema.Decode[codeReview](parsed, last)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("not a review: %w", err), "give the agent the schema in docs/ci.md as its output")
	}
	return &r, nil
}

// clean makes the texts safe to show and the paths relative to the repository. It returns how many paths are not in there;
// these are empty afterwards.
func (r *codeReview) clean(prefix string) (strays int) {
	r.Summary = safetext.Lines(r.Summary)
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Message = safetext.Lines(f.Message)
		if prefix != "" {
			f.Path = strings.TrimPrefix(f.Path, path.Clean(prefix)+"/")
		}
		f.Path = path.Clean(f.Path)
		if !fs.ValidPath(f.Path) || f.Path == "." || strings.Contains(f.Path, `\`) || safetext.Line(f.Path) != f.Path {
			f.Path = ""
			strays++
		}
	}
	return strays
}

// atLeast reports whether a finding is as severe as least, or more. Nothing is as severe as an unknown one.
func (r *codeReview) atLeast(least severity) bool {
	limit := slices.Index(severities, least)
	return limit >= 0 && slices.ContainsFunc(r.Findings, func(f finding) bool { return slices.Index(severities, f.Severity) >= limit })
}

// line is the finding for people. A runner of GitHub Actions, which obeys "::" behind spaces and "##[" anywhere, finds no command in it.
func (f *finding) line() string {
	text := fmt.Sprintf("%s:%d: %s: %s (%s)", f.Path, f.Line, f.Severity, strings.ReplaceAll(f.Message, "\n", "\n\t| "), f.Rule)
	if strings.HasPrefix(text, ":") {
		text = "./" + text
	}
	return strings.ReplaceAll(text, "##[", "## [")
}

// Escapes of workflow commands: in the text of a command, and in its properties.
var (
	commandText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotation is a workflow command of GitHub Actions, one line. A finding without a path is about no file.
func (f *finding) annotation() string {
	name, where := string(f.Severity), ""
	if f.Severity == "note" {
		name = "notice"
	}
	if f.Path != "" {
		where = fmt.Sprintf("file=%s,line=%d,", commandProperty.Replace(f.Path), f.Line)
	}
	return fmt.Sprintf("::%s %stitle=%s::%s", name, where, commandProperty.Replace(f.Rule), commandText.Replace(f.Message))
}

func writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o600)
}
