// SPDX-License-Identifier: Apache-2.0

// Package gatewaytest has a model API that was invented for tests, so that what works with it knows no real one: a
// [gateway.Wire], a scripted model that speaks it, and a client.
//
// A question is lines of text: fields, an empty line and the text. Its answer is JSON, or events of one line each, of
// which one is a word and JSON:
//
//	POST /ask             say {"words":"Seven "}
//	oracle: delphi-2      say {"words":"gates."}
//	flowing: yes          spent {"oracle":"delphi-2","heard":12,"spoken":3}
//	                      done {"because":"all is said"}
//	How many gates?
package gatewaytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-agents/drover/gateway"
)

// Headers of the invented API.
const (
	// agentHeader names the subagent that a question is for, sessionHeader the session.
	agentHeader   = "Oracle-Voice"
	sessionHeader = "Oracle-Sitting"
	retryHeader   = "Oracle-Again"
)

// StatusOverloaded is the invented API's status for having too much to do.
const StatusOverloaded = 599

const (
	streamType = "application/x-oracle"
	answerType = "application/json"
	errorType  = "text/x-oracle-error"
)

// Wire is the invented API. It is free to weigh a question, and to list the oracles. Do not change it.
func Wire() *gateway.Wire { return wire }

var wire = &gateway.Wire{
	Name:        "oracle",
	Provider:    "delphi",
	Authorize:   authorize,
	Route:       route,
	Hello:       hello,
	AgentHeader: agentHeader,
	ReadRequest: readQuestion,
	Stream: &gateway.Stream{
		ContentType: streamType,
		NewMeter:    func() gateway.Meter { return new(meter) },
		ErrorEvent:  func(status int, message string) []byte { return event("broke", failure{errorName(status), message}) },
		EndEvent:    "\n",
		Cut: func(answer []byte, seen int) int {
			if end := bytes.IndexByte(answer[seen:], '\n'); end >= 0 {
				return seen + end + 1
			}
			return -1
		},
		Open:  openEvent,
		Piece: piece,
	},
	ReadAnswer: func(r *gateway.Reading, body []byte) {
		var a whole
		if json.Unmarshal(body, &a) == nil && a.spending != (spending{}) {
			a.read(r)
			r.StopReason, r.Finished = a.Because, true
		}
	},
	Error: func(status int, message string) gateway.Reply {
		return gateway.Reply{ContentType: errorType, Body: []byte(errorName(status) + ": " + message + "\n")}
	},
	ErrorName:   errorName,
	Overloaded:  StatusOverloaded,
	RetryHeader: retryHeader,
	WarmUpAnswer: func(gateway.Route, bool) gateway.Reply {
		return gateway.Reply{ContentType: streamType, Body: event("done", done{"warm-up"})}
	},
	Replay: gateway.Variations{
		RequestHeaders: []string{agentHeader, sessionHeader},
		Tidy:           func(_ any, headers map[string]string) string { return headers[sessionHeader] },
		IDs:            []gateway.Pattern{{Hint: "rite ", Regexp: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\brite ([a-z0-9]{6,})`) })}},
		Texts: []gateway.Pattern{{
			Hint: "The moon is ", Regexp: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(The moon is )\w+`) }), Replace: "${1}$${moon}",
		}},
	},
	CanonicalModel: func(id string) string {
		name, _, _ := strings.Cut(strings.ToLower(id), "@")
		return name
	},
	Prices: func() *gateway.Prices { return prices },
}

// prices are in dollars for a million tokens.
var prices = &gateway.Prices{
	Date: "2026-11-17", Sources: map[string]string{"invented": "this package"},
	Models: map[string]gateway.Price{"delphi-2": {Input: 2, Output: 10, Source: "invented"}},
}

func authorize(req *http.Request, same func(string) bool) (string, bool) {
	phrase, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Oracle ")
	return req.URL.EscapedPath(), same(phrase)
}

func route(method, path string) (gateway.Route, bool) {
	switch {
	case method == http.MethodPost && path == "/ask":
		return gateway.Route{Operation: "ask", Path: path, Metered: true}, true
	case method == http.MethodPost && path == "/weigh":
		return gateway.Route{Operation: "weigh", Path: path}, true
	case method == http.MethodGet && path == "/oracles":
		return gateway.Route{Operation: "oracles", Path: path}, true
	}
	return gateway.Route{}, false
}

