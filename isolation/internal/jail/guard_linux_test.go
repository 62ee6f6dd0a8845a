// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/isolation/internal/jail"
)

// What a guarded program starts cannot open its memory, its descriptors or its environment, and is not
// guarded itself. Without the guard it can.
func TestCell_GuardsItsProgram(t *testing.T) {
	requireCells(t)
	if !jail.Guardable("/bin/sh") {
		t.Skip("the shell does not use the loader of glibc: run where it does")
	}
	const line = `try() { sh -c "$2" >/dev/null 2>&1 && echo "$1: open" || echo "$1: closed"; }
		try memory 'exec 3<>/proc/'$$'/mem'
		try descriptors 'ls /proc/'$$'/fd'
		try output 'exec 3>>/proc/'$$'/fd/2'
		try environment 'cat /proc/'$$'/environ'
		try library 'touch "${BUN_TMPDIR:-/tmp}/library.node"'
		env | grep LD_PRELOAD
		sh -c 'sh -c "cat /proc/\$PPID/environ" >/dev/null && echo children: readable; true'`
	for _, c := range []struct {
		guard bool
		want  []string
	}{
		{true, []string{"memory: closed", "descriptors: closed", "output: closed", "environment: closed", "library: closed"}},
		{false, []string{"memory: open", "descriptors: open", "environment: open", "library: open"}}, // the output depends on the user
	} {
		s := shellSpec(line)
		s.Guard = c.guard
		got := output(t, s)
		for _, want := range append(c.want, "children: readable") {
			if !strings.Contains(got, want) {
				t.Errorf("guard %v: want %q:\n%s", c.guard, want, got)
			}
		}
		if strings.Contains(got, "LD_PRELOAD") {
			t.Errorf("guard %v: programs inherit the guard:\n%s", c.guard, got)
		}
	}
}

func TestGuardable_NeedsTheLoaderOfGlibc(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for name, path := range map[string]string{
		"shell": "/bin/sh", "nothing": filepath.Join(dir, "none"), "folder": dir, "script": write("script", []byte("#!/bin/sh\n")),
		"musl": write("musl", []byte(strings.Replace(string(shell), "/ld-linux", "/ld-musl-", 1))),
		"torn": write("torn", shell[:40]),
	} {
		got[name] = jail.Guardable(path)
	}
	want := map[string]bool{"shell": true, "nothing": false, "folder": false, "script": false, "musl": false, "torn": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("guardable (-want +got):\n%s", diff)
	}
}
