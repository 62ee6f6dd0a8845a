// SPDX-License-Identifier: Apache-2.0

package safelog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/internal/safelog"
)

// broken panics in the methods that are named.
type broken struct {
	slog.Handler
	in string
}

func (b broken) Enabled(ctx context.Context, l slog.Level) bool {
	b.fail("Enabled")
	return b.Handler.Enabled(ctx, l)
}

func (b broken) Handle(ctx context.Context, r slog.Record) error {
	b.fail("Handle")
	return b.Handler.Handle(ctx, r)
}

func (b broken) WithAttrs(a []slog.Attr) slog.Handler {
	b.fail("WithAttrs")
	return broken{b.Handler.WithAttrs(a), b.in}
}

func (b broken) WithGroup(g string) slog.Handler {
	b.fail("WithGroup")
	return broken{b.Handler.WithGroup(g), b.in}
}

func (b broken) fail(method string) {
	if b.in == method {
		panic("no disk")
	}
}

func TestLogger_PanicLosesTheRecordOnly(t *testing.T) {
	for in, want := range map[string]string{
		"": "msg=hello a=1 g.b=2", "Enabled": "", "Handle": "", "WithAttrs": "msg=hello g.b=2", "WithGroup": "msg=hello a=1 b=2",
	} {
		var out bytes.Buffer
		plain := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})
		log := safelog.Logger(slog.New(broken{plain, in}))
		log.With("a", 1).WithGroup("g").Info("hello", "b", 2)
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("panic in %q: got %q, want %q", in, got, want)
		}
		if again := safelog.Logger(log); again != log {
			t.Errorf("panic in %q: the logger is wrapped twice", in)
		}
	}
	safelog.Logger(nil).Info("hello")
}

// A package that takes a logger has a default for it, and only this package gives one. So each logger
// of a user passes through here.
func TestLogger_EveryPackageThatTakesALoggerUsesIt(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == "examples" || path == "bench" || path == "internal/safelog" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if strings.Contains(string(text), "slog.DiscardHandler") {
			t.Errorf("%s: a default for a logger\n  next: use safelog.Logger", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

type advisedError struct{ next string }

func (advisedError) Error() string { return "the disk is full" }

func (e *advisedError) Advice() string {
	if e == nil {
		panic("no error")
	}
	return e.next
}

func TestHandler_AdviceOfAnErrorIsAnAttribute(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"advice":    {fmt.Errorf("saving: %w", &advisedError{"make room"}), `err="saving: the disk is full" next="make room"`},
		"none":      {errors.New("no"), `err=no`},
		"it panics": {(*advisedError)(nil), ``},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			safelog.Logger(slog.New(slog.NewTextHandler(&b, nil))).Error("x", "err", test.err)
			if got := b.String(); !strings.Contains(got, test.want+"\n") && test.want != "" || !strings.Contains(got, "msg=x") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
