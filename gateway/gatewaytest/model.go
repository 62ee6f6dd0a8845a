// SPDX-License-Identifier: Apache-2.0

package gatewaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// An Answer is what a scripted model says to one question.
type Answer struct {
	// Model is the one that answers. Empty means delphi-2.
	Model string
	// Words come one by one if the question asks for a stream.
	Words []string
	// Input and Output are the tokens that it reports: Input before the first word, and what of Output was spoken
	// after each.
	Input, Output int64
	// Status answers with an error. Zero means 200.
	Status int
	// After, if set, is called after each word that was sent, with its number from 1. The next word waits for it.
	After func(n int)
}

// Model is a scripted model: it gives one answer for each question, in order. It also has a list of oracles, and
// weighs questions.
func Model(answers ...Answer) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		asked, unclear := readQuestion(req.Header, body)
		switch {
		case err != nil:
			return
		case req.URL.Path == "/oracles":
			_, _ = io.WriteString(w, "delphi-2\n")
			return
		case unclear != nil:
			reply(w, http.StatusBadRequest, unclear.Error())
			return
		case req.URL.Path == "/weigh":
			_, _ = io.WriteString(w, strconv.Itoa(len(body))+"\n")
			return
		}
		mu.Lock()
		if len(answers) == 0 {
			mu.Unlock()
			reply(w, http.StatusBadRequest, "the script has no more answers")
			return
		}
		answer := answers[0]
		answers = answers[1:]
		mu.Unlock()
		answer.write(w, asked.Stream)
	})
}

func reply(w http.ResponseWriter, status int, message string) {
	r := wire.Error(status, message)
	w.Header().Set("Content-Type", r.ContentType)
	w.WriteHeader(status)
	_, _ = w.Write(r.Body)
}

func (a Answer) write(w http.ResponseWriter, stream bool) {
	if a.Model == "" {
		a.Model = "delphi-2"
	}
	end := spending{a.Model, a.Input, a.Output}
	switch {
	case a.Status != 0:
		reply(w, a.Status, strings.Join(a.Words, ""))
		return
	case !stream:
		w.Header().Set("Content-Type", answerType)
		_ = json.NewEncoder(w).Encode(whole{said{strings.Join(a.Words, "")}, end, done{"all is said"}})
		return
	}
	w.Header().Set("Content-Type", streamType)
	send := func(events ...[]byte) {
		_, _ = w.Write(bytes.Join(events, nil)) // a reader that has gone needs no answer
		_ = http.NewResponseController(w).Flush()
	}
	over := event("done", done{"all is said"})
	send(event("spent", spending{a.Model, a.Input, 0}))
	for i, word := range a.Words {
		send(event("say", said{word}))
		spent := event("spent", spending{a.Model, a.Input, a.Output * int64(i+1) / int64(len(a.Words))})
		if i+1 == len(a.Words) && a.After == nil { // the end comes with what was spent, as in the real APIs
			send(spent, over)
			return
		}
		send(spent)
		if a.After != nil {
			a.After(i + 1)
		}
	}
	send(over)
}

// A Question is what a client asks.
type Question struct {
	Model     string
	Stream    bool
	MaxTokens int
	// Tools are offered to the model, and Result is the id of a call of one whose result the question brings.
	Tools  []string
	Result string
	// URL is something that the API is to read.
	URL string
	// Text is the question itself, and Fields are lines before it that the API does not know.
	Text   string
	Fields []string
	// Agent and Session are sent as headers.
	Agent, Session string
}

func (q Question) String() string {
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			b.WriteString(name + ": " + value + "\n")
		}
	}
	field("oracle", q.Model)
	if q.Stream {
		field("flowing", "yes")
	}
	if q.MaxTokens > 0 {
		field("breath", strconv.Itoa(q.MaxTokens))
	}
	for _, name := range q.Tools {
		field("offering", name)
	}
	field("brought", q.Result)
	field("behold", q.URL)
	for _, line := range q.Fields {
		b.WriteString(line + "\n")
	}
	return b.String() + "\n" + q.Text
}

// An Error is how the API or the gateway answers with an error, or ends a stream. Status is zero for the latter.
type Error struct {
	Status    int
	Name, Why string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (status %d)", e.Name, e.Why, e.Status) }

// ErrBrokeOff is the error for an answer without its end.
var ErrBrokeOff = errors.New("gatewaytest: the answer broke off")

// Ask asks a model at an address, with the token of a run. What came before an error is returned with it.
func Ask(ctx context.Context, base, token string, q Question) (words string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/ask", strings.NewReader(q.String()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Oracle "+token)
	if q.Agent != "" {
		req.Header.Set(agentHeader, q.Agent)
	}
	if q.Session != "" {
		req.Header.Set(sessionHeader, q.Session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	switch kind := resp.Header.Get("Content-Type"); {
	case kind == streamType:
		return readEvents(body, err)
	case err != nil:
		return "", errors.Join(ErrBrokeOff, err)
	case kind == errorType:
		name, why, _ := strings.Cut(string(body), ":")
		return "", &Error{resp.StatusCode, name, strings.TrimSpace(why)}
	}
	var a whole
	err = json.Unmarshal(body, &a)
	return a.Words, err
}

func readEvents(stream []byte, broken error) (words string, err error) {
	for line := range bytes.Lines(stream) {
		word, data, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		switch string(word) {
		case "say":
			var s said
			err = json.Unmarshal(data, &s)
			words += s.Words
		case "broke":
			var f failure
			err = json.Unmarshal(data, &f)
			return words, errors.Join(err, &Error{Name: f.Name, Why: f.Why})
		case "done":
			return words, nil
		}
		if err != nil {
			return words, err
		}
	}
	return words, errors.Join(ErrBrokeOff, broken)
}
