// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
)

// A route is one operation of the API. The mux and the OpenAPI document are made of the same list.
type route struct {
	pattern string // "GET /v1/runs"
	id      string // the name of the operation in the document
	needs   access
	about   string
	query   []parameter
	body    reflect.Type // JSON, nil without one
	example any          // of the body
	status  int
	answer  reflect.Type // JSON, nil without one
	media   []string     // of an answer that is not JSON
	refuses []int        // besides those of all routes
	serve   func(*Server, http.ResponseWriter, *http.Request) error
}

// A parameter is one of a query.
type parameter struct {
	name, kind, about string
	example           any
}

func jsonOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// routes of the API, in the order in which the document has them.
var apiRoutes = []route{
	{pattern: "POST /v1/session", id: "tradeToken", needs: anyone, about: "Trade a token for a cookie and a second secret, for the page.", body: jsonOf[tradeRequest](), example: tradeRequest{"M7QZ…"}, status: 200, answer: jsonOf[tradeAnswer](), refuses: []int{401}, serve: (*Server).serveTrade},
	{pattern: "GET /v1/server", id: "describeServer", needs: viewer, about: "What the server is, and what this token may do.", status: 200, answer: jsonOf[About](), serve: (*Server).serveAbout},
	{pattern: "GET /v1/runs", id: "listRuns", needs: viewer, about: "List runs, the latest first.", query: []parameter{
		{"state", "string", "queued, running, ended, lost or unreadable", "running"},
		{"failed", "boolean", "only runs that ended without success, were lost or cannot be read", true},
		{"since", "date-time", "only runs that began from this time on", "2026-01-02T15:04:05Z"},
		{"agent", "string", "the name of the agent or of its adapter", "reviewer"},
		{"folder", "string", "where the run belongs", "/home/me/shop"},
		{"q", "string", "words that must all be in the prompt, name, folder, id or error", "tests pass"},
		{"limit", "integer", "how many; 200 without it, 2,000 at most", 20},
	}, status: 200, answer: jsonOf[RunList](), serve: (*Server).serveRuns},
	{pattern: "POST /v1/runs", id: "startRun", needs: owner, about: "Start a run. The answer comes when it is kept, or waits in the queue of the server.", body: jsonOf[Start](), example: Start{Prompt: "Make the tests pass", Limits: Limits{USD: 1, Turns: 20}, Deny: []string{"networkAccess"}}, status: 201, answer: jsonOf[Run](), refuses: []int{422, 503}, serve: (*Server).serveStart},
	{pattern: "GET /v1/offer", id: "describeOffer", needs: viewer, about: "What can be started.", status: 200, answer: jsonOf[Offer](), serve: (*Server).serveOffer},
	{pattern: "GET /v1/runs/{run}", id: "readRun", needs: viewer, about: "A run.", status: 200, answer: jsonOf[Run](), serve: (*Server).serveRun},
	{pattern: "GET /v1/runs/{run}/events", id: "readEvents", needs: viewer, about: "The events of a run: as server-sent events with the position in the log as id, if the request accepts text/event-stream, which end when the run does; else those so far, one per line.", query: []parameter{{"after", "integer", "only events behind this position; the header Last-Event-ID says the same", 0}}, status: 200, media: []string{"text/event-stream", "application/jsonl"}, serve: (*Server).serveEvents},
	{pattern: "POST /v1/runs/{run}/questions/{question}", id: "answerQuestion", needs: owner, about: "Answer a tool call that waits. 409 if another answer came first.", body: jsonOf[Answer](), example: Answer{Verdict: event.Deny, Reason: "Leave the lock file alone."}, status: 204, refuses: []int{409, 422, 502}, serve: (*Server).serveControl},
	{pattern: "POST /v1/runs/{run}/interrupt", id: "interruptRun", needs: owner, about: "End the turn under way.", status: 202, refuses: []int{409, 502}, serve: (*Server).serveControl},
	{pattern: "POST /v1/runs/{run}/stop", id: "stopRun", needs: owner, about: "End the run.", status: 202, refuses: []int{409, 502}, serve: (*Server).serveControl},
	{pattern: "POST /v1/runs/{run}/retry", id: "retryRun", needs: owner, about: "Queue a run again that has ended without an answer, where the server has a queue.", status: 201, answer: jsonOf[Run](), refuses: []int{409}, serve: (*Server).serveRetry},
	{pattern: "POST /v1/runs/{run}/messages", id: "sendMessage", needs: owner, about: "Send a message in the conversation of a run: after its answer if it is under way, else by continuing it. The answer is the run that has the message, and comes when that has begun.", body: jsonOf[Message](), example: Message{"And now the documentation."}, status: 201, answer: jsonOf[Run](), refuses: []int{409, 422, 502, 503}, serve: (*Server).serveMessage},
	{pattern: "GET /v1/runs/{run}/session", id: "readSession", needs: viewer, about: "The state of the session after an entry of the log.", query: []parameter{{"at", "integer", "the position of the entry; the last without it", 1}}, status: 200, answer: jsonOf[SessionState](), serve: (*Server).serveSession},
	{pattern: "GET /v1/runs/{run}/diff", id: "readDiff", needs: viewer, about: "The changes in the workspace, as a patch.", status: 200, media: []string{"text/x-diff"}, serve: (*Server).serveDiff},
	{pattern: "GET /v1/runs/{run}/bundle", id: "readBundle", needs: viewer, about: "The run as one file.", status: 200, media: []string{"application/zip"}, serve: (*Server).serveBundle},
	{pattern: "GET /v1/runs/{run}/transcript", id: "readTranscript", needs: viewer, about: "What the agent wrote down, one entry per line.", status: 200, media: []string{"application/jsonl"}, serve: (*Server).serveTranscript},
	{pattern: "GET /v1/compare", id: "compareRuns", needs: viewer, about: "Where two runs part.", query: []parameter{{"a", "string", "a run", "0c6d"}, {"b", "string", "another one", "91f2"}}, status: 200, answer: jsonOf[Comparison](), serve: (*Server).serveCompare},
	{pattern: "POST /v1/bundles", id: "openBundle", needs: owner, about: "Open a bundle, to be read here. The body is the file.", status: 201, answer: jsonOf[Run](), refuses: []int{408, 413, 422, 503}, serve: (*Server).serveOpen},
	{pattern: "GET /v1/events", id: "followRuns", needs: viewer, about: "Server-sent events: runs, when the list of runs has changed.", status: 200, media: []string{"text/event-stream"}, serve: (*Server).serveChanges},
}

