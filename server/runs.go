// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/record/index"
)

type tradeRequest struct {
	Token string `json:"token"`
}

type tradeAnswer struct {
	// Secret is for the header Drover-Secret of every other request.
	Secret   string `json:"secret"`
	ReadOnly bool   `json:"readOnly"`
}

func (s *Server) serveTrade(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Origin") == "" {
		return problem(http.StatusForbidden, "only the page trades tokens", "send Authorization: Bearer with the token instead")
	}
	var t tradeRequest
	if err := readJSON(w, r, &t); err != nil {
		return err
	}
	earlier := ""
	if c, err := r.Cookie(cookieName(r)); err == nil {
		earlier = c.Value
	}
	b, err := s.keys.trade(t.Token, earlier)
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: b.cookie, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	return writeJSON(w, http.StatusOK, tradeAnswer{b.secret, b.access == viewer})
}

// About is what a server is.
type About struct {
	Version  string `json:"version,omitzero"`
	ReadOnly bool   `json:"readOnly"`
	// Start means that runs can be started here.
	Start bool      `json:"start"`
	Now   time.Time `json:"now"`
}

func (s *Server) serveAbout(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, About{s.o.Version, s.keys.check(r, owner) != nil, s.o.Starter != nil, time.Now()})
}

// A RunList is a list of runs.
type RunList struct {
	Runs []Summary `json:"runs"`
	// Hours are the last 24 hours in which runs began, with their cost.
	Hours []HourCost `json:"hours"`
	Now   time.Time  `json:"now"`
}

// An HourCost is what the runs cost that began in an hour.
type HourCost struct {
	Hour time.Time `json:"hour"`
	USD  float64   `json:"usd"`
}

const (
	defaultList = 200
	maxList     = 2000
)

func (s *Server) serveRuns(w http.ResponseWriter, r *http.Request) error {
	f, err := filterOf(r)
	if err != nil {
		return err
	}
	if err := s.index.Sync(r.Context()); err != nil {
		return err
	}
	rows, err := s.index.Runs(r.Context(), f)
	if err != nil {
		return err
	}
	now := time.Now()
	list := RunList{Runs: []Summary{}, Hours: []HourCost{}, Now: now}
	waiting, err := s.waiting(r.Context(), f)
	if err != nil {
		return err
	}
	list.Runs = append(list.Runs, waiting...)
	for _, row := range rows[:min(len(rows), f.Limit-len(waiting))] {
		list.Runs = append(list.Runs, s.summary(r.Context(), row))
	}
	first := now.UTC().Truncate(time.Hour).Add(-23 * time.Hour)
	recent, err := s.index.Runs(r.Context(), index.Filter{Since: first})
	if err != nil {
		return err
	}
	usd := map[time.Time]float64{}
	for _, row := range recent {
		if row.CostUSD != nil {
			usd[row.Began.UTC().Truncate(time.Hour)] += *row.CostUSD
		}
	}
	for h := first; !h.After(now); h = h.Add(time.Hour) {
		if usd[h] > 0 {
			list.Hours = append(list.Hours, HourCost{h, usd[h]})
		}
	}
	return writeJSON(w, http.StatusOK, list)
}

func filterOf(r *http.Request) (f index.Filter, err error) {
	q := r.URL.Query()
	f = index.Filter{Agent: q.Get("agent"), Folder: q.Get("folder"), State: record.State(q.Get("state")), Words: strings.Fields(q.Get("q")), Limit: defaultList}
	for name := range q {
		switch name {
		case "agent", "folder", "q":
		case "state":
			switch f.State {
			case record.Running, record.Ended, record.Lost, index.Unreadable, Queued, "":
			default:
				err = fmt.Errorf("state is %q", f.State)
			}
		case "failed":
			f.Failed, err = strconv.ParseBool(q.Get(name))
		case "since":
			f.Since, err = time.Parse(time.RFC3339, q.Get(name))
		case "limit":
			if f.Limit, err = strconv.Atoi(q.Get(name)); err == nil && (f.Limit < 1 || f.Limit > maxList) {
				err = fmt.Errorf("limit is %d", f.Limit)
			}
		default:
			err = fmt.Errorf("there is no parameter %q", name)
		}
		if err != nil {
			return f, problem(http.StatusBadRequest, "the query cannot be understood: "+err.Error(), "GET /v1/openapi.json describes the parameters")
		}
	}
	return f, nil
}

