// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/record"
)

// A Live has the runs of this program watched and controlled by other programs of its user: a [Server], wherever it runs. It opens a
// socket in the folder of the run, which only its owner can reach, and which asks for a key that is in a file beside it: an agent
// that may reach the socket cannot read the key.
//
// It is the Recorder, and the Approver, of the options of an evaluation. Its methods may be called at the same time.
type Live struct {
	o        LiveOptions
	recorder *record.Recorder

	mu        sync.Mutex
	dir       string // of the run under way; empty before it and after it
	socket    *socket
	questions []*liveQuestion
	answered  *Answered
	watchers  map[*watcher]bool
	texts     map[string]*partialText // by subagent
	waiting   []*message
	over      chan struct{} // closed when the run under way ends
	ended     []*socket     // of earlier runs
	runID     string
	closed    bool
}

// LiveOptions configure a [Live].
type LiveOptions struct {
	// Stop ends the run, and Interrupt its turn; Interrupt reports whether one was under way. Nil refuses it.
	Stop      func()
	Interrupt func() bool
	// Approver is asked at the same time as those who watch, and the first answer counts. When another answer came first the cause of
	// its context is a [gate.AnsweredElsewhere]. Nil means that only those who watch are asked.
	Approver gate.Approver
	// Messages means that the program sends the messages of [Live.Next].
	Messages bool
	// Logger receives failures that no caller receives. Nil discards them.
	Logger *slog.Logger
}

// Answered is the end of a question.
type Answered struct {
	Question string `json:"question"`
	// By is who has answered: "page" for those who watch, "terminal" for the Approver of the program, "clock" for the end of its time.
	By      string        `json:"by"`
	Verdict event.Verdict `json:"verdict"`
}

// A Question is a tool call that waits for an answer.
type Question struct {
	ID     string          `json:"id"`
	Run    string          `json:"run"`
	Call   event.CallID    `json:"call"`
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Reason string          `json:"reason,omitzero"`
	Policy string          `json:"policy,omitzero"`
	Risk   string          `json:"risk,omitzero"`
	Asked  time.Time       `json:"asked"`
	// Until is when the call is denied without an answer.
	Until time.Time `json:"until,omitzero"`
}

// An Answer is what a person says to a [Question].
type Answer struct {
	Verdict event.Verdict `json:"verdict"`
	// Remember is "once", "input" for later calls of the tool with the same input, or "tool" for all calls of the tool in this run.
	// Empty means once.
	Remember string `json:"remember,omitzero"`
	// Reason is what the model reads of a denial.
	Reason string `json:"reason,omitzero"`
	// Input replaces the input of an allowed call. The gate judges it again.
	Input json.RawMessage `json:"input,omitempty"`
}

type liveQuestion struct {
	Question
	answer chan Answer // has room for one
	taken  bool
}

// A message waits to be sent. begun receives the id of its run.
type message struct {
	text  string
	taken bool
	begun chan string
}

// NewLive returns a Live for runs that r keeps. It must be closed.
func NewLive(r *record.Recorder, o *LiveOptions) *Live {
	l := &Live{recorder: r, watchers: map[*watcher]bool{}, texts: map[string]*partialText{}}
	if o != nil {
		l.o = *o
	}
	l.o.Logger = safelog.Logger(l.o.Logger)
	return l
}

// Begin implements [drover.Recorder]. A run that cannot be controlled goes on without that, which is logged.
func (l *Live) Begin(ctx context.Context, start drover.RunStart) (drover.RunRecord, error) {
	kept, err := l.recorder.Begin(ctx, start)
	if err != nil {
		return nil, err
	}
	dir := ""
	if at, ok := kept.(interface{ Path() string }); ok {
		dir = at.Path()
	}
	s, err := openSocket(dir, l.handler())
	if err != nil {
		l.o.Logger.WarnContext(ctx, "server: the run cannot be watched live or controlled from elsewhere", "folder", dir, "error", err)
	}
	l.mu.Lock()
	l.socket, l.dir, l.runID, l.over = s, dir, start.RunID, make(chan struct{})
	for _, m := range l.waiting {
		if m.taken {
			m.begun <- start.RunID
		}
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(m *message) bool { return m.taken })
	l.mu.Unlock()
	return liveRecord{kept, l}, nil
}

