// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"errors"

	"github.com/drover-agents/drover/internal/jsonscan"
)

// An Ask is what an agent wants of a model, as it stands in the request.
type Ask struct {
	// Model and Agent are as in [ModelCall].
	Model, Agent string
	// Effort is how hard the model shall work. Empty means that the request does not say.
	Effort string
	// Thinking is "adaptive", "enabled" or "disabled". Empty means that the request does not say.
	Thinking string
	// MaxTokens bounds the answer.
	MaxTokens int64
	// Tools is how many tools the model is offered.
	Tools int
}

// inspect has the owner of the run look at a call before it goes out.
func (c *call) inspect() error {
	if c.run.o.Inspect == nil || !c.target.op.metered() {
		return nil
	}
	return c.run.o.Inspect(c.asked)
}

// asked is what a body says.
type asked struct {
	Ask
	model      string
	stream     bool
	result     string      // a tool's result that the model has not answered yet, by its id
	fallbacks  []string    // models that may answer in place of it; an empty name is one that is not known
	surcharges []string    // fields that change the price
	remote     []remoteUse // what the API would reach for
}

var errBody = errors.New("the body is not one JSON object with one model")

// readBody looks for exactly spelled fields. A second model, or one in another spelling, is an error:
// upstreams may see another one than we do.
func readBody(body []byte) (asked, error) {
	var a asked
	var s jsonscan.Scanner
	s.Reset(body)
	if s.Kind() != jsonscan.Object {
		return a, errBody
	}
	s.Object()
	models, streams := 0, 0
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		switch string(key) {
		case "model":
			text, _, _ := s.Decode(nil)
			a.model = string(text)
			models++
		case "fallbacks":
			a.fallbacks = append(a.fallbacks, modelsIn(&s)...)
		case "stream":
			a.stream, _ = s.Bool()
			streams++
		case "output_config":
			a.Effort = wordIn(&s, "effort")
		case "thinking":
			a.Thinking = wordIn(&s, "type")
		case "max_tokens":
			most, _ := s.Float()
			a.MaxTokens = max(a.MaxTokens, int64(min(most, maxTokens))) // of several, whichever counts
		case "tools":
			if !s.Array() {
				continue
			}
			for s.Elem() {
				a.tool(&s)
			}
		default:
			if a.field(&s, string(key)) {
				continue
			}
			if bytes.EqualFold(key, []byte("model")) { // some read that, too
				models++
			}
			s.Skip()
		}
	}
	if s.End() != nil || models > 1 || models == 1 && a.model == "" {
		return a, errBody
	}
	a.stream = a.stream && streams == 1 // of several, the one that costs more if its answer is left
	return a, nil
}

// wordIn is the string under a key of the object that comes next, or "".
func wordIn(s *jsonscan.Scanner, name string) (word string) {
	if s.Kind() != jsonscan.Object {
		s.Skip()
		return ""
	}
	s.Object()
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		if string(key) != name {
			s.Skip()
			continue
		}
		text, _, _ := s.Decode(nil)
		word = clip(string(text))
	}
	return word
}

// modelsIn are the models of the list of objects that comes next. Anything else is one model that is not known.
func modelsIn(s *jsonscan.Scanner) (models []string) {
	if s.Kind() != jsonscan.Array {
		s.Skip()
		return []string{""}
	}
	s.Array()
	for s.Elem() {
		models = append(models, wordIn(s, "model"))
	}
	return models
}