// summary is a row of the index, with what is asked at this moment.
func (s *Server) summary(ctx context.Context, row index.Row) Summary {
	sum := Summary{
		ID: row.ID, Title: cmp.Or(row.Words, row.Name, row.Prompt, row.ID), Name: row.Name, Agent: row.Agent, PromptName: row.Prompt,
		Folder: row.Folder, Model: row.Model, State: row.State, Status: row.Status, Kind: row.Kind, Error: row.Error, Problem: row.Problem,
		Began: row.Began, Ended: row.Ended, DurationMS: row.Duration.Milliseconds(), Turns: row.Turns, Denied: row.Denied, CostUSD: row.CostUSD,
		InputTokens: row.InputTokens, OutputTokens: row.OutputTokens, Isolation: row.Isolation, AgentVersion: row.AgentVersion,
		DroverVersion: row.DroverVersion, Resumes: row.Resumes, Questions: []Question{},
	}
	sum.Resumable = s.o.Starter != nil && row.State != record.Running && row.State != index.Unreadable
	if row.State == record.Running {
		s.askState(ctx, &sum, row.Path)
	}
	return sum
}

// askState adds what the program of a run says of it.
func (s *Server) askState(ctx context.Context, sum *Summary, dir string) {
	state, err := liveStateOf(ctx, dir)
	if err != nil { // it has no socket, or has just ended
		return
	}
	sum.Controllable, sum.Questions = state.Control, state.Questions
}

// find opens the run that a request names, and its row.
func (s *Server) find(r *http.Request) (*record.Run, error) {
	waiting, err := s.queued(r.Context(), r.PathValue("run"))
	if waiting != nil {
		err = errWaits
		if waiting.State != Queued {
			err = problem(http.StatusConflict, "the run has ended before it began: "+waiting.Error, "start another one")
		}
	}
	if err != nil {
		return nil, err
	}
	return s.findRun(s.keptID(r.Context(), r.PathValue("run")))
}

func (s *Server) findRun(id string) (*record.Run, error) {
	if strings.HasPrefix(id, bundlePrefix) {
		return s.bundle(id)
	}
	run, err := s.o.Store.Find(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem(http.StatusNotFound, "there is no run "+id, "GET /v1/runs lists them")
	}
	if err != nil {
		return nil, problem(http.StatusBadRequest, err.Error(), advice.Of(err))
	}
	return run, nil
}

func (s *Server) serveRun(w http.ResponseWriter, r *http.Request) error {
	if waiting, err := s.queued(r.Context(), r.PathValue("run")); waiting != nil || err != nil {
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, waiting.whole())
	}
	run, err := s.find(r)
	if err != nil {
		return err
	}
	return s.writeRun(w, r, http.StatusOK, run)
}

func (s *Server) writeRun(w http.ResponseWriter, r *http.Request, status int, run *record.Run) error {
	whole, err := s.describe(r.Context(), run)
	if err != nil {
		return err
	}
	if status == http.StatusCreated {
		w.Header().Set("Location", "/v1/runs/"+whole.ID)
	}
	return writeJSON(w, status, whole)
}

