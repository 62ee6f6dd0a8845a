// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// Where a system has no sockets for their owner alone, a run is followed by its log, and control is refused by name.
func TestSocket_MissingOnASystemIsNamed(t *testing.T) {
	defer server.SetSystem("windows")()
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
	if run := s.run(r.id); run.State != record.Running || run.Controllable {
		t.Errorf("the run is %s, controllable %t", run.State, run.Controllable)
	}
	for _, path := range []string{"stop", "interrupt", "messages", "questions/x"} {
		body := map[string]string{"messages": `{"text":"Go on."}`, "questions/x": `{"verdict":"allow"}`}[path]
		if resp, text := s.request("POST", "/v1/runs/"+r.id+"/"+path, body); resp.StatusCode != 409 || !strings.Contains(text, "this system has no sockets") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	entries := 0
	s.follow(t.Context(), r.id, 0, func(m message) bool {
		if m.name == "entry" {
			entries++
		}
		return entries == 0
	})
}

// A socket that another user has put in the place of the run's, or a key that others can read, is not used: it receives no key and no
// answer.
func TestSocket_OfAnotherUserIsRefused(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	for name, plant := range map[string]func(dir string) error{
		"another user's socket": func(dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file to another user")
			}
			return os.Chown(filepath.Join(dir, "control.sock"), 65534, 65534)
		},
		"another user's key": func(dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file to another user")
			}
			return os.Chown(filepath.Join(dir, "control.key"), 65534, 65534)
		},
		"socket for all": func(dir string) error { return os.Chmod(filepath.Join(dir, "control.sock"), 0o666) },
		"key for all":    func(dir string) error { return os.Chmod(filepath.Join(dir, "control.key"), 0o644) },
		"link":           func(dir string) error { return relink(filepath.Join(dir, "control.sock")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
			waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
			run, err := store.Find(r.id)
			if err != nil {
				t.Fatal(err)
			}
			if err := plant(run.Path); err != nil {
				t.Fatal(err)
			}
			if resp, text := s.request("POST", "/v1/runs/"+r.id+"/stop", ""); resp.StatusCode != 409 || !strings.Contains(text, "it belongs to another user") && !strings.Contains(text, "other users may use it") {
				t.Errorf("stop: %d %s", resp.StatusCode, text)
			}
			if s.run(r.id).Controllable {
				t.Error("the run counts as controllable")
			}
		})
	}
}

// relink replaces a socket by a link, which anyone may have made.
func relink(path string) error {
	return errors.Join(os.Rename(path, path+".own"), os.Symlink(path+".own", path))
}

// A program that takes the connection and says nothing does not hold a request up.
func TestSocket_SilentProgramIsLeft(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
	waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
	run, err := store.Find(r.id)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(run.Path)
	if err := os.Remove("control.sock"); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "control.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := os.Chmod("control.sock", 0o600); err != nil {
		t.Fatal(err)
	}
	defer server.SetControlTime(300 * time.Millisecond)()
	began := time.Now()
	if resp, text := s.request("POST", "/v1/runs/"+r.id+"/stop", ""); resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, `"next"`) {
		t.Errorf("stop: %d %s", resp.StatusCode, text)
	}
	if s.run(r.id).Controllable || time.Since(began) > 5*time.Second {
		t.Errorf("it took %v", time.Since(began))
	}
}
