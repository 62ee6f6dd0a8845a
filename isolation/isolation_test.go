// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

var _ = flag.Bool("update", false, "rewrite what the files in testdata expect")

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

func TestIsolation_PrintsWithoutItsSecrets(t *testing.T) {
	i := isolation.Isolation{APIKey: planted, Env: map[string]string{"NAME": planted}, Weakest: host}
	text := fmt.Sprintf("%v %+v %#v %s", i, i, &i, &i)
	if strings.Contains(text, "planted") || !strings.Contains(text, "NAME") || !strings.Contains(text, "Weakest:host") {
		t.Errorf("got %s, want names without secrets", text)
	}
}

func checkAuthError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if _, ok := errors.AsType[*isolation.AuthError](err); !ok {
		t.Fatalf("got %v, want an AuthError", err)
	}
	for _, text := range append(texts, "\n  next: ") {
		if !strings.Contains(advice.Text(err), text) {
			t.Errorf("got %v, want %q in it", err, text)
		}
	}
	if strings.Contains(advice.Text(err), "planted") {
		t.Errorf("the secret is in %v", err)
	}
}