// describe is all that is known of a run.
func (s *Server) describe(ctx context.Context, run *record.Run) (Run, error) {
	row := index.Row{
		Path: run.Path, ID: run.ID, Agent: run.Agent, Name: run.Name, Prompt: run.Prompt, Folder: run.Folder, Model: run.Model, State: run.State,
		Began: run.Began, Resumes: run.Resumes, DroverVersion: run.Versions["drover"],
	}
	bundle := s.o.Store.Folder(run) == ""
	if !bundle {
		if err := s.index.Sync(ctx); err != nil {
			return Run{}, err
		}
		rows, err := s.index.Prefix(ctx, run.ID)
		if err != nil {
			return Run{}, err
		}
		for _, known := range rows {
			if known.Path == run.Path {
				row = known
			}
		}
		if run.State == record.Running && (row.State == record.Ended || row.State == record.Lost) { // since it was opened
			if run, err = s.o.Store.Run(s.o.Store.Folder(run)); err != nil {
				return Run{}, err
			}
		}
	}
	whole := Run{Summary: s.summary(ctx, row), Info: RunInfo{run.Settings, run.Command, run.Versions}, Deadline: run.Deadline, Damage: run.Damage()}
	if bundle {
		whole.ID, whole.Resumable = s.bundleID(run), false
		details, err := run.Details()
		if err != nil {
			whole.Damage = append(whole.Damage, err.Error())
		}
		if details != nil {
			whole.Title, whole.AgentVersion, whole.Isolation = cmp.Or(safetext.FirstWords(details.Prompt, 200), whole.Title), details.AgentVersion, details.Isolation
		}
	}
	if e := run.End; e != nil {
		whole.End = &RunEnd{e.Text, e.Output, e.Error, e.Advice, e.Usage, e.Stats}
		whole.Status, whole.Kind, whole.Error, whole.Ended = e.Status, e.Kind, e.Error, e.Ended
		whole.DurationMS, whole.Turns, whole.Problem = e.Duration.Milliseconds(), e.Turns, e.Problem
	}
	var settings struct {
		MaxTurns int `json:"maxTurns"`
		Budget   struct {
			USD    float64 `json:"maxCostUsd"`
			Tokens int64   `json:"maxTotalTokens"`
		} `json:"budget"`
	}
	if json.Unmarshal(run.Settings, &settings) == nil {
		whole.Limits = Limits{USD: settings.Budget.USD, Tokens: settings.Budget.Tokens, Turns: settings.MaxTurns}
		whole.BudgetUSD = settings.Budget.USD
	}
	if s.o.Starter != nil && !bundle {
		whole.Again = s.o.Starter.Again(run)
	}
	return whole, nil
}

var errNoStarts = problem(http.StatusForbidden, "this server starts no runs", "start it as drover serve, or the run as drover run")

func (s *Server) serveOffer(w http.ResponseWriter, r *http.Request) error {
	if s.o.Starter == nil {
		return errNoStarts
	}
	offer, err := s.o.Starter.Offer(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, offer)
}

func (s *Server) serveStart(w http.ResponseWriter, r *http.Request) error {
	if s.o.Starter == nil {
		return errNoStarts
	}
	var start Start
	if err := readJSON(w, r, &start); err != nil {
		return err
	}
	id, err := s.o.Starter.Start(r.Context(), start)
	if err != nil {
		return busy(err)
	}
	return s.started(w, r, id)
}

// ErrBusy is wrapped by a [Starter] that has as many runs as it may have.
var ErrBusy = errors.New("as many runs are under way as this server may have")

// retryAfter is when a client that was refused may ask again.
const retryAfter = 5 * time.Second

func busy(err error) error {
	if !errors.Is(err, ErrBusy) {
		return err
	}
	return tooMany(err.Error(), "try again later, or start drover serve with a larger -n", retryAfter)
}

func (s *Server) started(w http.ResponseWriter, r *http.Request, id string) error {
	waiting, err := s.queued(r.Context(), id)
	if err != nil {
		return err
	}
	if waiting != nil {
		s.watch.change()
		w.Header().Set("Location", "/v1/runs/"+waiting.ID)
		return writeJSON(w, http.StatusCreated, waiting.whole())
	}
	run, err := s.findRun(s.keptID(r.Context(), id))
	if err != nil {
		return err
	}
	return s.writeRun(w, r, http.StatusCreated, run)
}

// serveControl passes an answer, an interruption or a stop on to the program of the run.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) error {
	if strings.HasSuffix(r.URL.Path, "/stop") {
		if done, err := s.serveQueuedStop(w, r); done {
			return err
		}
	}
	run, err := s.find(r)
	if err != nil {
		return err
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/runs/"), "/")
	var body any
	if id := r.PathValue("question"); id != "" {
		var a Answer
		if err := readJSON(w, r, &a); err != nil {
			return err
		}
		body = a
	}
	if err := s.pass(r.Context(), run, "/"+path, body, nil); err != nil {
		return err
	}
	if body != nil {
		w.WriteHeader(http.StatusNoContent)
	} else {
		w.WriteHeader(http.StatusAccepted)
	}
	return nil
}

var errOver = problem(http.StatusConflict, "the run is over", "send a message to continue it")

// controlTime is how long the program of a run may take to answer. A test has less patience.
var controlTime = 10 * time.Second

