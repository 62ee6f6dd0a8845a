// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

const submitHelp = `Submit sends a request to an agent, and prints the id of the run. With --nats it goes to the queue of a fleet, where a worker takes it;
without, to the drover serve of this user. See docs/fleet.md.

AGENT is the name of an agent. Its request is given by arguments, as for drover run -f, or as JSON: for an agent of a file an object of
its arguments, for an agent of a Go program what that takes.

With --key the same request is one run, however often it is submitted. With --wait the command waits for the end, and prints the answer;
the id is on standard error then. Ctrl-C ends the waiting, not the run.

Exit codes of --wait are those of drover run:
  0    the agent came to its end
  1    the run failed, or the request could not be submitted
  2    the command line is wrong, or drover serve refused the request
  3    the agent came to its end, but tool calls were denied
  4    a limit was reached, or the answer is not complete
  130  the run was cancelled, or the waiting was interrupted`

// submitOptions are the flags of drover submit.
type submitOptions struct {
	fleet fleetFlags
	args  argList
	input string // the path of a JSON file, or - for standard input
	key   string
	wait  bool
	json  bool
}

func newSubmitCommand() *cobra.Command {
	o := &submitOptions{}
	cmd := &cobra.Command{
		Use:   "submit [flags] AGENT",
		Short: "Send a request to an agent of a fleet, or of drover serve",
		Long:  submitHelp,
		Example: `  drover submit reviewer --arg focus=errors
  drover submit reviewer --input request.json --nats nats://localhost:4222 --key change-42
  drover submit reviewer --arg focus=errors --wait > review.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return advice.Wrap(usageError("submit takes the name of one agent, and there are %d arguments", len(args)), "drover submit reviewer --arg name=value")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s := streams{in: cmd.InOrStdin(), out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
			return withoutSecrets(o.submit(cmd.Context(), args[0], s), o.fleet.secrets())
		},
		ValidArgsFunction:     cobra.NoFileCompletions,
		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&o.args, "arg", "an argument of the agent; name=@file takes the text of a file, name=@- standard input; repeatable")
	f.Var(textFlag{&o.input, "file"}, "input", "the request as JSON; - is standard input")
	f.Var(textFlag{&o.key, "text"}, "key", "submit the same request under this key once, however often the command runs")
	f.BoolVar(&o.wait, "wait", false, "wait for the end, and print the answer")
	f.BoolVar(&o.json, "json", false, "print one object per line as JSON")
	o.fleet.addFlags(f)
	if err := cmd.RegisterFlagCompletionFunc("input", completeFiles("json")); err != nil {
		panic(err) // a flag that there is not: a mistake in this file
	}
	return cmd
}

func (o *submitOptions) submit(ctx context.Context, agent string, s streams) error {
	if err := o.fleet.check(); err != nil {
		return err
	}
	if !isFleetName(agent) && len(o.fleet.urls) > 0 {
		return advice.Wrap(usageError("%q cannot be the name of an agent", agent), "write up to 64 letters, digits, - and _")
	}
	request, err := o.request(ctx, s.in)
	if err != nil {
		return err
	}
	if len(o.fleet.urls) > 0 {
		return o.toFleet(ctx, agent, request, s)
	}
	return o.toServer(ctx, agent, request, s)
}

// request is the request as JSON.
func (o *submitOptions) request(ctx context.Context, in io.Reader) (json.RawMessage, error) {
	switch {
	case o.input != "" && len(o.args) > 0:
		return nil, advice.Wrap(usageError("--input and --arg exclude each other"), "write all arguments into the JSON object")
	case o.input == "-":
		text, err := readAll(ctx, in)
		if err != nil {
			return nil, inputError("the request", err, "send it there, and close it")
		}
		return validJSON(text, "standard input")
	case o.input != "":
		text, err := plainfile.Read(o.input, maxTextFile)
		if err != nil {
			return nil, advice.Wrap(usageError("--input: %w", err), "give the path of a file with JSON")
		}
		return validJSON(string(text), o.input)
	}
	args := map[string]string{}
	for name, value := range o.args {
		if value == fromInput {
			text, err := readAll(ctx, in)
			if err != nil {
				return nil, inputError("the argument "+name, err, "send it there, and close it")
			}
			if problem := safetext.PromptProblem(text); problem != "" {
				return nil, advice.Wrap(usageError("--arg: the value of %s %s", name, problem), "give the value as UTF-8 text")
			}
			value = strings.TrimSuffix(text, "\n")
		}
		args[name] = value
	}
	return plainjson.Marshal(args)
}

func validJSON(text, from string) (json.RawMessage, error) {
	var request json.RawMessage
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		return nil, advice.Wrap(usageError("--input: %s is not JSON: %w", from, err), `write an object such as {"focus": "errors"}`)
	}
	return request, nil
}

// submitted is what --json prints.
type submitted struct {
	ID    string `json:"id"`
	State string `json:"state"`
	// The others are known at the end.
	Output json.RawMessage `json:"output,omitempty"`
	Reason string          `json:"reason,omitzero"`
	Exit   *int            `json:"exit,omitempty"`
	// Run is the kept run, among those of the worker's user.
	Run    string `json:"run,omitzero"`
	Worker string `json:"worker,omitzero"`
}

// accepted prints the id of a run that has been submitted.
func (o *submitOptions) accepted(s streams, id, state string) error {
	var err error
	switch {
	case o.json:
		err = printJSON(s.out, submitted{ID: id, State: state})
	case o.wait:
		_, err = fmt.Fprintf(s.errs, "drover: run %s\n", safetext.Line(id))
	default:
		_, err = fmt.Fprintln(s.out, safetext.Line(id))
	}
	return err
}

// over prints the end of a run. Its error has the exit code.
func (o *submitOptions) over(s streams, end submitted, code int) error {
	if o.json {
		end.Exit = &code
		if err := printJSON(s.out, end); err != nil {
			return err
		}
		if code != 0 {
			return ending{code: code}
		}
		return nil
	}
	if end.Output != nil {
		text := string(end.Output)
		_ = json.Unmarshal(end.Output, &text) // an answer without a schema is a text
		if _, err := fmt.Fprintln(s.out, strings.TrimSuffix(text, "\n")); err != nil {
			return err
		}
	}
	switch code {
	case 0:
		return nil
	case exitDenied:
		return ending{code, errors.New("the agent came to its end, but tool calls were denied")}
	}
	return ending{code, fmt.Errorf("the run is %s: %s", end.State, cmp.Or(end.Reason, "no reason was given"))}
}

func printJSON(w io.Writer, v any) error {
	text, err := plainjson.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// toFleet submits to the queue of a cluster.
func (o *submitOptions) toFleet(ctx context.Context, agent string, request json.RawMessage, s streams) (err error) {
	f, err := o.fleet.open(ctx, s.errs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	run, err := f.Submit(ctx, agent, request, &fleet.SubmitOptions{Key: o.key})
	if err != nil {
		return err
	}
	state, err := run.State(ctx)
	if err != nil {
		return err
	}
	if err := o.accepted(s, run.ID(), string(state)); err != nil {
		return err
	}
	if known, err := f.Knows(ctx, agent); err == nil && !known {
		report(s.errs, advice.Wrap(fmt.Errorf("no worker has served an agent %s yet, so the run waits", agent), "check the name, or start drover worker with it"))
	}
	if !o.wait {
		return nil
	}
	return o.awaitFleet(ctx, run, s)
}

func (o *submitOptions) awaitFleet(ctx context.Context, run *fleet.Run, s streams) error {
	result, err := run.Wait(ctx)
	if err != nil {
		return stillGoing(ctx, err)
	}
	end := submitted{ID: run.ID(), State: string(result.State), Output: result.Output, Reason: result.Reason}
	code := exitError
	recorded, err := lastAttempt(ctx, run)
	if err != nil {
		return stillGoing(ctx, err)
	}
	end.Run, end.Worker = recorded.Run, recorded.Worker
	switch result.State {
	case fleet.Cancelled:
		code = exitInterrupted
	case fleet.Succeeded:
		code = recorded.Exit
	case fleet.Dead:
		code = cmp.Or(recorded.Exit, exitError)
	}
	return o.over(s, end, code)
}

// lastAttempt is the last attempt of a run that has recorded its end. The zero value means that none has.
func lastAttempt(ctx context.Context, run *fleet.Run) (last attemptEnded, err error) {
	for r, err := range run.Events(ctx, 0) {
		if err != nil {
			return last, err
		}
		var entry struct {
			Event struct {
				Type    event.Kind      `json:"type"`
				Payload json.RawMessage `json:"payload"`
			} `json:"event"`
		}
		if json.Unmarshal(r.Data, &entry) == nil && entry.Event.Type == last.EventKind() {
			var ended attemptEnded
			if json.Unmarshal(entry.Event.Payload, &ended) == nil {
				last = ended
			}
		}
	}
	return last, nil
}

// stillGoing is the error of a wait that ended before the run.
func stillGoing(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return ending{exitInterrupted, advice.Wrap(errors.New("stopped waiting; the run goes on"), "drover runs lists it, and drover runs cancel ends it")}
}

// toServer submits through the API of drover serve.
func (o *submitOptions) toServer(ctx context.Context, name string, request json.RawMessage, s streams) error {
	var args arguments
	if err := json.Unmarshal(request, &args); err != nil {
		return advice.Wrap(usageError("--input: the request is not one of an agent of a file: %w", err), `write an object such as {"focus": "errors"}`)
	}
	return withServer(ctx, &o.fleet, func(ctx context.Context, api *runningServer) error {
		var run server.Run
		if err := api.call(ctx, http.MethodPost, "/v1/runs", server.Start{Agent: name, Args: args, Key: o.key}, &run); err != nil {
			return refusedByServer(err)
		}
		if err := o.accepted(s, run.ID, string(run.State)); err != nil || !o.wait {
			return err
		}
		return o.awaitServer(ctx, api, run.ID, s)
	})
}

// refusedByServer is the error of a request that the server refused: what it does not allow is a mistake of the command line.
func refusedByServer(err error) error {
	if p, is := errors.AsType[*server.Problem](err); is && p.Status == http.StatusUnprocessableEntity {
		return ending{exitUsage, err}
	}
	return err
}

// askEvery is how often the server is asked for the end of a run.
const askEvery = 500 * time.Millisecond

func (o *submitOptions) awaitServer(ctx context.Context, api *runningServer, id string, s streams) error {
	for {
		var run server.Run
		if err := api.call(ctx, http.MethodGet, "/v1/runs/"+id, nil, &run); err != nil {
			return stillGoing(ctx, err)
		}
		if run.State != record.Running && run.State != server.Queued {
			return o.overOnServer(s, id, &run)
		}
		select {
		case <-ctx.Done():
			return stillGoing(ctx, ctx.Err())
		case <-time.After(askEvery):
		}
	}
}

func (o *submitOptions) overOnServer(s streams, id string, run *server.Run) error {
	end := submitted{ID: id, State: cmp.Or(string(run.Status), string(run.State)), Reason: run.Error, Run: run.ID}
	if run.End != nil {
		end.Output, end.Reason = run.End.Output, cmp.Or(end.Reason, run.End.Error)
		if run.Status == event.DoneSuccess && end.Output == nil {
			end.Output, _ = plainjson.Marshal(run.End.Text) // a text has a JSON form
		}
	}
	if run.Status != event.DoneSuccess {
		end.Output = nil
	}
	return o.over(s, end, codeOf(run))
}

// codeOf is the exit code of drover run for a run that the server describes.
func codeOf(run *server.Run) int {
	switch run.Status {
	case event.DoneSuccess:
		if run.Denied > 0 {
			return exitDenied
		}
		return 0
	case event.DoneMaxTurns, event.DoneMaxBudget:
		return exitLimit
	case event.DoneInterrupted:
		if run.Kind == "deadline" {
			return exitLimit
		}
		return exitInterrupted
	}
	if run.Kind == string(agent.FailureIncomplete) {
		return exitLimit
	}
	return exitError
}