// serveWhole serves a file. Requests for a part of it, or on conditions, get all: net/http refuses some without a problem document.
func serveWhole(w http.ResponseWriter, r *http.Request, name string, file io.ReadSeeker) {
	own := r.Clone(r.Context())
	own.Header = http.Header{}
	http.ServeContent(w, own, name, time.Time{}, file)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	document := route{pattern: "GET /v1/openapi.json", needs: anyone, serve: (*Server).serveOpenAPI} // it describes the others
	for _, r := range append([]route{document}, apiRoutes...) {
		mux.HandleFunc(r.pattern, serving(func(w http.ResponseWriter, req *http.Request) error {
			if err := s.keys.check(req, r.needs); err != nil {
				return err
			}
			return r.serve(s, w, req)
		}))
	}
	mux.HandleFunc("/v1/", serving(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.keys.check(r, anyone); err != nil {
			return err
		}
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/v1/" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			return problem(http.StatusMethodNotAllowed, r.URL.Path+" cannot be used with "+r.Method, "GET /v1/openapi.json lists what there is")
		}
		return problem(http.StatusNotFound, "there is no operation "+r.Method+" "+r.URL.Path, "GET /v1/openapi.json lists them")
	}))
	files := page()
	mux.HandleFunc("/", serving(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.keys.check(r, anyone); err != nil {
			return err
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			return problem(http.StatusMethodNotAllowed, "the page is read with GET", "send changes to /v1/; GET /v1/openapi.json lists what there is")
		}
		w.Header().Set("Cache-Control", "no-cache")
		name, static := strings.CutPrefix(r.URL.Path, "/static/")
		if !static {
			name = "index.html"
			if r.URL.Path != "/" && r.URL.Path != "/compare" && !strings.HasPrefix(r.URL.Path, "/r/") {
				return problem(http.StatusNotFound, "there is no page "+r.URL.Path, "the list of runs is /")
			}
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return problem(http.StatusNotFound, "there is no file "+r.URL.Path, "the list of runs is /")
		}
		serveWhole(w, r, name, bytes.NewReader(text))
		return nil
	}))
	return mux
}
