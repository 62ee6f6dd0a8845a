// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/session"
)

// recordingKind is the kind of the events that stand for the exchanges of a recording.
const recordingKind event.Kind = "gateway:exchange"

// maxExchange bounds a line of a recording. Tests lower it.
var maxExchange = 256 << 20

// A recordingLine is a line of a recording of [gateway.Record]: an exchange.
type recordingLine struct {
	Seq     int   `json:"seq"`
	AtMS    int64 `json:"at_ms"`
	Request struct {
		Method, Path string
		Headers      map[string]string
		Body         struct{ JSON json.RawMessage }
	}
	Response struct {
		MS      int64
		Status  int
		Headers map[string]string
		Error   string
		Chunks  []struct {
			MS     int64
			Text   string
			Base64 []byte
		}
	}
}

// openRecording opens a recording of [gateway.Record] as a run. Each exchange is an event, with what the model was asked and has
// answered: the prompt, texts, tool calls with their results, and tokens. What only Drover knows, such as decisions, is not there.
func openRecording(path string) (_ *Run, err error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	exchangeLines := lines.NewReader(f, maxExchange)
	head, err := exchangeLines.Next()
	var header struct {
		Version int             `json:"drover_recording"`
		Date    time.Time       `json:"date"`
		Wire    string          `json:"wire"`
		Folders gateway.Folders `json:"folders"`
	}
	if err == nil {
		err = json.Unmarshal(head, &header)
	}
	if err != nil {
		return nil, fmt.Errorf("record: %s: the header: %w", path, err)
	}
	if header.Version > 1 {
		return nil, advice.Wrap(fmt.Errorf("record: %s has version %d, this program reads up to 1", path, header.Version), "use a newer version of Drover")
	}
	var exchanges []exchange
	for number := 2; ; number++ {
		line, err := exchangeLines.Next()
		if errors.Is(err, io.EOF) || err == nil && exchangeLines.Last() { // a last line without an end is of a program that was killed
			break
		}
		var x recordingLine
		if err == nil {
			err = json.Unmarshal(line, &x)
		}
		if err != nil {
			return nil, fmt.Errorf("record: %s: line %d: %w", path, number, err)
		}
		exchanges = append(exchanges, readExchange(wireOf(header.Wire), &x))
	}
	slices.SortStableFunc(exchanges, func(a, b exchange) int { return cmp.Compare(a.seq, b.seq) }) // they are written in the order in which they ended
	r := &Run{Path: path, State: Lost}
	id := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	r.Info = Info{Format: Format, ID: id, Session: id, Began: header.Date, Prompt: "recording", Folder: header.Folders.Dir}
	log := recordedLog{run: r, open: map[event.CallID]string{}}
	quoted, err := plainjson.Marshal(id)
	if err != nil {
		return nil, fmt.Errorf("record: %s: %w", path, err)
	}
	fmt.Fprintf(&log.text, `{"drover":"session-log","version":%d,"id":%s,"created":%q}`+"\n", session.EncodingVersion, quoted, header.Date.Format(time.RFC3339Nano))
	tools := slices.ContainsFunc(exchanges, func(x exchange) bool { return len(x.tools) > 0 })
	for _, x := range exchanges {
		x.side = x.side || tools && len(x.tools) == 0
		if err := log.exchange(x); err != nil {
			return nil, err
		}
	}
	r.files = recordedFiles{oldFiles{traffic: path}, log.text.Bytes()}
	return r, nil
}

