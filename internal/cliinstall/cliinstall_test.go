// SPDX-License-Identifier: Apache-2.0

package cliinstall

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

// fakeNPM puts an npm on PATH that does what script says, in place of a real one.
func fakeNPM(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell: run on Linux or macOS")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// goodNPM lays out what the real one does, with programs of zeros, and counts its runs.
func goodNPM(t *testing.T, count string) {
	t.Helper()
	name := platformPackages(runtime.GOOS, runtime.GOARCH, onMusl())[0]
	fakeNPM(t, `
echo "$*" >> `+count+`
grep -q claude-code-oldest package-lock.json || exit 1
for d in node_modules node_modules/claude-code-oldest/node_modules; do
  mkdir -p $d/@anthropic-ai/claude-code-`+name+`
  dd if=/dev/zero of=$d/@anthropic-ai/claude-code-`+name+`/claude bs=1048576 count=1 2>/dev/null
  chmod +x $d/@anthropic-ai/claude-code-`+name+`/claude
done
`)
}

func TestEnsure_ConcurrentCallersInstallOnce(t *testing.T) {
	root, count := t.TempDir(), filepath.Join(t.TempDir(), "count")
	goodNPM(t, count)
	var wg sync.WaitGroup
	fresh := make(chan bool, 8)
	for range cap(fresh) {
		wg.Go(func() {
			in, err := Ensure(t.Context(), root)
			if err != nil {
				t.Error(err)
			}
			fresh <- in.Fresh
		})
	}
	wg.Wait()
	close(fresh)
	var installs int
	for f := range fresh {
		if f {
			installs++
		}
	}
	runs, _ := os.ReadFile(count)
	if got := strings.Count(string(runs), "\n"); got != 1 || installs != 1 {
		t.Errorf("runs of npm: got %d, fresh installs %d, want one of each", got, installs)
	}
	if !strings.HasPrefix(string(runs), "ci --omit-lockfile-registry-resolved --ignore-scripts") {
		t.Errorf("npm was called with %q", runs)
	}
	left, _ := filepath.Glob(filepath.Join(root, ".drover", "cli-new-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEnsure_SecondCallIsQuickAndRepairs(t *testing.T) {
	root, count := t.TempDir(), filepath.Join(t.TempDir(), "count")
	goodNPM(t, count)
	first, err := Ensure(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var again Install
	best := time.Hour // of some runs: a busy machine may stretch any single one
	for range 5 {
		began := time.Now()
		again, err = Ensure(t.Context(), root)
		if err != nil || again.Fresh {
			t.Errorf("second run: got fresh %v, %v, want nothing done", again.Fresh, err)
		}
		best = min(best, time.Since(began))
	}
	if best > 50*time.Millisecond {
		t.Errorf("second run took %s, want under 50 ms", best)
	}
	want := Install{Pinned: filepath.Join(root, ".drover/bin/claude"), Oldest: filepath.Join(root, ".drover/bin/claude-2.1.197")}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	damage := map[string]func() error{
		"link removed":  func() error { return os.Remove(first.Oldest) },
		"program gone":  func() error { return os.RemoveAll(filepath.Join(root, ".drover/cli/node_modules")) },
		"other lock":    func() error { return os.WriteFile(filepath.Join(root, ".drover/cli/stamp"), []byte("x"), 0o644) },
		"stub in place": func() error { return os.WriteFile(first.Pinned, []byte("stub"), 0o755) },
	}
	for name, do := range damage {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if in, err := Ensure(t.Context(), root); err != nil || !in.Fresh {
			t.Errorf("%s: got fresh %v, %v, want a new install", name, in.Fresh, err)
		}
	}
}

func TestEnsure_ErrorsNameTheRepair(t *testing.T) {
	cases := []struct {
		name, npm string
		texts     []string
	}{
		{"npm fails", "echo E404 no such thing; exit 1", []string{"E404", "setup", "npm view"}},
		{"nothing installed", "exit 0", []string{runtime.GOARCH, "setup"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fakeNPM(t, c.npm)
			root := t.TempDir()
			_, err := Ensure(t.Context(), root)
			checkError(t, err, append(c.texts, root)...)
			if _, err := os.Stat(filepath.Join(root, ".drover/cli")); err == nil {
				t.Error("a failed install was left in place")
			}
		})
	}
	t.Run("no npm", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := Ensure(t.Context(), t.TempDir())
		checkError(t, err, "npm", "nodejs")
		if !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("got %v, want exec.ErrNotFound", err)
		}
	})
	t.Run("canceled while waiting", func(t *testing.T) {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, ".drover"), 0o755); err != nil {
			t.Fatal(err)
		}
		unlock, err := lock(t.Context(), filepath.Join(root, ".drover/cli.lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = Ensure(ctx, root)
		checkError(t, err, "cli.lock")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

func checkError(t *testing.T, err error, texts ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Repair == "" {
		t.Fatalf("got %v, want an *Error with a repair", err)
	}
	for _, text := range texts {
		if !strings.Contains(advice.Text(err), text) {
			t.Errorf("message %q does not say %q", err, text)
		}
	}
}

func TestNPMEnvironment_IsMinimal(t *testing.T) {
	got := npmEnv([]string{
		"PATH=/bin", "HOME=/h", "npm_config_registry=r", "NPM_CONFIG_CACHE=c", "https_proxy=p",
		"ANTHROPIC_API_KEY=secret", "GITHUB_TOKEN=secret", "NODE_OPTIONS=--inspect",
	})
	want := []string{"PATH=/bin", "HOME=/h", "npm_config_registry=r", "NPM_CONFIG_CACHE=c", "https_proxy=p"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The lock file pins both versions with a checksum and holds no address.
func TestLockFile_PinsVersionsWithChecksums(t *testing.T) {
	var lock struct {
		Packages map[string]struct {
			Version, Integrity, Resolved string
			Dependencies                 map[string]string
		}
	}
	if err := json.Unmarshal(lockJSON, &lock); err != nil {
		t.Fatal(err)
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" {
			t.Errorf("%s: has a download address", name)
		}
		if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s: has no checksum", name)
		}
		want := Pinned
		if strings.Contains(name, "claude-code-oldest") {
			want = Oldest
		}
		if name != "" && p.Version != want {
			t.Errorf("%s: version %s, want %s", name, p.Version, want)
		}
	}
	var manifest struct{ Dependencies map[string]string }
	if err := json.Unmarshal(packageJSON, &manifest); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lock.Packages[""].Dependencies, manifest.Dependencies); diff != "" {
		t.Errorf("package.json and lock differ (-lock +manifest):\n%s", diff)
	}
	for _, platform := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"}} {
		name := platformPackages(platform[0], platform[1], false)[0]
		if _, ok := lock.Packages["node_modules/@anthropic-ai/claude-code-"+name]; !ok {
			t.Errorf("%v: no package %s in the lock", platform, name)
		}
	}
}