func hello(method, path string) *gateway.Reply {
	if method != http.MethodGet || path != "/knock" {
		return nil
	}
	return &gateway.Reply{ContentType: "text/plain", Body: []byte("come in\n")}
}

func errorName(status int) string {
	switch status {
	case http.StatusPaymentRequired:
		return "purse_empty"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusBadRequest:
		return "unclear"
	case StatusOverloaded:
		return "crowded"
	}
	return "silent"
}

// readQuestion reads the fields of a question. One that it does not know may cost anything.
func readQuestion(_ http.Header, body []byte) (gateway.Request, error) {
	var r gateway.Request
	fields, _, found := strings.Cut(string(body), "\n\n")
	if !found {
		return r, errors.New("the question has no text")
	}
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "oracle":
			r.Model = value
		case "flowing":
			r.Stream = value == "yes"
		case "breath":
			r.MaxTokens, _ = strconv.ParseInt(value, 10, 64)
		case "offering":
			r.Tools++
		case "brought":
			r.Result = value
		case "behold":
			r.Remote = append(r.Remote, gateway.RemoteUse{URL: value, What: "a thing to behold elsewhere", Priced: true})
		default:
			r.Surcharges = append(r.Surcharges, "the field "+name)
		}
	}
	return r, nil
}

// The JSON of answers and of their events.
type (
	said struct {
		Words string `json:"words"`
	}
	done struct {
		Because string `json:"because"`
	}
	failure struct {
		Name string `json:"name"`
		Why  string `json:"why"`
	}
	// spending is what was spent so far.
	spending struct {
		Oracle string `json:"oracle"`
		Heard  int64  `json:"heard"`
		Spoken int64  `json:"spoken"`
	}
	whole struct {
		said
		spending
		done
	}
)

func (s spending) read(r *gateway.Reading) {
	r.Model, r.Metered = s.Oracle, true
	r.Tokens.Input, r.Tokens.Output = max(r.Tokens.Input, s.Heard), max(r.Tokens.Output, s.Spoken)
}

func event(word string, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain values only
	}
	return []byte(word + " " + string(data) + "\n")
}

func openEvent(line []byte) (data []byte, wrap func(data []byte) []byte) {
	word, data, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	if !json.Valid(data) {
		return nil, nil
	}
	return data, func(data []byte) []byte { return []byte(string(word) + " " + string(data) + "\n") }
}

func piece(data []byte) (gateway.Piece, bool) {
	var s struct {
		Words *string `json:"words"`
	}
	if json.Unmarshal(data, &s) != nil || s.Words == nil {
		return gateway.Piece{}, false
	}
	return gateway.Piece{Text: *s.Words, With: func(text string) []byte {
		_, data, _ := bytes.Cut(bytes.TrimSpace(event("say", said{text})), []byte(" "))
		return data
	}}, true
}

// A meter reads events.
type meter struct {
	reading gateway.Reading
	line    []byte
}

func (m *meter) Reading() *gateway.Reading { return &m.reading }
func (m *meter) Close()                    { m.take() }

func (m *meter) Feed(p []byte) (boundary int) {
	boundary = -1
	for i, c := range p {
		if m.line = append(m.line, c); c == '\n' {
			m.take()
			boundary = i + 1
		}
	}
	return boundary
}

func (m *meter) take() {
	word, data, _ := bytes.Cut(bytes.TrimSpace(m.line), []byte(" "))
	m.line = m.line[:0]
	switch string(word) {
	case "say":
		m.reading.AddPiece(len(data))
	case "spent":
		var s spending
		if json.Unmarshal(data, &s) == nil {
			s.read(&m.reading)
		}
	case "done":
		var d done
		_ = json.Unmarshal(data, &d)
		m.reading.StopReason, m.reading.Finished = d.Because, true
	case "broke":
		var f failure
		_ = json.Unmarshal(data, &f)
		m.reading.Error, m.reading.Finished = f.Name, true
	}
}