// pass makes a request to the program of a run.
func (s *Server) pass(ctx context.Context, run *record.Run, path string, body, answer any) error {
	if run.State != record.Running {
		return errOver
	}
	c, err := openControl(run.Path)
	if err != nil {
		return problem(http.StatusConflict, "the program of this run cannot be controlled from elsewhere: "+err.Error(), "answer and stop it where it was started")
	}
	if answer == nil { // a message waits for its turn
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, controlTime)
		defer done()
	}
	resp, err := c.request(ctx, http.MethodPost, path, body)
	if p, is := errors.AsType[*Problem](err); is && p.Status == http.StatusBadGateway {
		if now, gone := s.o.Store.Run(s.o.Store.Folder(run)); gone == nil && now.State != record.Running {
			return errOver // the run ended meanwhile, and its socket with it
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if answer == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(answer)
}

// A Message is sent in the conversation of a run.
type Message struct {
	// Text is empty to have a run that is over continue where it stopped.
	Text string `json:"text,omitzero"`
}

func (s *Server) serveMessage(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	var m Message
	if err := readJSON(w, r, &m); err != nil {
		return err
	}
	var next struct{ Run string }
	switch {
	case run.State == record.Running && strings.TrimSpace(m.Text) == "":
		return problem(http.StatusUnprocessableEntity, "the message is empty", "send a text")
	case run.State == record.Running:
		err = s.pass(r.Context(), run, "/messages", m, &next)
	case s.o.Starter == nil:
		err = errNoStarts
	default:
		if run.State == record.Ended {
			awaitDone(r.Context(), run.Path)
		}
		next.Run, err = s.o.Starter.Continue(r.Context(), run, m.Text)
		err = busy(err)
	}
	if err != nil {
		return err
	}
	return s.started(w, r, next.Run)
}

// A SessionState is the state of a session after an entry of its log.
type SessionState struct {
	At     int64          `json:"at"`
	Slices []SessionSlice `json:"slices"`
}

// A SessionSlice is one part of the state.
type SessionSlice struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	at := int64(0)
	if text := r.URL.Query().Get("at"); text != "" {
		if at, err = strconv.ParseInt(text, 10, 64); err != nil || at < 1 {
			return problem(http.StatusBadRequest, fmt.Sprintf("at is %q", text), "give the position of an entry")
		}
	}
	state, err := sessionAt(run, at)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, state)
}

func sessionAt(run *record.Run, at int64) (state SessionState, err error) {
	s, last, err := run.SessionAt(at)
	if err != nil {
		return state, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	state = SessionState{last, []SessionSlice{}}
	for name, latest := range record.Slices(s) {
		text, err := plainjson.Marshal(latest)
		if err != nil {
			return state, err
		}
		state.Slices = append(state.Slices, SessionSlice{name, text})
	}
	return state, nil
}

func (s *Server) serveDiff(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	text, err := run.Diff()
	if err != nil && len(text) == 0 {
		return err
	}
	w.Header().Set("Content-Type", "text/x-diff; charset=utf-8")
	_, _ = w.Write(text) // nobody is left to be told
	return nil
}

func (s *Server) serveBundle(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	leave, ok := s.exports.take()
	if !ok {
		return tooMany(fmt.Sprintf("%d bundles are being made", maxExports), "try again later", retryAfter)
	}
	defer leave()
	f, err := os.CreateTemp("", "drover-bundle-")
	if err != nil {
		return err
	}
	defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
	if err := run.Export(f); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+run.ID[:min(8, len(run.ID))]+`.drover.zip"`)
	w.Header().Set("Content-Type", "application/zip")
	serveWhole(w, r, "", f)
	return nil
}

func (s *Server) serveTranscript(w http.ResponseWriter, r *http.Request) error {
	run, err := s.find(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	for entry, err := range run.Transcript() {
		if err != nil {
			return err
		}
		text, err := plainjson.Marshal(entry)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(text, '\n')); err != nil {
			return nil // nobody is left to be told
		}
	}
	return nil
}

