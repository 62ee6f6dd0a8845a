// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/bench/internal/rig"
)

// runLimit is how long one client process may take: a client that hangs must not hold up the table.
const runLimit = time.Minute

// A bench runs client processes in a scratch directory.
type bench struct {
	settings settings
	shop     *workshop
	scratch  string
}

func newBench(s settings, w *workshop) (*bench, error) {
	scratch, err := os.MkdirTemp("", "wirebench-")
	if err != nil {
		return nil, err
	}
	return &bench{settings: s, shop: w, scratch: scratch}, nil
}

func (b *bench) close() { _ = os.RemoveAll(b.scratch) }

// measure runs every client through every scenario. Clients alternate, so that a slow moment of the
// machine hits all of them.
func (b *bench) measure(all []*participant) {
	for _, scenario := range allScenarios {
		if !b.settings.scenarios.MatchString(string(scenario)) {
			continue
		}
		repeats := b.settings.repeats
		if scenario == rig.Death {
			repeats = 1 // its spread is the figure
		}
		for range repeats {
			for _, p := range all {
				if p.absent == nil && p.takes(scenario) && b.settings.clients.MatchString(p.name) {
					b.once(p, scenario)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "%s ", scenario)
	}
	fmt.Fprintln(os.Stderr)
}

func (b *bench) once(p *participant, scenario rig.Scenario) {
	r := p.results[scenario]
	if r == nil {
		r = &result{}
		p.results[scenario] = r
	}
	job := b.job(p, scenario)
	sample, err := b.client(p, job)
	if err == nil {
		err = r.add(p, scenario, b.count(scenario), sample, job.Report)
	}
	if err != nil {
		r.failed++
		r.err = err
	}
	r.runs++
}

func (b *bench) count(scenario rig.Scenario) int {
	switch scenario {
	case rig.Big:
		return b.settings.bigLines
	case rig.Hooks, rig.Hooks16, rig.Permissions:
		return b.settings.roundTrips
	case rig.MCP:
		return b.settings.calls
	}
	return b.settings.messages
}

func (b *bench) job(p *participant, scenario rig.Scenario) rig.Job {
	job := rig.Job{Scenario: scenario, CLI: b.shop.cli(), Report: filepath.Join(b.scratch, "report"), Env: b.environment()}
	maps.Copy(job.Env, map[string]string{
		rig.EnvScenario: string(scenario),
		rig.EnvCount:    strconv.Itoa(b.count(scenario)),
		rig.EnvReport:   job.Report,
	})
	if scenario == rig.Death {
		job.Moments = moments(b.settings.deaths)
	}
	if b.settings.profiles != "" && p.npmPeer == "" {
		name := strings.NewReplacer(" ", "-", ":", "", "/", "-").Replace(p.name)
		job.CPUProfile = filepath.Join(b.settings.profiles, fmt.Sprintf("%s.%s.pprof", name, scenario))
	}
	return job
}

// environment is all that clients and the fake CLI see of the caller's environment.
func (b *bench) environment() map[string]string {
	return map[string]string{"PATH": os.Getenv("PATH"), "HOME": b.scratch, "TMPDIR": b.scratch}
}

// moments are n moments of death, the same in every run.
func moments(n int) []string {
	r := rand.New(rand.NewPCG(7, 7))
	var list []string
	for i := range n {
		list = append(list, []string{
			"initialize", fmt.Sprintf("stream:%d", 1+r.IntN(900)), fmt.Sprintf("torn:%d", 1+r.IntN(900)), "request",
		}[i%4])
	}
	return list
}

func (b *bench) client(p *participant, job rig.Job) (rig.Sample, error) {
	var sample rig.Sample
	_ = os.Remove(job.Report)
	argument, err := json.Marshal(job)
	if err != nil {
		return sample, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	args := append(p.command[1:len(p.command):len(p.command)], string(argument))
	cmd := exec.CommandContext(ctx, p.command[0], args...)
	cmd.Dir = b.scratch
	for name, value := range b.environment() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return sample, fmt.Errorf("no end after %v", runLimit)
	}
	if err != nil {
		return sample, fmt.Errorf("%w: %.200s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &sample); err != nil {
		return sample, fmt.Errorf("the client's figures cannot be read: %w", err)
	}
	if sample.Error != "" {
		return sample, errors.New(sample.Error)
	}
	return sample, nil
}
