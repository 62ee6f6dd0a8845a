// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

var update = flag.Bool("update", false, "rewrite what the files in testdata expect")

const (
	cell     = isolation.LevelCell
	landlock = isolation.LevelLandlock
	sandbox  = isolation.LevelSandbox
	host     = isolation.LevelHost
)

// hostWith is a machine with these variables and nothing else.
func hostWith(variables ...string) isolation.Host {
	return isolation.Host{Environ: func() []string { return variables }, Home: "/home/of/nobody/here"}
}

func plant(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// planted is a secret that must never be printed.
const planted = "sk-ant-planted-0123456789"

func checkAuthError(t *testing.T, err error, want ...string) {
	t.Helper()
	if _, ok := errors.AsType[*isolation.AuthError](err); !ok {
		t.Fatalf("got %v, want an AuthError", err)
	}
	for _, text := range append(want, "\n  next: ") {
		if !strings.Contains(advice.Text(err), text) {
			t.Errorf("got %v, want %q in it", err, text)
		}
	}
	if strings.Contains(advice.Text(err), "planted") {
		t.Errorf("the secret is in %v", err)
	}
}

// checkRefused checks that an error names the field and has the text and the advice; or that there is no error.
func checkRefused(t *testing.T, err error, field, text string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("got %v, want it accepted", err)
		}
		return
	}
	refused, ok := errors.AsType[*isolation.RefusedError](err)
	if !ok {
		t.Fatalf("got %v, want a RefusedError", err)
	}
	if !strings.HasPrefix(refused.Field, field) || !strings.Contains(advice.Text(err), text) || !strings.Contains(advice.Text(err), "\n  next: ") {
		t.Errorf("got %v, want it to name %s, to say %q and what to do", err, field, text)
	}
}
