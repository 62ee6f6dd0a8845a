// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/isolation"
)

// credentialNames are the variables that hold a secret.
var credentialNames = []string{"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}

// cloudNames are the switches to cloud services with credentials of their own.
var cloudNames = []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"}

// A modelSource answers the agent, if it is not the model of the environment.
type modelSource struct {
	// pretended means that no model answers: nothing of such a run is kept.
	pretended bool
	closers   []func() error
	// traffic is a recording that is kept with the run and removed after it, or empty.
	traffic string
	// settle waits until the traffic that has passed is recorded. Nil without a recording.
	settle func(context.Context) error
	// problem returns an error that only the source knows, or nil.
	problem func() error
}

func (m *modelSource) close() error {
	var errs []error
	for n := len(m.closers) - 1; n >= 0; n-- {
		errs = append(errs, m.closers[n]())
	}
	return errors.Join(errs...)
}

// openModel sets the source of the model's answers in the isolation of an agent that works in dir.
func (o *runOptions) openModel(ctx context.Context, in *isolation.Isolation, dir string) (*modelSource, error) {
	m := &modelSource{pretended: o.modelScript != "" || o.replay != "", problem: func() error { return nil }}
	var err error
	switch {
	case o.modelScript != "":
		err = m.script(ctx, in, o.modelScript)
	case o.replay != "":
		err = m.replay(ctx, in, o.replay, dir, o.secrets())
	}
	switch {
	case err != nil:
	case o.record != "":
		err = m.record(ctx, in, o.record, dir, o.secrets())
		m.traffic = o.record
	case o.keep.traffic:
		_, err = trafficFolders.Sweep("") // of programs that were killed
		var folder *leftover.Folder
		if err == nil {
			folder, err = trafficFolders.Make("")
		}
		if err == nil {
			m.traffic = filepath.Join(folder.Path(), "traffic.jsonl")
			m.closers = append(m.closers, folder.Remove)
			err = m.record(ctx, in, m.traffic, dir, o.secrets())
		}
	}
	if !o.keep.traffic {
		m.traffic = ""
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// trafficFolders have the traffic of a run until that is kept.
var trafficFolders = leftover.Kind{Prefix: "drover-traffic-", Text: "drover: the model's traffic of a run in progress\n"}

// script has a scripted model answer, on loopback.
func (m *modelSource) script(ctx context.Context, in *isolation.Isolation, path string) error {
	var s script.Script
	err := promptly(ctx, func() (err error) { s, err = script.Load(path); return err })
	if ctx.Err() != nil {
		return stoppedEarly(ctx)
	}
	if err != nil {
		next := "correct it; docs/model-scripts.md describes what a script may hold"
		if _, noFile := errors.AsType[*os.PathError](err); noFile {
			next = "give the path of a file with a model script"
		}
		return advice.Wrap(usageError("--model-script: %w", err), "%s", next)
	}
	s.KeepRequests = cmp.Or(s.KeepRequests, 1) // they are not read, and a long run has many
	model, err := script.Start(s)
	if err != nil {
		return fmt.Errorf("--model-script %s: %w", path, err)
	}
	m.closers = append(m.closers, model.Close)
	m.problem = func() error { return scriptProblem(model.Failures()) }
	in.Upstream, err = claudecell.Scripted(model.URL())
	return err
}

// scriptProblem is the first request that the script could not answer, or nil.
func scriptProblem(failures []script.Failure) error {
	if len(failures) == 0 {
		return nil
	}
	what, next, _ := strings.Cut(failures[0].Error(), ". Next: ")
	return advice.Wrap(fmt.Errorf("--model-script: %s", what),
		"%s", cmp.Or(next, "change the script; docs/model-scripts.md describes what it may hold"))
}

// folders returns the folders of a run for a recording. The home of a run has another name each time.
func folders(dir string) gateway.Folders { return gateway.Folders{Dir: dir, Temp: os.TempDir()} }

func (m *modelSource) record(ctx context.Context, in *isolation.Isolation, path, dir string, secrets []string) error {
	upstream, err := claudecell.OpenUpstream(ctx, in)
	if err != nil {
		return err
	}
	opts := gateway.RecordOptions{Folders: folders(dir), Secrets: secrets}
	recorder, err := gateway.Record(upstream, path, opts)
	if err != nil {
		return usageError("--record: %w", err)
	}
	m.closers, m.settle = append(m.closers, recorder.Close), recorder.Settle
	in.Upstream = recorder
	return nil
}

func (m *modelSource) replay(ctx context.Context, in *isolation.Isolation, path, dir string, secrets []string) error {
	var player *gateway.Player
	err := promptly(ctx, func() (err error) {
		player, err = gateway.Replay(path, gateway.ReplayOptions{Folders: folders(dir), Secrets: secrets})
		return err
	})
	if ctx.Err() != nil {
		return stoppedEarly(ctx)
	}
	if err != nil {
		return advice.Wrap(usageError("--replay: %s", err), "give a file that drover run --record has made")
	}
	m.problem = player.Err
	in.Upstream = player
	return nil
}

func (o *runOptions) checkReplay() error {
	for flag, given := range map[string]bool{
		"--record": o.record != "", "--resume": o.resume != "", "--continue": o.last, "--model-script": o.modelScript != "", "--stored-login": o.isolation.storedLogin,
	} {
		if given && o.replay != "" {
			return advice.Wrap(usageError("--replay and %s exclude each other", flag), "choose one")
		}
	}
	return nil
}