type liveRecord struct {
	drover.RunRecord
	live *Live
}

func (r liveRecord) End(end drover.RunEnd) error {
	err := r.RunRecord.End(end)
	r.live.endRun()
	return err
}

// endRun closes the socket. Who watches reads the rest of the run in its files.
func (l *Live) endRun() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		close(l.over)
	}
	if l.socket != nil {
		l.socket.close()
		l.ended = append(l.ended, l.socket)
	}
	l.socket, l.over, l.dir, l.runID = nil, nil, "", ""
	l.questions, l.answered = nil, nil
	clear(l.texts)
}

// Close refuses the messages that wait, and those that come from now on. The conversation of the runs must be closed before it: until
// Close, others wait to continue it.
func (l *Live) Close() (err error) {
	l.endRun()
	l.mu.Lock()
	l.closed = true
	for _, m := range l.waiting {
		close(m.begun)
	}
	l.waiting = nil
	ended := l.ended
	l.ended = nil
	l.mu.Unlock()
	for _, s := range ended {
		err = errors.Join(err, s.remove(), s.wait())
	}
	return err
}

// Next takes the next message that is to be sent in the conversation, if there is one. The run that is begun next is that of the
// message. Without one, later messages are refused until the next run begins.
func (l *Live) Next() (text string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.waiting {
		if !m.taken {
			m.taken = true
			return m.text, true
		}
	}
	l.closed = true
	return "", false
}

// Approve implements [gate.Approver].
func (l *Live) Approve(ctx context.Context, q gate.Question) (gate.Answer, error) {
	asked := l.ask(ctx, q)
	type reply struct {
		answer gate.Answer
		err    error
	}
	local := make(chan reply, 1)
	ctx, answered := context.WithCancelCause(ctx)
	defer answered(nil)
	if l.o.Approver != nil {
		go func() {
			a, err := l.o.Approver.Approve(ctx, q)
			local <- reply{a, err}
		}()
	}
	select {
	case r := <-local:
		if !l.settle(asked, Answered{asked.ID, "terminal", r.answer.Verdict}) { // an answer came at the same time, and was acknowledged
			return (<-asked.answer).gate(), nil
		}
		return r.answer, r.err
	case a := <-asked.answer:
		answered(gate.AnsweredElsewhere{Where: "on the page", Verdict: a.Verdict})
		if l.o.Approver != nil {
			<-local // it shows that there is an answer
		}
		return a.gate(), nil
	case <-ctx.Done():
		if !l.settle(asked, Answered{asked.ID, "clock", event.Deny}) {
			return (<-asked.answer).gate(), nil
		}
		return gate.Answer{}, context.Cause(ctx)
	}
}

func (a Answer) gate() gate.Answer {
	scope := map[string]gate.Scope{"input": gate.SameInput, "tool": gate.SameTool}[a.Remember]
	return gate.Answer{Verdict: a.Verdict, Reason: a.Reason, Input: a.Input, Remember: scope}
}

func (a Answer) check() error {
	if !slices.Contains([]string{"", "once", "input", "tool"}, a.Remember) {
		return advice.Wrap(fmt.Errorf("remember is %q", a.Remember), `send "once", "input" or "tool"`)
	}
	if a.Verdict != event.Allow && a.Verdict != event.Deny {
		return advice.Wrap(errors.New("the verdict is ask"), `send "allow" or "deny"`)
	}
	return nil
}

