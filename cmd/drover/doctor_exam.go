// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-agents/drover/internal/redact"
)

// moreTime mends a check that only lacked time.
const moreTime = "drover doctor --timeout 1m   on a busy machine"

// A doctorExam is one question about the machine. Its answer is nil if the question does not arise.
type doctorExam struct {
	name string
	ask  func(ctx context.Context) *doctorCheck
}

// exams are in the order of the report.
func (d *doctor) exams() []doctorExam {
	return []doctorExam{
		{"claude", d.examineClaude},
		{"node", d.examineNode},
		{"isolation", d.examineIsolation},
		{"sandbox", d.examineSandbox},
		{"auth", d.examineAuth},
		{"model", d.examineModel},
		{"disk", d.examineDisk},
		{"temp", d.examineTemp},
	}
}

// examine asks all questions at once and returns the answers in order. It waits for them as long as
// bound, and a little for those that were told to give up. What does not even give up, such as a file
// system that hangs, is reported and left behind. Its error is that of ctx.
func examine(ctx context.Context, bound time.Duration, exams []doctorExam) ([]doctorCheck, error) {
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	type answer struct {
		index int
		check *doctorCheck
	}
	answers := make(chan answer, len(exams)) // nobody blocks who answers after all
	checks := make([]*doctorCheck, len(exams))
	for i, exam := range exams {
		checks[i] = &doctorCheck{State: doctorBroken, Detail: fmt.Sprintf("no answer within %v", bound), Fix: []string{moreTime}}
		go func() { answers <- answer{i, exam.ask(bounded)} }()
	}
	done, late := bounded.Done(), (<-chan time.Time)(nil)
	for left := len(exams); left > 0; {
		select {
		case a := <-answers:
			checks[a.index] = a.check
			left--
		case <-done:
			done, late = nil, time.After(doctorGrace)
		case <-late:
			left = 0
		}
	}
	return namedChecks(exams, checks), ctx.Err()
}

// namedChecks are the answers to questions that arose.
func namedChecks(exams []doctorExam, checks []*doctorCheck) []doctorCheck {
	var named []doctorCheck
	for i, check := range checks {
		if check != nil {
			check.Name = exams[i].name
			named = append(named, *check)
		}
	}
	return named
}

// withoutSecrets takes credentials out of what programs and servers said. Their values are known here
// for nothing else.
func (d *doctor) withoutSecrets(checks []doctorCheck) []doctorCheck {
	var secrets []string
	for _, name := range credentialNames {
		secrets = append(secrets, d.getenv(name))
	}
	redactor := redact.New(secrets...)
	for i := range checks {
		checks[i].Detail = redactor.String(checks[i].Detail)
	}
	return checks
}
