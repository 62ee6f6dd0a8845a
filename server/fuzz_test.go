// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// A pretender says that it starts runs, and names one that there is.
type pretender struct{ id string }

func (p pretender) Offer(context.Context) (server.Offer, error) {
	return server.Offer{Agents: []server.OfferedAgent{}, Folders: []string{"/shop"}, Permissions: map[string]string{}}, nil
}
func (p pretender) Start(context.Context, server.Start) (string, error) { return p.id, nil }
func (p pretender) Continue(context.Context, *record.Run, string) (string, error) {
	return p.id, nil
}
func (p pretender) Again(*record.Run) *server.Start { return &server.Start{Prompt: "Again."} }

// tree describes the files below a folder.
func tree(t testing.TB, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all = append(all, fmt.Sprint(path, info.Mode(), info.Size(), info.ModTime().UnixNano()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Any request of anyone is answered, or refused with a problem document; none changes a file outside of the folders of the server, or
// reads one.
func FuzzAPI(f *testing.F) {
	base := f.TempDir()
	outside := filepath.Join(base, "outside")
	for _, dir := range []string{"outside", "tmp"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o700); err != nil {
			f.Fatal(err)
		}
	}
	const canary = "canary-of-another-folder"
	if err := os.WriteFile(filepath.Join(outside, "run.json"), []byte(canary), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Setenv("TMPDIR", filepath.Join(base, "tmp"))
	store, err := record.Open(filepath.Join(base, "state", "runs"))
	if err != nil {
		f.Fatal(err)
	}
	kept := start(f, store, nil, server.LiveOptions{}, agenttest.Emit(event.Text{Content: "All is well."}), agenttest.Done("token-1"))
	<-kept.done
	run, err := store.Find(kept.id)
	if err != nil {
		f.Fatal(err)
	}
	// A run under way, whose program takes every request and does nothing.
	live := start(f, store, asking(), server.LiveOptions{Stop: func() {}, Interrupt: func() bool { return true }}, agenttest.Block())
	s, err := server.New(f.Context(), server.Options{Store: store, Starter: pretender{kept.id}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	server.LiftRates(s)
	d, err := described()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("GET", "/", "", []byte(nil))
	f.Add("GET", "/static/app.js", "", []byte(nil))
	f.Add("GET", "/static/../../outside/run.json", "", []byte(nil))
	f.Add("GET", "/v1/runs/../../outside", "Authorization: Bearer OWNER", []byte(nil))
	f.Add("GET", "/v1/runs/%2e%2e%2f%2e%2e%2foutside/events", "Authorization: Bearer OWNER", []byte(nil))
	f.Add("GET", "/static/none.js", "", []byte(nil))
	f.Add("GET", "/", "Range: bytes=9999999-\nIf-Match: x", []byte(nil))
	f.Add("GET", "/v1/runs/"+kept.id+"/bundle", "Authorization: Bearer OWNER\nRange: bytes=9999999-", []byte(nil))
	f.Add("DELETE", "/v1/runs", "Authorization: Bearer VIEWER\nOrigin: null", []byte("{"))
	for _, path := range d.doc.Paths.InMatchingOrder() {
		for method, o := range d.doc.Paths.Value(path).Operations() {
			at := strings.NewReplacer("{run}", kept.id, "{question}", "question-1").Replace(path)
			under := strings.NewReplacer("{run}", live.id, "{question}", "question%2f%001").Replace(path)
			for i, p := range o.Parameters {
				if p.Value.In == "query" {
					at += map[bool]string{true: "?", false: "&"}[!strings.Contains(at, "?")] + p.Value.Name + "=" + strings.ReplaceAll(fmt.Sprint(o.Parameters[i].Value.Example), " ", "+")
				}
			}
			var body []byte
			if o.RequestBody != nil {
				if media := o.RequestBody.Value.Content.Get("application/json"); media != nil {
					if body, err = json.Marshal(media.Example); err != nil {
						f.Fatal(err)
					}
				}
			}
			for _, who := range []string{"", "Authorization: Bearer OWNER\n", "Authorization: Bearer VIEWER\n"} {
				f.Add(method, at, who+"Content-Type: application/json\nAccept: text/event-stream", body)
				if under != path {
					f.Add(method, under, who+"Content-Type: application/json\nAccept: text/event-stream", body)
				}
			}
		}
	}
	before, log := tree(f, outside), tree(f, run.Path)
	f.Fuzz(func(t *testing.T, method, path, header string, body []byte) {
		text := method + " " + path + " HTTP/1.1\r\n"
		for line := range strings.SplitSeq(strings.NewReplacer("OWNER", s.Token(), "VIEWER", s.ViewerToken()).Replace(header), "\n") {
			if line != "" {
				text += line + "\r\n"
			}
		}
		if !strings.Contains(text, "Host:") {
			text += "Host: localhost\r\n"
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
		if err != nil {
			t.Skip() // net/http refuses it
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		if r.URL.Path == "/v1/events" || strings.HasPrefix(r.URL.Path, "/v1/runs/"+live.id[:8]) && strings.HasSuffix(r.URL.Path, "/events") {
			ctx, stop = context.WithTimeout(ctx, 5*time.Millisecond) // it does not end
		}
		defer stop()
		r = r.WithContext(ctx)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		resp := w.Result()
		answer := w.Body.Bytes()
		if resp.StatusCode >= 500 && resp.StatusCode != 502 && resp.StatusCode != 503 {
			t.Errorf("status %d: %.500s", resp.StatusCode, answer)
		}
		if resp.StatusCode >= 400 {
			var p server.Problem
			if err := json.Unmarshal(answer, &p); err != nil || p.Status != resp.StatusCode || p.Detail == "" || p.Next == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("status %d is no problem document that says what to do: %v %.500s", resp.StatusCode, err, answer)
			}
		}
		if resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified {
			t.Errorf("status %d leads to %q", resp.StatusCode, resp.Header.Get("Location"))
		}
		if _, _, err := d.router.FindRoute(r); err == nil && r.Context().Err() == nil {
			if err := d.checkAnswer(r, resp, answer); err != nil {
				t.Errorf("status %d is not as described: %v: %.500s", resp.StatusCode, err, answer)
			}
		}
		if bytes.Contains(answer, []byte(canary)) {
			t.Error("a file of another folder is served")
		}
		if !slices.Equal(tree(t, outside), before) || !slices.Equal(tree(t, run.Path), log) {
			t.Error("files outside of the server's have changed")
		}
	})
}
