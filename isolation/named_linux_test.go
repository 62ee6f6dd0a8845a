// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// inCell runs a command of bash in place of the CLI, and returns what it says.
func inCell(t *testing.T, i *isolation.Isolation, o *claude.Options, command string) string {
	t.Helper()
	cell, err := i.Open(t.Context(), o, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cell.Close(); err != nil {
			t.Error(err)
		}
	}()
	p, err := o.Spawner.Spawn(t.Context(), claude.Command{Path: "/bin/bash", Args: []string{"-c", "exec 2>&1; " + command}, Dir: o.Dir, Env: o.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin().Close()
	said, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	return string(said)
}

// Folders that were named are inside, with the rights that were named, and so is the host's loopback if it
// was; nothing beside them is.
func TestWhatAnIsolationNamesIsInside(t *testing.T) {
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
	isolated := func(localhost bool) *isolation.Isolation {
		return &isolation.Isolation{
			APIKey: "key", TempDir: dir, Host: hostWith(),
			Sandbox: &isolation.Sandbox{WritablePaths: []string{"../out"}, ReadablePaths: []string{at("data")}},
			Network: &isolation.NetworkPolicy{AllowLocalhost: localhost},
		}
	}
	options := func() *claude.Options { return &claude.Options{Dir: at("work"), AddDirs: []string{at("more")}} }

	said := inCell(t, isolated(true), options(), `
		for name in work out data more other; do cat ../$name/kept; echo made > ../$name/made; done
		ask() { exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'GET %s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' $1 >&3; cat <&3; }
		ask `+server.URL)
	for _, want := range []string{"kept in work", "kept in out", "kept in data", "kept in more", "served by the host"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not inside:\n%s", want, said)
		}
	}
	if strings.Contains(said, "kept in other") {
		t.Errorf("a folder that nobody named is inside:\n%s", said)
	}
	for name, writable := range map[string]bool{"work": true, "out": true, "data": false, "more": true, "other": false} {
		if _, err := os.Stat(at(name + "/made")); (err == nil) != writable {
			t.Errorf("%s: written %t, want %t", name, err == nil, writable)
		}
	}
	closed := inCell(t, isolated(false), options(), `exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'GET `+server.URL+`/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3; cat <&3`)
	if !strings.Contains(closed, "403 Forbidden") || strings.Contains(closed, "served by the host") {
		t.Errorf("without AllowLocalhost the host's loopback says:\n%s", closed)
	}
}
