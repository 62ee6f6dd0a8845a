// SPDX-License-Identifier: Apache-2.0

// Package doctor is drover doctor: it checks everything that a run needs, and prints how to fix problems.
package doctor

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
)

// grace is how long a check may take to give up when the time is over, or after Ctrl-C.
const grace = time.Second

// moreTime is the fix of a check that only lacked time.
const moreTime = "drover doctor --timeout 1m   on a busy machine"

// Options are set by the command. All but Offline are required.
type Options struct {
	// Offline leaves the model's endpoint alone.
	Offline bool
	// Timeout bounds all checks together.
	Timeout time.Duration
	// WorkDir is the folder that a run would work in.
	WorkDir func() (string, error)
	// Credentials name the variables that hold a secret. Doctor reports which are set, never their values.
	Credentials []string
	// Clouds name the switches to cloud services with credentials of their own.
	Clouds []string
}

// Examine looks at the real machine and reports what it found. It starts no model, costs nothing, sends no secret,
// and the report holds none. It takes as long as the timeout and a second at most. Its error is that of the context.
func Examine(ctx context.Context, o Options) (Report, error) { return newMachine(o).report(ctx) }

// A machine is what the checks look at. Tests replace single parts.
type machine struct {
	options Options
	environ func() []string
	home    string                  // of the user; empty if it is not known
	stat    func(path string) error // whether there is a file; it is never opened
	adapter interface {
		Ready(ctx context.Context) agent.Readiness
	}
	find    func() (claude.Found, error)
	node    func(ctx context.Context) (version string, err error)
	best    func(ctx context.Context) (isolation.Level, []error)
	probe   func(ctx context.Context, level isolation.Level) (isolation.Report, error)
	sandbox func(ctx context.Context) sandboxFacts
	dial    modelDial
	tempDir func() string
	free    func(dir string) (uint64, error)
	goos    string
}

func newMachine(o Options) *machine {
	home, _ := os.UserHomeDir() // without one there are no settings and no login
	work, _ := o.WorkDir()      // one that cannot be used is a finding of the disk
	return &machine{
		options: o,
		environ: os.Environ,
		home:    home,
		stat:    func(path string) error { _, err := os.Stat(path); return err },
		adapter: claudecode.New(&claude.Options{Dir: work}),
		find:    func() (claude.Found, error) { return claude.Find(claude.FindOptions{Avoid: work}) },
		node:    nodeVersion,
		best:    isolation.Best,
		probe:   probeLevel,
		sandbox: probedOnce(probeSandbox),
		dial:    modelDial{proxy: http.ProxyFromEnvironment, wait: modelWait},
		tempDir: os.TempDir,
		free:    freeSpace,
		goos:    runtime.GOOS,
	}
}

func (m *machine) getenv(name string) string {
	value := ""
	for _, entry := range m.environ() {
		if v, is := strings.CutPrefix(entry, name+"="); is {
			value = v
		}
	}
	return value
}

// report asks all questions. Its error is that of the context.
func (m *machine) report(ctx context.Context) (Report, error) {
	checks, err := examine(ctx, m.options.Timeout, m.exams())
	if err != nil {
		return Report{}, err
	}
	return newReport(m.withoutSecrets(checks)), nil
}

// An exam is one question about the machine. Its answer is nil if the question does not arise.
type exam struct {
	name string
	ask  func(ctx context.Context) *Check
}

// exams are in the order of the report.
func (m *machine) exams() []exam {
	return []exam{
		{"claude", m.examineClaude},
		{"node", m.examineNode},
		{"isolation", m.examineIsolation},
		{"sandbox", m.examineSandbox},
		{"auth", m.examineAuth},
		{"model", m.examineModel},
		{"disk", m.examineDisk},
		{"temp", m.examineTemp},
	}
}

// examine runs all checks at once and returns the results in order. It waits for them as long as
// bound, and for the grace after their contexts have ended. A check that hangs even then, as on a file
// system, is reported and left behind. Its error is that of ctx.
func examine(ctx context.Context, bound time.Duration, exams []exam) ([]Check, error) {
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	type answer struct {
		index int
		check *Check
	}
	answers := make(chan answer, len(exams)) // a late answer does not block
	checks := make([]*Check, len(exams))
	for i, exam := range exams {
		checks[i] = &Check{State: stateBroken, Detail: fmt.Sprintf("no answer within %v", bound), Fix: []string{moreTime}}
		go func() { answers <- answer{i, exam.ask(bounded)} }()
	}
	done, late := bounded.Done(), (<-chan time.Time)(nil)
	for left := len(exams); left > 0; {
		select {
		case a := <-answers:
			checks[a.index] = a.check
			left--
		case <-done:
			done, late = nil, time.After(grace)
		case <-late:
			left = 0
		}
	}
	return namedChecks(exams, checks), ctx.Err()
}

// namedChecks are the answers to questions that arose.
func namedChecks(exams []exam, checks []*Check) []Check {
	var named []Check
	for i, check := range checks {
		if check != nil {
			check.Name = exams[i].name
			named = append(named, *check)
		}
	}
	return named
}

// withoutSecrets removes credentials from the output of programs and servers. Their values are used here for nothing else.
func (m *machine) withoutSecrets(checks []Check) []Check {
	var secrets []string
	for _, name := range m.options.Credentials {
		secrets = append(secrets, m.getenv(name))
	}
	redactor := safetext.NewRedactor(secrets...)
	for i := range checks {
		checks[i].Detail = redactor.String(checks[i].Detail)
	}
	return checks
}
