// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/server"
)

// A receiver is the far end of a webhook: it answers with its statuses, one after the other, and then with 200. 0 is no answer.
type receiver struct {
	statuses []int
	bodies   []string
	at       []time.Time
	headers  []http.Header
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.bodies, r.at, r.headers = append(r.bodies, string(text)), append(r.at, time.Now()), append(r.headers, req.Header)
	status := http.StatusOK
	if n := len(r.bodies); n <= len(r.statuses) {
		status = r.statuses[n-1]
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Location": {"https://elsewhere.example"}}, Body: http.NoBody, Request: req}, nil
}

func asked() server.Notice {
	return server.Notice{Event: "question", Run: server.Summary{ID: "run-1", Name: "reviewer", State: "running"}, Question: &server.Question{ID: "question-1", Tool: "Bash"}}
}

// A notice is sent again while another attempt may succeed, later each time, and is the same each time.
func TestNotices_AreRetried(t *testing.T) {
	t.Setenv("HOOK_KEY", "a key")
	for name, c := range map[string]struct {
		statuses []int
		want     []time.Duration // since the first attempt
		failed   bool
	}{
		"at once":       {nil, []time.Duration{0}, false},
		"later":         {[]int{500, 429, 0}, []time.Duration{0, 1, 3, 7}, false},
		"never":         {[]int{503, 503, 503, 503, 503, 503, 503}, []time.Duration{0, 1, 3, 7, 15, 31}, true},
		"refused":       {[]int{404}, []time.Duration{0}, true},
		"led elsewhere": {[]int{307}, []time.Duration{0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				far := &receiver{statuses: c.statuses}
				n := (&noticeFlags{webhook: "https://hook.example/x", secret: "HOOK_KEY"}).start(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
				n.wire = far
				n.send(asked())
				time.Sleep(time.Minute)
				n.close()
				if len(far.at) != len(c.want) {
					t.Fatalf("%d attempts, want %d", len(far.at), len(c.want))
				}
				for i, at := range far.at {
					if since := at.Sub(far.at[0]); since != c.want[i]*time.Second || far.bodies[i] != far.bodies[0] {
						t.Errorf("attempt %d is %v after the first: %s", i+1, since, far.bodies[i])
					}
					stamp, sum, _ := strings.Cut(strings.TrimPrefix(far.headers[i].Get("Drover-Signature"), "t="), ",v1=")
					mac := hmac.New(sha256.New, []byte("a key"))
					_, _ = mac.Write([]byte(stamp + "." + far.bodies[i])) // it cannot fail
					if hex.EncodeToString(mac.Sum(nil)) != sum || stamp == "" {
						t.Errorf("attempt %d has the signature %q", i+1, far.headers[i].Get("Drover-Signature"))
					}
				}
				if got := strings.Contains(log.String(), "was not delivered"); got != c.failed {
					t.Errorf("the log is %q", log.String())
				}
			})
		})
	}
}

// A server that ends gives what waits a short time.
func TestNotices_EndWithTheServer(t *testing.T) {
	t.Setenv("HOOK_KEY", "a key")
	synctest.Test(t, func(t *testing.T) {
		n := (&noticeFlags{webhook: "https://hook.example/x", secret: "HOOK_KEY"}).start(t.Context(), slog.New(slog.DiscardHandler))
		n.wire = &receiver{statuses: slices.Repeat([]int{503}, 100)}
		for range maxNotices + 5 { // those that do not fit are dropped, and do not block the server
			n.send(asked())
		}
		began := time.Now()
		if n.close(); time.Since(began) > lastNotices+time.Second {
			t.Errorf("the end took %v", time.Since(began))
		}
	})
}

// fillTexts gives each text of a value its own words.
func fillTexts(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text of " + path)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillTexts(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`"text of ` + path + `"`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillTexts(v.Index(0), path)
	}
}

// A notice has nothing of what an agent wrote, was asked or was given: those may hold secrets.
func TestNotices_HaveNoSecrets(t *testing.T) {
	t.Setenv("HOOK_KEY", "a key")
	synctest.Test(t, func(t *testing.T) {
		far := &receiver{}
		n := (&noticeFlags{webhook: "https://hook.example/x", secret: "HOOK_KEY"}).start(t.Context(), slog.New(slog.DiscardHandler))
		n.wire = far
		var whole server.Notice
		fillTexts(reflect.ValueOf(&whole).Elem(), "notice")
		n.send(whole)
		n.close()
		var got map[string]any
		if err := json.Unmarshal([]byte(far.bodies[0]), &got); err != nil {
			t.Fatal(err)
		}
		allowed := map[string]string{
			"event": "notice.Event", "id": "notice.Question.ID", "run": "notice.Run.ID", "agent": "notice.Run.Name", "state": "notice.Run.State",
			"status": "notice.Run.Status", "tool": "notice.Question.Tool",
		}
		for name, value := range got {
			if text, is := value.(string); name != "time" && name != "until" && (!is || text != "text of "+allowed[name]) {
				t.Errorf("the notice has %s: %v", name, value)
			}
		}
		if strings.Contains(far.bodies[0], "a key") || strings.Contains(far.headers[0].Get("Drover-Signature"), "a key") {
			t.Error("the notice has the key")
		}
	})
}

// A webhook and a program receive the same notice, over a real connection and as standard input.
func TestNotices_ReachBoth(t *testing.T) {
	t.Setenv("HOOK_KEY", "a key")
	var mu sync.Mutex
	var got string
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if got = string(text); err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v, %v", r.Header, err)
		}
	}))
	defer far.Close()
	file := filepath.Join(t.TempDir(), "notice")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec cat > "+file+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	flags := noticeFlags{webhook: far.URL, secret: "HOOK_KEY", command: program}
	n := flags.start(context.Background(), slog.New(slog.NewTextHandler(&log, nil)))
	n.send(asked())
	n.close()
	http.DefaultClient.CloseIdleConnections()
	text, err := os.ReadFile(file)
	if err != nil || got == "" || string(text) != got || log.Len() > 0 {
		t.Errorf("the program received %q (%v), the webhook %q; the log is %s", text, err, got, &log)
	}
	flags = noticeFlags{command: "/bin/false"}
	n = flags.start(context.Background(), slog.New(slog.NewTextHandler(&log, nil)))
	n.send(asked())
	if n.close(); !strings.Contains(log.String(), "/bin/false") {
		t.Errorf("a program that fails is not in the log: %s", &log)
	}
}

// A started run has the environment of the server, but for the key that signs notices.
func TestNotices_RunsHaveNotTheirKey(t *testing.T) {
	t.Setenv("HOOK_KEY", "a key")
	t.Setenv("OTHER_KEY", "another")
	st := serving(t, "--webhook=https://hook.example/x", "--webhook-secret=HOOK_KEY")
	seen := filepath.Join(t.TempDir(), "environment")
	st.program = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(st.program, []byte("#!/bin/sh\nexec env > "+seen+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Start(t.Context(), server.Start{Prompt: "Go."}); err == nil {
		t.Error("a program that keeps no run has started one")
	}
	text, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(text), "OTHER_KEY=another\n") || strings.Contains(string(text), "HOOK_KEY") {
		t.Errorf("the run has the environment\n%s%v", text, err)
	}
}