func (l *Live) ask(ctx context.Context, q gate.Question) *liveQuestion {
	until, _ := ctx.Deadline()
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := &liveQuestion{answer: make(chan Answer, 1), Question: Question{
		ID: ident.NewUUID(), Run: l.runID, Call: q.Call.ID, Tool: q.Call.Name, Input: l.recorder.RedactJSON(q.Call.Input),
		Reason: l.recorder.Redact(q.Reason), Policy: q.Policy, Risk: q.Risk.String(), Asked: time.Now(), Until: until,
	}}
	l.questions = append(l.questions, asked)
	l.wakeLocked()
	return asked
}

// settle ends a question that nobody has answered, and reports whether that is so.
func (l *Live) settle(q *liveQuestion, how Answered) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.taken {
		return false
	}
	l.takeLocked(q, how)
	return true
}

func (l *Live) takeLocked(q *liveQuestion, how Answered) {
	q.taken, l.answered = true, &how
	l.questions = slices.DeleteFunc(l.questions, func(other *liveQuestion) bool { return other == q })
	l.wakeLocked()
}

func (l *Live) wakeLocked() {
	for w := range l.watchers {
		w.wake()
	}
}

// Show takes an event of the run, as [drover.Run.Events] yields it. It passes parts of texts on to those who watch.
func (l *Live) Show(e event.Event) {
	part, is := e.Payload.(event.TextDelta)
	l.mu.Lock()
	defer l.mu.Unlock()
	of := string(e.ParentToolUseID)
	if !is {
		if e.Kind == event.KindText {
			delete(l.texts, of)
		}
		return
	}
	if l.dir == "" || len(l.watchers) == 0 && l.texts[of] == nil {
		return
	}
	text := l.texts[of]
	if text == nil {
		text = &partialText{}
		l.texts[of] = text
	}
	delta := text.add(part.Delta, l.recorder.Redact)
	if delta == "" {
		return
	}
	e.Payload = event.TextDelta{Delta: delta}
	frame, err := e.MarshalJSON()
	if err != nil {
		return // the whole text is an entry of the log
	}
	for w := range l.watchers {
		w.part(frame)
	}
}

// A partialText is a text that is being written. It is passed on in whole words, so that a secret in it is seen whole.
type partialText struct {
	raw  strings.Builder
	sent string
}

// maxPartial is the longest text that is shown while it is written. The rest of a longer one is shown with the whole text.
const maxPartial = 64 << 10

func (t *partialText) add(delta string, redact func(string) string) string {
	if t.raw.Len() > maxPartial {
		return ""
	}
	t.raw.WriteString(delta)
	whole := t.raw.String()
	whole = redact(whole[:strings.LastIndexAny(whole, " \t\n")+1])
	more, extends := strings.CutPrefix(whole, t.sent)
	if !extends || more == "" {
		return ""
	}
	t.sent = whole
	return more
}

// A liveState is what a watcher is told at once, and again when it changes.
type liveState struct {
	State     record.State `json:"state"`
	Control   bool         `json:"controllable"`
	Questions []Question   `json:"questions"`
	Answered  *Answered    `json:"answered,omitempty"`
}

func (l *Live) state() liveState {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := liveState{State: record.Running, Control: true, Questions: []Question{}, Answered: l.answered}
	for _, q := range l.questions {
		s.Questions = append(s.Questions, q.Question)
	}
	return s
}

// A watcher receives the parts of texts, and is woken when the state has changed. One that is slow loses parts, never a state.
type watcher struct {
	mu    sync.Mutex
	parts [][]byte
	woken chan struct{}
}

const maxParts = 512

func (w *watcher) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *watcher) part(frame []byte) {
	w.mu.Lock()
	if len(w.parts) < maxParts {
		w.parts = append(w.parts, frame)
	}
	w.mu.Unlock()
	w.wake()
}

func (w *watcher) take() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := w.parts
	w.parts = nil
	return parts
}

