// SPDX-License-Identifier: Apache-2.0

package drovertest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway/gatewaytest"
)

// The invented agent: this test program, started again in a cell. It asks the invented model, and makes the calls that
// are in the answers, with the tools of agenttest.Tools. It asks its host before each call.
//
// An answer of the model is text, in which a line "rite ID TOOL INPUT" is a call.

// agentVariable makes this test program the agent.
const agentVariable = "ORACLE_AGENT"

// A task is what the agent reads from its standard input.
type task struct {
	Host  string // where it asks
	Model string
	Text  string // the conversation, up to the prompt
}

// A message is what the agent reports to its host, or asks it.
type message struct {
	Kind   messageKind
	Call   event.ToolCall
	Text   string // of the model, the output of a call, or the whole conversation
	Failed bool   // the call
}

type messageKind string

const (
	sendText messageKind = "say"  // the model wrote a text
	askCall  messageKind = "ask"  // may the call be made?
	runTool  messageKind = "run"  // the call is of a tool of the host
	endCall  messageKind = "end"  // the call was made
	askStop  messageKind = "stop" // may the agent stop without an answer?
	sendAll  messageKind = "bye"  // the agent stops
)

// A reply is what the host answers.
type reply struct {
	Refused bool
	Input   json.RawMessage `json:",omitempty"` // of the call, if it is to be another
	Text    string          // for the model
}

func runAgent() error {
	var t task
	if err := json.NewDecoder(os.Stdin).Decode(&t); err != nil {
		return err
	}
	a := &oracleAgent{task: t}
	a.addText(skills())
	for {
		words, err := gatewaytest.Ask(context.Background(), os.Getenv("ORACLE_URL"), os.Getenv("ORACLE_TOKEN"), gatewaytest.Question{
			Model: cmp.Or(t.Model, "delphi-2"), Stream: true, MaxTokens: 1000, Tools: []string{"rites"}, Result: a.last, Text: a.Text,
		})
		if err != nil {
			return err
		}
		a.addText(words)
		done, err := a.follow(words)
		if err != nil {
			return err
		}
		if done {
			_, err := a.send(message{Kind: sendAll, Text: a.Text})
			return err
		}
	}
}

type oracleAgent struct {
	task
	last string // the id of the last call that was made
}

// addText adds to the conversation.
func (a *oracleAgent) addText(text string) {
	if text != "" {
		a.Text += text + "\n"
	}
}

// follow does what an answer asks for, and reports whether it is the last one.
func (a *oracleAgent) follow(words string) (done bool, err error) {
	text, calls := readAnswer(words)
	if text != "" {
		if _, err := a.send(message{Kind: sendText, Text: text}); err != nil {
			return false, err
		}
	}
	for _, call := range calls {
		made, err := a.call(call)
		if err != nil {
			return false, err
		}
		done = done || made && call.Name == "answer"
	}
	if done || len(calls) > 0 {
		return done, nil
	}
	r, err := a.send(message{Kind: askStop, Text: text})
	a.addText(r.Text)
	return !r.Refused, err
}

// readAnswer takes the calls out of an answer.
func readAnswer(words string) (text string, calls []event.ToolCall) {
	var lines []string
	for line := range strings.Lines(words) {
		line = strings.TrimSuffix(line, "\n")
		if rite, ok := strings.CutPrefix(line, "rite "); ok {
			id, rest, _ := strings.Cut(rite, " ")
			name, input, _ := strings.Cut(rest, " ")
			calls = append(calls, event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(input)})
			continue
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), calls
}

// call makes a call, if the host permits it, and reports whether it did.
func (a *oracleAgent) call(call event.ToolCall) (made bool, err error) {
	permitted, err := a.send(message{Kind: askCall, Call: call})
	if err != nil {
		return false, err
	}
	if permitted.Refused {
		a.addText("rite " + string(call.ID) + " was not permitted: " + permitted.Text)
		return false, nil
	}
	if permitted.Input != nil {
		call.Input = permitted.Input
	}
	var output, more string
	if strings.HasPrefix(call.Name, "mcp__") {
		r, err := a.send(message{Kind: runTool, Call: call})
		if err != nil {
			return false, err
		}
		more = r.Text
	} else {
		var failure error
		if output, failure = perform(call.Name, call.Input); failure != nil {
			output += failure.Error()
		}
		r, err := a.send(message{Kind: endCall, Call: call, Text: output, Failed: failure != nil})
		if err != nil {
			return false, err
		}
		more = r.Text
	}
	a.last = string(call.ID)
	a.addText("rite " + string(call.ID) + " gave: " + output + "\n" + more)
	return true, nil
}

// send sends a message to the host. Whatever is no reply is an error, which ends the agent: it makes no call then.
func (a *oracleAgent) send(m message) (r reply, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return r, err
	}
	resp, err := http.Post(a.Host, "application/json", bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the host answers %s: %s", resp.Status, text)
	}
	return r, errors.Join(err, json.Unmarshal(text, &r))
}

// perform does what a call of one of the agent's own tools says.
func perform(name string, input json.RawMessage) (output string, err error) {
	type writing struct{ At, Text string }
	var in struct {
		writing
		Changes []writing
		Line    string
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return "", err
	}
	switch name {
	case "inscribe":
		return "done", os.WriteFile(in.At, []byte(in.Text), 0o644)
	case "amend":
		for _, change := range in.Changes {
			err = errors.Join(err, os.WriteFile(change.At, []byte(change.Text), 0o644))
		}
		return "done", err
	case "peruse":
		text, err := os.ReadFile(in.At)
		return string(text), err
	case "perform":
		text, err := exec.Command("/bin/sh", "-c", in.Line).CombinedOutput()
		return string(text), err
	case "answer":
		return "taken", nil
	}
	return "", fmt.Errorf("there is no tool %s", name)
}

// skills are what the home has of them.
func skills() string {
	var all strings.Builder
	pages, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), "skills", "*", "SKILL.md")) // a fixed pattern
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			text = []byte(err.Error())
		}
		all.Write(text)
	}
	return all.String()
}