// wireOf is the wire that a recording names, or nil for one that did not come with Drover.
func wireOf(name string) *gateway.Wire {
	for _, w := range []*gateway.Wire{gateway.WireAnthropic, gateway.WireBedrock} {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// An exchange is what a line of a recording tells of a run.
type exchange struct {
	seq     int
	at, end time.Duration // since the recording began
	summary map[string]any

	side    bool           // it is beside the conversations of agents, as for a title
	agent   string         // the subagent
	tools   []string       // those that the model was offered
	prompt  string         // the last text that the user sent
	results []messageBlock // of tools, in the last message
	answer  []messageBlock
	stop    string             // why the model has stopped
	call    *gateway.ModelCall // nil if the exchange has no answer of a model
}

// A messageBlock is a content block of the Messages API.
type messageBlock struct {
	Type      string
	Text      string
	ID        event.CallID
	Name      string
	Input     json.RawMessage
	ToolUseID event.CallID `json:"tool_use_id"`
	Content   json.RawMessage
	IsError   bool `json:"is_error"`

	parts, partial []byte // of Text and Input
}

// readExchange reads a line, as far as the wire is known and its messages are those of the Messages API.
func readExchange(w *gateway.Wire, line *recordingLine) exchange {
	req, resp := &line.Request, &line.Response
	x := exchange{seq: line.Seq, at: time.Duration(line.AtMS) * time.Millisecond, side: true}
	x.end = x.at + time.Duration(resp.MS)*time.Millisecond
	var answer []byte
	for _, c := range resp.Chunks {
		answer = append(append(answer, c.Text...), c.Base64...)
		x.end = max(x.end, x.at+time.Duration(c.MS)*time.Millisecond)
	}
	var body struct {
		Model    string
		Tools    []struct{ Name string }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(req.Body.JSON, &body) // a body of another form has none of it
	x.summary = map[string]any{
		"seq": line.Seq, "method": req.Method, "path": req.Path, "model": body.Model, "status": resp.Status, "ms": resp.MS, "error": resp.Error,
	}
	if w == nil {
		return x
	}
	route, known := w.Route(req.Method, req.Path)
	if !known || !route.Metered {
		return x
	}
	x.side, x.agent = false, req.Headers[w.AgentHeader]
	for _, t := range body.Tools {
		x.tools = append(x.tools, t.Name)
	}
	for _, m := range body.Messages {
		if m.Role != "user" {
			continue
		}
		x.results = nil
		for _, b := range blocksOf(m.Content) {
			switch b.Type {
			case "text":
				x.prompt = b.Text
			case "tool_result":
				x.results = append(x.results, b)
			}
		}
	}
	var reading *gateway.Reading
	x.answer, reading = readAnswer(w, resp.Headers["Content-Type"], answer)
	model := cmp.Or(reading.Model, body.Model, route.Model)
	if w.CanonicalModel != nil {
		model = w.CanonicalModel(model)
	}
	x.stop = reading.StopReason
	x.call = &gateway.ModelCall{
		Operation: route.Operation, Model: model, Provider: w.Provider, Agent: cmp.Or(x.agent, gateway.MainAgent), Status: resp.Status, Tokens: reading.Tokens,
		Unpriced: true, Attempts: 1, DurationMS: float64((x.end - x.at).Milliseconds()), StopReason: reading.StopReason, Error: cmp.Or(reading.Error, resp.Error),
	}
	if w.Prices != nil {
		if price, ok := w.Prices().Of(model); ok {
			x.call.CostUSD, x.call.Unpriced = price.CostUSD(reading.Tokens), false
		}
	}
	return x
}

// blocksOf are the blocks of a message, which may be a text alone.
func blocksOf(content json.RawMessage) (blocks []messageBlock) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []messageBlock{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(content, &blocks)
	return blocks
}

// readAnswer reads the blocks of an answer, and what it reports about itself.
func readAnswer(w *gateway.Wire, contentType string, answer []byte) ([]messageBlock, *gateway.Reading) {
	kind, _, _ := mime.ParseMediaType(contentType)
	if w.Stream == nil || kind != w.Stream.ContentType {
		var message struct{ Content json.RawMessage }
		_ = json.Unmarshal(answer, &message) // an error has none
		reading := &gateway.Reading{}
		w.ReadAnswer(reading, answer)
		return blocksOf(message.Content), reading
	}
	meter := w.Stream.NewMeter()
	meter.Feed(answer)
	meter.Close()
	blocks := map[int]*messageBlock{}
	for len(answer) > 0 {
		n := w.Stream.Cut(answer, 0)
		if n < 0 {
			n = len(answer)
		}
		var e struct {
			Type  string
			Index int
			Block *messageBlock `json:"content_block"`
			Delta struct {
				Text    string
				Partial string `json:"partial_json"`
			}
		}
		if data, _ := w.Stream.Open(answer[:n]); json.Unmarshal(data, &e) == nil {
			if b := blocks[e.Index]; e.Type == "content_block_start" && e.Block != nil {
				blocks[e.Index] = e.Block
			} else if e.Type == "content_block_delta" && b != nil {
				b.parts = append(b.parts, e.Delta.Text...)
				b.partial = append(b.partial, e.Delta.Partial...)
			}
		}
		answer = answer[n:]
	}
	var all []messageBlock
	for _, index := range slices.Sorted(maps.Keys(blocks)) {
		b := blocks[index]
		b.Text += string(b.parts)
		if json.Valid(b.partial) {
			b.Input = b.partial
		}
		all = append(all, *b)
	}
	return all, meter.Reading()
}

// A recordedLog is the log that is made of a recording.
type recordedLog struct {
	run  *Run
	text bytes.Buffer
	pos  int64
	open map[event.CallID]string // calls without a result yet, with the names of their tools
}

func (l *recordedLog) add(at time.Duration, agent string, payload event.Payload) error {
	l.pos++
	e := event.New(payload)
	e.Time, e.AgentID = l.run.Began.Add(at), agent
	record, err := session.Entry{Pos: l.pos, Event: e}.Record()
	if err == nil {
		l.text.Write(append(record.Data, '\n'))
	}
	return err
}

// exchange adds an exchange. The last answer of the main conversation is that of the run.
func (l *recordedLog) exchange(x exchange) error {
	summary, err := plainjson.Marshal(x.summary)
	if err != nil {
		return err
	}
	errs := []error{l.add(x.at, "", event.Extension{Kind: recordingKind, Data: summary})}
	if x.call == nil {
		return errors.Join(errs...)
	}
	main := !x.side && x.agent == ""
	if main && l.run.Model == "" {
		l.run.Model = x.call.Model
		errs = append(errs, l.add(x.at, "", event.Init{Model: x.call.Model, Dir: l.run.Folder, Tools: x.tools}),
			l.add(x.at, "", session.PromptRendered{Name: l.run.Prompt, Text: x.prompt}))
	}
	for _, b := range x.results {
		name, open := l.open[b.ToolUseID]
		if !open {
			continue
		}
		delete(l.open, b.ToolUseID)
		result := event.ToolResult{ID: b.ToolUseID, Name: name, Status: event.ToolSuccess, Output: b.Content}
		if b.IsError {
			result.Status, result.Failure = event.ToolError, &event.ToolFailure{Message: textOf(b.Content)}
		}
		errs = append(errs, l.add(x.at, x.agent, result))
	}
	text := ""
	for _, b := range x.answer {
		switch {
		case x.side:
		case b.Type == "text" && b.Text != "":
			text = b.Text
			errs = append(errs, l.add(x.end, x.agent, event.Text{Content: b.Text}))
		case b.Type == "tool_use":
			l.open[b.ID] = b.Name
			errs = append(errs, l.add(x.end, x.agent, event.ToolCall{ID: b.ID, Name: b.Name, Input: b.Input, AgentID: x.agent}))
		}
	}
	errs = append(errs, l.add(x.end, "", *x.call))
	if main {
		l.run.State, l.run.End = Lost, nil
		if x.stop == "end_turn" {
			l.run.State = Ended
			l.run.End = &End{Ended: l.run.Began.Add(x.end), Status: event.DoneSuccess, Text: text, Duration: x.end, Entries: l.pos}
		}
	}
	return errors.Join(errs...)
}

// textOf is the text of the content of a result.
func textOf(content json.RawMessage) string {
	var texts []string
	for _, b := range blocksOf(content) {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n")
}

// recordedFiles are those of a recording: the recording itself, and the log that was made of it.
type recordedFiles struct {
	oldFiles
	log []byte
}

func (f recordedFiles) Open(name string) (fs.File, error) {
	if name == eventsFile {
		return memoryFile{bytes.NewReader(f.log)}, nil
	}
	return f.oldFiles.Open(name)
}

// A memoryFile is a file that is read only.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (memoryFile) Close() error               { return nil }