// handler serves the run under way to programs that have the key.
func (l *Live) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", l.serveState)
	mux.HandleFunc("POST /questions/{question}", serving(l.serveAnswer))
	mux.HandleFunc("POST /interrupt", serving(func(http.ResponseWriter, *http.Request) error {
		if l.o.Interrupt == nil || !l.o.Interrupt() {
			return problem(http.StatusConflict, "no turn is under way that can be interrupted", "stop the run instead")
		}
		return nil
	}))
	mux.HandleFunc("POST /stop", serving(func(http.ResponseWriter, *http.Request) error {
		if l.o.Stop == nil {
			return problem(http.StatusConflict, "the program of this run does not let it be stopped from elsewhere", "stop it where it was started")
		}
		l.o.Stop()
		return nil
	}))
	mux.HandleFunc("POST /messages", serving(l.serveMessage))
	mux.HandleFunc("/", serving(func(_ http.ResponseWriter, r *http.Request) error {
		return problem(http.StatusNotFound, "the program of a run has no operation "+r.Method+" "+r.URL.Path, "use a server of the same version")
	}))
	return mux
}

func (l *Live) serveState(w http.ResponseWriter, r *http.Request) {
	stream := newStream(w)
	own := &watcher{woken: make(chan struct{}, 1)}
	l.mu.Lock()
	l.watchers[own] = true
	over := l.over
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.watchers, own)
		l.mu.Unlock()
	}()
	once, quiet := r.URL.Query().Has("once"), r.URL.Query().Has("quiet")
	for last := ""; ; {
		state, err := json.Marshal(l.state())
		if err == nil && string(state) != last {
			last = string(state)
			err = stream.send("state", "", state)
		}
		for _, part := range own.take() {
			if !quiet && err == nil {
				err = stream.send("part", "", part)
			}
		}
		if err != nil || once || stream.flush() != nil {
			return
		}
		select {
		case <-own.woken:
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (l *Live) serveAnswer(w http.ResponseWriter, r *http.Request) error {
	var a Answer
	if err := readJSON(w, r, &a); err != nil {
		return err
	}
	if err := a.check(); err != nil {
		return problem(http.StatusUnprocessableEntity, err.Error(), advice.Of(err))
	}
	id := r.PathValue("question")
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.questions, func(q *liveQuestion) bool { return q.ID == id })
	if i < 0 {
		text := "the question is not open"
		if l.answered != nil && l.answered.Question == id {
			text = "the question was " + gate.AnsweredElsewhere{Where: "by the " + l.answered.By, Verdict: l.answered.Verdict}.Error()
		}
		return problem(http.StatusConflict, text, "look at the run: the decision is among its events")
	}
	q := l.questions[i]
	q.answer <- a // it has room: nobody else takes it
	l.takeLocked(q, Answered{q.ID, "page", a.Verdict})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// serveMessage waits until the message is sent, and answers with the id of its run.
func (l *Live) serveMessage(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Text string `json:"text"`
	}
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	m := &message{text: body.Text, begun: make(chan string, 1)}
	l.mu.Lock()
	refused := !l.o.Messages || l.closed
	if !refused {
		l.waiting = append(l.waiting, m)
	}
	l.mu.Unlock()
	if refused {
		return problem(http.StatusConflict, "the run takes no more messages", "continue it when it has ended")
	}
	select {
	case run, ok := <-m.begun:
		if !ok {
			return problem(http.StatusConflict, "the run ended before the message was sent", "continue it")
		}
		return writeJSON(w, http.StatusCreated, map[string]string{"run": run})
	case <-r.Context().Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = slices.DeleteFunc(l.waiting, func(other *message) bool { return other == m && !m.taken })
		return context.Cause(r.Context())
	}
}

// The files of a run's socket.
const (
	socketFile = "control.sock"
	keyFile    = "control.key"
)

// maxSocketPath is the longest path of a socket on the systems there are.
const maxSocketPath = 100

// removeStale removes the files of a socket whose program is gone.
func removeStale(dir string) {
	_ = os.Remove(filepath.Join(dir, socketFile))
	_ = os.Remove(filepath.Join(dir, keyFile))
}
