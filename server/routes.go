// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"reflect"
	"strings"
)

// A route is one operation of the API. The mux and the OpenAPI document are made of the same list.
type route struct {
	pattern string // "GET /v1/runs"
	needs   access
	about   string
	query   []parameter
	body    reflect.Type // JSON, nil without one
	status  int
	answer  reflect.Type // JSON, nil without one
	media   string       // of an answer that is not JSON
	refuses []int        // besides those of all routes
	serve   func(*Server, http.ResponseWriter, *http.Request) error
}

// A parameter is one of a query.
type parameter struct{ name, kind, about string }

func jsonOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// routes of the API, in the order in which the document has them.
var apiRoutes = []route{
	{pattern: "POST /v1/session", needs: anyone, about: "Trade a token for a cookie and a second secret, for the page.", body: jsonOf[tradeRequest](), status: 200, answer: jsonOf[tradeAnswer](), refuses: []int{401, 429}, serve: (*Server).serveTrade},
	{pattern: "GET /v1/server", needs: viewer, about: "What the server is, and what this token may do.", status: 200, answer: jsonOf[About](), serve: (*Server).serveAbout},
	{pattern: "GET /v1/runs", needs: viewer, about: "List runs, the latest first.", query: []parameter{
		{"state", "string", "running, ended, lost or unreadable"},
		{"failed", "boolean", "only runs that ended without success, were lost or cannot be read"},
		{"since", "date-time", "only runs that began from this time on"},
		{"agent", "string", "the name of the agent or of its adapter"},
		{"folder", "string", "where the run belongs"},
		{"q", "string", "words that must all be in the prompt, name, folder, id or error"},
		{"limit", "integer", "how many; 200 without it, 2,000 at most"},
	}, status: 200, answer: jsonOf[RunList](), serve: (*Server).serveRuns},
	{pattern: "POST /v1/runs", needs: owner, about: "Start a run.", body: jsonOf[Start](), status: 201, answer: jsonOf[Run](), refuses: []int{422, 429}, serve: (*Server).serveStart},
	{pattern: "GET /v1/offer", needs: viewer, about: "What can be started.", status: 200, answer: jsonOf[Offer](), serve: (*Server).serveOffer},
	{pattern: "GET /v1/runs/{run}", needs: viewer, about: "A run. The id may be cut.", status: 200, answer: jsonOf[Run](), serve: (*Server).serveRun},
	{pattern: "GET /v1/runs/{run}/events", needs: viewer, about: "The events of a run: as server-sent events with the position in the log as id, if the request accepts text/event-stream, which end when the run does; else those so far, one per line.", query: []parameter{{"after", "integer", "only events behind this position; the header Last-Event-ID says the same"}}, status: 200, media: "text/event-stream", serve: (*Server).serveEvents},
	{pattern: "POST /v1/runs/{run}/questions/{question}", needs: owner, about: "Answer a tool call that waits. 409 if another answer came first.", body: jsonOf[Answer](), status: 204, refuses: []int{409, 422}, serve: (*Server).serveControl},
	{pattern: "POST /v1/runs/{run}/interrupt", needs: owner, about: "End the turn under way.", status: 202, refuses: []int{409}, serve: (*Server).serveControl},
	{pattern: "POST /v1/runs/{run}/stop", needs: owner, about: "End the run.", status: 202, refuses: []int{409}, serve: (*Server).serveControl},
	{pattern: "POST /v1/runs/{run}/messages", needs: owner, about: "Send a message in the conversation of a run: after its answer if it is under way, else by continuing it. The answer is the run that has the message, and comes when that has begun.", body: jsonOf[Message](), status: 201, answer: jsonOf[Run](), refuses: []int{409, 429}, serve: (*Server).serveMessage},
	{pattern: "GET /v1/runs/{run}/session", needs: viewer, about: "The state of the session after an entry of the log.", query: []parameter{{"at", "integer", "the position of the entry; the last without it"}}, status: 200, answer: jsonOf[SessionState](), serve: (*Server).serveSession},
	{pattern: "GET /v1/runs/{run}/diff", needs: viewer, about: "The changes in the workspace, as a patch.", status: 200, media: "text/x-diff", serve: (*Server).serveDiff},
	{pattern: "GET /v1/runs/{run}/bundle", needs: viewer, about: "The run as one file.", status: 200, media: "application/zip", serve: (*Server).serveBundle},
	{pattern: "GET /v1/runs/{run}/transcript", needs: viewer, about: "What the agent wrote down, one entry per line.", status: 200, media: "application/jsonl", serve: (*Server).serveTranscript},
	{pattern: "GET /v1/compare", needs: viewer, about: "Where two runs part.", query: []parameter{{"a", "string", "a run"}, {"b", "string", "another one"}}, status: 200, answer: jsonOf[Comparison](), serve: (*Server).serveCompare},
	{pattern: "POST /v1/bundles", needs: owner, about: "Open a bundle, to be read here. The body is the file.", status: 201, answer: jsonOf[Run](), refuses: []int{413, 422}, serve: (*Server).serveOpen},
	{pattern: "GET /v1/events", needs: viewer, about: "Server-sent events: runs, when the list of runs has changed.", status: 200, media: "text/event-stream", serve: (*Server).serveChanges},
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	document := route{pattern: "GET /v1/openapi.json", needs: anyone, serve: (*Server).serveOpenAPI} // it describes the others
	for _, r := range append([]route{document}, apiRoutes...) {
		mux.HandleFunc(r.pattern, serving(func(w http.ResponseWriter, req *http.Request) error {
			w.Header().Set("Cache-Control", "no-store")
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
	files := http.FileServerFS(page())
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
		if name == "" || strings.HasSuffix(name, "/") {
			return problem(http.StatusNotFound, "there is no file "+r.URL.Path, "the list of runs is /")
		}
		if name == "index.html" {
			name = "" // the file server would lead index.html to its folder
		}
		own := r.Clone(r.Context())
		own.URL.Path = "/" + name
		files.ServeHTTP(w, own)
		return nil
	}))
	return mux
}
