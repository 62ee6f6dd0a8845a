// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/server/testdata/client"
)

// A client that was generated from the OpenAPI document starts a run, reads its events, answers a question and fetches the diff.
func TestServe_GeneratedClient(t *testing.T) {
	s := newService(t, script.Call("Bash", script.Input{"command": "echo hello > greeting.txt", "description": "Write a greeting"}), script.Text("It is written."))
	shop := filepath.Join(s.cli.Work, "shop")
	if err := os.Mkdir(shop, 0o700); err != nil {
		t.Fatal(err)
	}
	s.args = append(s.args, "--mount="+shop)
	r, found := s.open()
	c, err := client.NewClientWithResponses(found.URL, client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+found.Token)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	started, err := c.StartRunWithResponse(ctx, client.Start{Prompt: new("Write a greeting.")})
	if err != nil || started.JSON201 == nil {
		t.Fatalf("the start: %v, %s", err, started.Body)
	}
	id := started.JSON201.Id
	events, err := c.ReadEvents(ctx, id, nil, func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", "text/event-stream")
		return nil
	})
	if err != nil || events.StatusCode != http.StatusOK {
		t.Fatalf("the events: %v, %v", err, events)
	}
	defer func() { _ = events.Body.Close() }()
	in := bufio.NewScanner(events.Body)
	in.Buffer(nil, 16<<20)
	entries, answered, ended := 0, false, false
	for in.Scan() {
		switch line := in.Text(); {
		case line == "event: entry":
			entries++
		case line == "event: end":
			ended = true
		case strings.HasPrefix(line, "data: ") && strings.Contains(line, `"questions":[{`) && !answered:
			answered = true
			run, err := c.ReadRunWithResponse(ctx, id)
			if err != nil || run.JSON200 == nil || len(run.JSON200.Questions) != 1 {
				t.Fatalf("the run with its question: %v, %s", err, run.Body)
			}
			answer, err := c.AnswerQuestionWithResponse(ctx, id, run.JSON200.Questions[0].Id, client.Answer{Verdict: "allow"})
			if err != nil || answer.StatusCode() != http.StatusNoContent {
				t.Fatalf("the answer: %v, %s", err, answer.Body)
			}
		}
	}
	if entries < 10 || !answered || !ended {
		t.Errorf("%d entries, answered %t, ended %t; %v", entries, answered, ended, in.Err())
	}
	diff, err := c.ReadDiffWithResponse(ctx, id)
	if err != nil || diff.StatusCode() != http.StatusOK || !strings.Contains(string(diff.Body), "+hello") {
		t.Errorf("the diff: %v, %s", err, diff.Body)
	}
	transcript, err := c.ReadTranscriptWithResponse(ctx, id)
	if err != nil || transcript.StatusCode() != http.StatusOK || !strings.Contains(string(transcript.Body), "Write a greeting.") {
		t.Errorf("the transcript: %v, %s", err, transcript.Body)
	}
	bundle, err := c.ReadBundleWithResponse(ctx, id)
	if err != nil || bundle.StatusCode() != http.StatusOK || !strings.HasPrefix(string(bundle.Body), "PK") {
		t.Errorf("the bundle: %v, %d bytes", err, len(bundle.Body))
	}
	gone, err := c.ReadRunWithResponse(ctx, "none")
	if err != nil || gone.ApplicationproblemJSON404 == nil || gone.ApplicationproblemJSON404.Next == nil {
		t.Errorf("a run that is not there: %v, %s", err, gone.Body)
	}
	http.DefaultClient.CloseIdleConnections()
	r.signal(os.Interrupt)
	r.wait()
}
