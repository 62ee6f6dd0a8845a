// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"
)

var errNotSeen = errors.New("the messages did not end")

// A Client holds one conversation with the CLI of the job: it answers what the scenario asks, reports
// each message to the meter, and returns when it has the result or the CLI has ended.
type Client func(ctx context.Context, job Job, m *Meter) error

// Main is the main function of a client process. The last argument is the job.
func Main(client Client) {
	var job Job
	if json.Unmarshal([]byte(os.Args[len(os.Args)-1]), &job) != nil {
		fmt.Fprintln(os.Stderr, "usage: a client of the benchmark takes a job as JSON in its last argument; run the benchmark instead: go run ./bench/cmd/wirebench")
		os.Exit(2)
	}
	stop := profile(job.CPUProfile)
	sample := run(client, job)
	stop()
	sample.PeakKB = peakKB()
	if err := json.NewEncoder(os.Stdout).Encode(sample); err != nil {
		os.Exit(1)
	}
}

func run(client Client, job Job) Sample {
	if job.Scenario == Death {
		return deaths(client, job)
	}
	var m Meter
	if err := client(context.Background(), job, &m); err != nil {
		m.sample.Error = err.Error()
	}
	return m.sample
}

func deaths(client Client, job Job) Sample {
	var s Sample
	for _, moment := range job.Moments {
		seen, err := death(client, job, moment)
		if err != nil {
			s.Error = err.Error()
			break
		}
		s.Deaths = append(s.Deaths, seen)
	}
	return s
}

// death lets the CLI die once. A client that does not notice in time is left behind.
func death(client Client, job Job, moment string) (DeathSeen, error) {
	job.Env = maps.Clone(job.Env)
	job.Env[EnvDie] = moment
	_ = os.Remove(job.Report)
	seen := DeathSeen{Moment: moment, MS: DeathCap.Seconds() * 1e3, Said: "nothing in time"}
	m, done := new(Meter), make(chan struct{})
	go func() {
		defer close(done)
		_ = client(context.Background(), job, m)
	}()
	select {
	case <-done:
	case <-time.After(DeathCap + time.Second): // a second for the life before the death
		return seen, nil
	}
	report, err := ReadReport(job.Report)
	if err != nil || !m.ended {
		return seen, fmt.Errorf("death at %s was not seen as one: %w", moment, cmp.Or(err, errNotSeen))
	}
	seen.MS = float64(m.endedAt.UnixNano()-report.DiedAt) / 1e6
	seen.Said = "the messages ended"
	if m.endErr != nil {
		seen.Said = fmt.Sprintf("%.300s", m.endErr)
		seen.Reason = namesExitCode(seen.Said)
	}
	return seen, nil
}

func namesExitCode(text string) bool {
	text = strings.ToLower(text)
	for _, form := range []string{"exit 7", "exit code: 7", "code 7", "status 7"} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// ReadReport reads what the fake CLI wrote.
func ReadReport(path string) (Report, error) {
	var r Report
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return r, err
}