// A Comparison is where two runs part.
type Comparison struct {
	A Summary `json:"a"`
	B Summary `json:"b"`
	// Prompt, Settings, Answer and Changes are differences as unified diffs. What is the same in both is empty.
	Prompt   string   `json:"prompt,omitzero"`
	Settings string   `json:"settings,omitzero"`
	Answer   string   `json:"answer,omitzero"`
	Changes  string   `json:"changes,omitzero"`
	OnlyA    []string `json:"onlyA,omitempty"`
	OnlyB    []string `json:"onlyB,omitempty"`
	// Same is how many of the first calls are the same, and CallA and CallB those behind them.
	Same  int           `json:"same"`
	CallA *ComparedCall `json:"callA,omitempty"`
	CallB *ComparedCall `json:"callB,omitempty"`
}

// A ComparedCall is the first tool call in which a run differs.
type ComparedCall struct {
	Pos    int64           `json:"position"`
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Status string          `json:"status,omitzero"`
	Denied string          `json:"denied,omitzero"`
}

func (s *Server) serveCompare(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	a, err := s.findRun(q.Get("a"))
	if err != nil {
		return err
	}
	b, err := s.findRun(q.Get("b"))
	if err != nil {
		return err
	}
	c, err := record.Compare(a, b)
	if err != nil {
		return err
	}
	ofA, err := s.describe(r.Context(), a)
	if err != nil {
		return err
	}
	ofB, err := s.describe(r.Context(), b)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, Comparison{
		A: ofA.Summary, B: ofB.Summary, Prompt: c.Prompt, Settings: c.Settings, Answer: c.Answer, Changes: c.Changes, OnlyA: c.OnlyA, OnlyB: c.OnlyB,
		Same: c.Same, CallA: compared(c.A), CallB: compared(c.B),
	})
}

func compared(c *record.Call) *ComparedCall {
	if c == nil {
		return nil
	}
	of := &ComparedCall{Pos: c.Pos, Tool: c.Name, Input: c.Input, Status: string(c.Status())}
	if d := c.Denied(); d != nil {
		of.Denied = d.Reason
	}
	return of
}

// Bundles that were opened have ids of their own.
const (
	bundlePrefix = "bundle-"
	maxBundles   = 20
	maxBundle    = 1 << 30
	bundleTime   = 10 * time.Minute
)

func (s *Server) serveOpen(w http.ResponseWriter, r *http.Request) error {
	leave, ok := s.uploads.take()
	if !ok {
		return tooMany("another bundle is being opened", "try again when it is open", retryAfter)
	}
	defer leave()
	var run *record.Run
	err := readWithin(w, bundleTime, func() (err error) {
		run, err = s.open(http.MaxBytesReader(w, r.Body, maxBundle))
		return err
	})
	if err != nil {
		return err
	}
	return s.writeRun(w, r, http.StatusCreated, run)
}

// bundlePath is the path of the next bundle.
func (s *Server) bundlePath() (_ string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return "", errEnding
	case len(s.bundles) >= maxBundles:
		return "", problem(http.StatusUnprocessableEntity, fmt.Sprintf("%d bundles are open", maxBundles), "start the server again to close them")
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "drover-bundles-"); err != nil {
			return "", err
		}
	}
	return filepath.Join(s.dir, strconv.Itoa(len(s.bundles)+1)+".zip"), nil
}

var errEnding = problem(http.StatusServiceUnavailable, "the server is about to end", "open the bundle at the next one")

// open keeps a bundle until the server is closed. There is one call at a time.
func (s *Server) open(from io.Reader) (*record.Run, error) {
	path, err := s.bundlePath()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	run, err := record.OpenBundle(path)
	if err != nil {
		return nil, errors.Join(problem(http.StatusUnprocessableEntity, "the file cannot be opened: "+err.Error(), "send a file of drover runs export"), os.Remove(path))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(errEnding, run.Close())
	}
	s.bundles = append(s.bundles, run)
	return run, nil
}

func (s *Server) bundle(id string) (*record.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := strconv.Atoi(strings.TrimPrefix(id, bundlePrefix))
	if err != nil || n < 1 || n > len(s.bundles) {
		return nil, problem(http.StatusNotFound, "there is no open bundle "+id, "open the file again")
	}
	return s.bundles[n-1], nil
}

func (s *Server) bundleID(run *record.Run) string {
	return bundlePrefix + strings.TrimSuffix(filepath.Base(run.Path), ".zip")
}
