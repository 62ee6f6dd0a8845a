// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

func TestServing_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^TestServe_")
}

// openAt opens a cell for a plain program, or skips where the level cannot be had.
func openAt(t *testing.T, level isolation.Level, changes ...func(*isolation.OpenOptions)) *isolation.Cell {
	t.Helper()
	i := &isolation.Isolation{Strongest: level, Weakest: level, Host: hostWith("PATH=" + os.Getenv("PATH"))}
	var o isolation.OpenOptions
	for _, change := range changes {
		change(&o)
	}
	cell, err := i.Open(t.Context(), programIn(testkit.SharedFolder(t)), o)
	if weak, ok := errors.AsType[*isolation.WeakError](err); ok {
		t.Skip(weak)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cell.Close() })
	return cell
}

// request is a line of bash that asks a URL and prints the answer.
func request(t *testing.T, address, path string) string {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`exec 3<>/dev/tcp/%s/%s && printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3 && cat <&3`, at.Hostname(), at.Port(), at.Path+path)
}

func TestServe_OnlyTheProgramReachesHandlers(t *testing.T) {
	for _, level := range []isolation.Level{isolation.LevelCell, isolation.LevelLandlock, isolation.LevelHost} {
		t.Run(level.String(), func(t *testing.T) {
			cell := openAt(t, level)
			var asked atomic.Int64
			var urls []string
			for _, name := range []string{"hooks", "tools"} {
				at, err := cell.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					fmt.Fprintf(w, "%s got %s", name, r.URL.Path)
				}))
				if err != nil {
					t.Fatal(err)
				}
				urls = append(urls, at)
			}
			for n, want := range []string{"hooks got /a/b", "tools got /a/b"} {
				if output := bashOutput(t, cell, request(t, urls[n], "/a/b")); !strings.Contains(output, want) {
					t.Errorf("inside, the handler answered %q, want %q", output, want)
				}
			}
			asked.Store(0)
			secret := urls[0][strings.LastIndex(urls[0], "/"):]
			base := strings.TrimSuffix(urls[0], secret)
			if output := bashOutput(t, cell, request(t, base, "/a/b")); !strings.Contains(output, "404") {
				t.Errorf("without the secret, inside: %q", output)
			}
			answer, err := http.Get(base + "/a/b") // from outside
			switch {
			case level == isolation.LevelCell && err == nil:
				t.Errorf("outside of the cell the listener answers %s", answer.Status)
			case level != isolation.LevelCell && (err != nil || answer.StatusCode != http.StatusNotFound):
				t.Errorf("without the secret, outside: %v, %v", answer, err)
			}
			if level == isolation.LevelCell {
				other := openAt(t, level)
				if output := bashOutput(t, other, request(t, urls[0], "/a/b")); strings.Contains(output, "HTTP/") {
					t.Errorf("another cell gets %q", output)
				}
			}
			if n := asked.Load(); n > 0 {
				t.Errorf("the handler was asked %d times by those who must not reach it", n)
			}
		})
	}
}

func TestServe_EndsWithTheCell(t *testing.T) {
	for _, level := range []isolation.Level{isolation.LevelCell, isolation.LevelLandlock, isolation.LevelHost} {
		t.Run(level.String(), func(t *testing.T) {
			cell := openAt(t, level)
			entered, left := make(chan struct{}), make(chan struct{}, 2)
			at, err := cell.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				entered <- struct{}{}
				<-r.Context().Done()
				left <- struct{}{}
			}))
			if err != nil {
				t.Fatal(err)
			}
			p, err := cell.Spawn(t.Context(), bashIn(cell, request(t, at, "")))
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, p.Stderr()) }()
			go func() { _, _ = io.Copy(io.Discard, p.Stdout()) }()
			<-entered
			if level != isolation.LevelCell { // a client that does not end with the program
				go func() {
					if answer, err := http.Get(at); err == nil {
						_ = answer.Body.Close()
					}
				}()
				<-entered
			}
			if _, err := cell.Serve(http.NotFoundHandler()); err == nil || !strings.Contains(advice.Text(err), "\n  next: ") {
				t.Errorf("after the start: got %v, want a refusal", err)
			}
			if err := cell.Close(); err != nil {
				t.Error(err)
			}
			requests := 1
			if level != isolation.LevelCell {
				requests = 2
			}
			for range requests {
				select {
				case <-left:
				case <-time.After(10 * time.Second):
					t.Fatal("a request goes on after the cell was closed")
				}
			}
			if answer, err := http.Get(at); err == nil {
				t.Errorf("after Close the listener answers %s", answer.Status)
			}
			if _, err := cell.Serve(http.NotFoundHandler()); err == nil || !strings.Contains(advice.Text(err), "closed") {
				t.Errorf("after Close: got %v, want that the cell is closed", err)
			}
		})
	}
}

func TestServe_TooManyHandlersAreRefused(t *testing.T) {
	cell := openAt(t, isolation.LevelCell)
	var err error
	for n := 0; err == nil; n++ {
		if n > 100 {
			t.Fatal("there is no end of listeners")
		}
		_, err = cell.Serve(http.NotFoundHandler())
	}
	if !strings.Contains(advice.Text(err), "\n  next: ") {
		t.Errorf("got %v, want what to do", err)
	}
	if output := bashOutput(t, cell, "echo started"); !strings.Contains(output, "started") {
		t.Errorf("with as many as there may be, the program printed %q", output)
	}
}
