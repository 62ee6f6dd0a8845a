// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// inCell runs a command of bash in place of the CLI, and returns its output.
func inCell(t *testing.T, i *isolation.Isolation, p isolation.Program, command string) string {
	t.Helper()
	cell, err := i.Open(t.Context(), p, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cell.Close(); err != nil {
			t.Error(err)
		}
	}()
	return bashOutput(t, cell, command)
}

// Folders that were named are inside, with the rights that were named, and so is the host's loopback if it
// was; nothing beside them is.
func TestIsolation_NamedFoldersAreInside(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"work/kept", "out/kept", "data/kept", "more/kept", "other/kept"} {
		plant(t, at(name), "kept in "+name)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served by the host") }))
	defer server.Close()
	for _, name := range []string{"socket", "unnamed"} {
		listener, err := net.Listen("unix", at(name))
		if err != nil {
			t.Fatal(err)
		}
		serve := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served by the "+name) })}
		go func() { _ = serve.Serve(listener) }()
		defer func() { _ = serve.Close() }()
	}
	isolated := func(localhost bool) *isolation.Isolation {
		return &isolation.Isolation{
			APIKey: "key", TempDir: dir, Host: hostWith(),
			Sandbox: &isolation.Sandbox{WritablePaths: []string{"../out"}, ReadablePaths: []string{at("data")}},
			Network: &isolation.NetworkPolicy{AllowLocalhost: localhost, UnixSockets: []string{at("socket")}},
		}
	}
	program := programIn(at("work"))
	program.AddDirs = []string{at("more")}

	output := inCell(t, isolated(true), program, `
		for name in socket unnamed; do curl -sS --unix-socket ../$name http://socket/; done
		for name in work out data more other; do cat ../$name/kept; echo made > ../$name/made; done
		ask() { exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'GET %s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' $1 >&3; cat <&3; }
		ask `+server.URL)
	for _, want := range []string{"kept in work", "kept in out", "kept in data", "kept in more", "served by the host", "served by the socket"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not inside:\n%s", want, output)
		}
	}
	if strings.Contains(output, "kept in other") || strings.Contains(output, "served by the unnamed") {
		t.Errorf("a folder or a socket that the options do not name is inside:\n%s", output)
	}
	for name, writable := range map[string]bool{"work": true, "out": true, "data": false, "more": true, "other": false} {
		if _, err := os.Stat(at(name + "/made")); (err == nil) != writable {
			t.Errorf("%s: written %t, want %t", name, err == nil, writable)
		}
	}
	closed := inCell(t, isolated(false), program, `exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'GET `+server.URL+`/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3; cat <&3`)
	if !strings.Contains(closed, "403 Forbidden") || strings.Contains(closed, "served by the host") {
		t.Errorf("without AllowLocalhost the host's loopback answers:\n%s", closed)
	}
}

// Open refuses options that would bypass the isolation, says what to do instead, and leaves no files.
func TestOpen_RefusesOptionsThatBypassTheIsolation(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	plant(t, filepath.Join(work, "file"), "")
	plant(t, filepath.Join(dir, "settings.json"), `{"sandbox":{}}`)
	for field, o := range map[string]claude.Options{
		"the Spawner would start":               {Dir: work, Spawner: launch.HostSpawner{}},
		"Options.User":                          {Dir: work, User: "nobody"},
		"Options.Sandbox":                       {Dir: work, Sandbox: &claude.Sandbox{}},
		"Options.Settings has":                  {Dir: work, Settings: []byte(`{"sandbox":{"enabled":false}}`)},
		"Options.SettingsFile has":              {Dir: work, SettingsFile: filepath.Join(dir, "settings.json")},
		"Options.ManagedSettings has":           {Dir: work, ManagedSettings: []byte(`{"sandbox":{"excludedCommands":["sh"]}}`)},
		"Options.SettingSources has project":    {Dir: work, SettingSources: []string{"user", "project"}},
		"Options.SettingSources has local":      {Dir: work, SettingSources: []string{"local"}},
		"contains more than a workspace should": {Dir: "/tmp"},
		"is not a folder":                       {Dir: filepath.Join(work, "file")},
		"would open too much of the machine":    {Dir: work, AddDirs: []string{"/etc"}},
		"the working directory \"/nowhere/is\"": {Dir: "/nowhere/is"},
	} {
		i := &isolation.Isolation{APIKey: "key", TempDir: dir, Host: hostWith()}
		cell, err := claudecell.Open(t.Context(), i, &o, isolation.OpenOptions{})
		if err == nil {
			_ = cell.Close()
		}
		if err == nil || !strings.Contains(advice.Text(err), field) || !strings.Contains(advice.Text(err), "\n  next: ") {
			t.Errorf("got %v, want a refusal that says %q and what to do", err, field)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, isolation.HomePrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
