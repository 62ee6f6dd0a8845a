// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace"
)

const crashEnv = "DROVER_TEST_WRITE_BACK"

// TestChild_WriteBackCrash is no test but the process that is killed. It writes two mounts back.
func TestChild_WriteBackCrash(t *testing.T) {
	dir := os.Getenv(crashEnv)
	if dir == "" {
		t.Skip("only for the tests of crashes")
	}
	dir, point, _ := strings.Cut(dir, "|")
	if point != "" {
		workspace.SetTestPoint(func(now string) {
			if now == point {
				must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
				select {}
			}
		})
	}
	w, err := workspace.Open(context.Background(), crashOptions(dir))
	must(t, err)
	for i := range crashFiles {
		edits(map[string]string{fmt.Sprintf("one/f%d", i): "new", fmt.Sprintf("two/d/n%d", i): "new"}, fmt.Sprintf("two/f%d", i))(t, w.Root())
	}
	plant(t, filepath.Join(dir, "one"), map[string]string{"f0": "changed meanwhile"})
	fmt.Println("ready")
	_, err = w.WriteBack(context.Background(), &workspace.WriteBackOptions{State: filepath.Join(dir, "state"), Force: true})
	must(t, err)
	fmt.Println("done")
	must(t, w.Close())
}

const crashFiles = 40

func crashOptions(dir string) *workspace.Options {
	return &workspace.Options{
		Mounts:           []workspace.HostMount{{HostPath: filepath.Join(dir, "one")}, {HostPath: filepath.Join(dir, "two")}},
		AllowedHostRoots: []string{dir},
		TempDir:          filepath.Join(dir, "temp"),
	}
}

// crash runs the child until the point, or for the time after it is ready, and reports whether it was done.
func crash(t *testing.T, dir, point string, after time.Duration) bool {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestChild_WriteBackCrash$", "-test.v")
	child.Env = append(os.Environ(), crashEnv+"="+dir+"|"+point)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	done := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" && point == "" {
			time.Sleep(after)
			_ = child.Process.Kill()
		}
		done = done || lines.Text() == "done"
		if strings.Contains(lines.Text(), ".go:") {
			t.Error(lines.Text())
		}
	}
	_ = child.Wait()
	return done
}

func plantForCrash(t *testing.T) (dir string, before, after map[string]string) {
	t.Helper()
	dir = t.TempDir()
	for i := range crashFiles {
		plant(t, dir, map[string]string{fmt.Sprintf("one/f%d", i): "old", fmt.Sprintf("two/f%d", i): "old"})
	}
	plant(t, dir, map[string]string{"temp/": ""})
	before = hosts(t, dir)
	before["one/f0"] = "0644 changed meanwhile"
	after = map[string]string{"one/": "0755", "two/": "0755", "two/d/": "0755"}
	for i := range crashFiles {
		after[fmt.Sprintf("one/f%d", i)], after[fmt.Sprintf("two/d/n%d", i)] = "0644 new", "0644 new"
	}
	return dir, before, after
}

func hosts(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := harvest(t, dir)
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasPrefix(name, "one") && !strings.HasPrefix(name, "two") })
	return all
}

// checkCrash recovers, and makes sure that both mounts are as before or both as wanted, and that the
// host's side of the conflict is somewhere.
func checkCrash(t *testing.T, dir string, before, after map[string]string) {
	t.Helper()
	state := filepath.Join(dir, "state")
	if _, err := workspace.RecoverWriteBack(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	got := hosts(t, dir)
	if !maps.Equal(got, before) && !maps.Equal(got, after) {
		t.Fatalf("the host is neither as before nor as wanted; it differs from before (-before +got):\n%s", cmp.Diff(before, got))
	}
	found := strings.Contains(got["one/f0"], "changed meanwhile")
	for name, content := range harvest(t, dir) {
		found = found || strings.HasPrefix(name, "state/aside-") && content == "0644 changed meanwhile"
		if strings.HasPrefix(name, "state/run-") {
			t.Errorf("%s is left", name)
		}
	}
	if !found {
		t.Error("the host's side of the conflict is lost")
	}
	if again, err := workspace.RecoverWriteBack(t.Context(), state); len(again) > 0 || err != nil {
		t.Errorf("recovering again: %q, %v", again, err)
	}
}

func TestWriteBack_KilledAtEachPointIsAtomic(t *testing.T) {
	for point, committed := range map[string]bool{
		"before 0": false, "before 1": false, "applied": false, "committed": true, "ended 0": true, "ended 1": true,
	} {
		t.Run(point, func(t *testing.T) {
			dir, before, after := plantForCrash(t)
			if crash(t, dir, point, 0) {
				t.Fatal("the child was not killed")
			}
			checkCrash(t, dir, before, after)
			if got := maps.Equal(hosts(t, dir), after); got != committed {
				t.Errorf("all was written: %t, want %t", got, committed)
			}
		})
	}
}

func TestWriteBack_KilledAtAnyTimeLosesNothing(t *testing.T) {
	killed := 0
	for range testkit.Size(8, 200) {
		dir, before, after := plantForCrash(t)
		if !crash(t, dir, "", time.Duration(rand.IntN(250))*time.Millisecond) {
			killed++
		}
		checkCrash(t, dir, before, after)
		must(t, os.RemoveAll(dir))
	}
	t.Logf("%d were killed before their end", killed)
}

func TestWriteBack_RecoversAnInterruptedWriteBack(t *testing.T) {
	dir, before, _ := plantForCrash(t)
	crash(t, dir, "before 1", 0)
	w, err := workspace.Open(t.Context(), crashOptions(dir))
	must(t, err)
	defer w.Close()
	opts := &workspace.WriteBackOptions{State: filepath.Join(dir, "state"), DryRun: true}
	planned, err := w.WriteBack(t.Context(), opts)
	want := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
	if diff := cmp.Diff(want, planned.Recovered); diff != "" || err != nil {
		t.Errorf("error %v, the dry run would recover (-want +got):\n%s", err, diff)
	}
	if maps.Equal(hosts(t, dir), before) {
		t.Error("the dry run has recovered")
	}
	opts.DryRun = false
	done, err := w.WriteBack(t.Context(), opts)
	if diff := cmp.Diff(want, done.Recovered); diff != "" || err != nil {
		t.Errorf("error %v, recovered (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(before, hosts(t, dir)); diff != "" {
		t.Errorf("host (-before +got):\n%s", diff)
	}
}

// What is below a folder is a part of what was cut short there.
func TestWriteBack_RecoversAnInterruptedWriteBackOfAParentFolder(t *testing.T) {
	dir, before, _ := plantForCrash(t)
	plant(t, dir, map[string]string{"two/sub/x": "1"})
	before["two/sub/"], before["two/sub/x"] = "0755", "0644 1"
	crash(t, dir, "applied", 0)
	w := openOn(t, filepath.Join(dir, "two/sub"), nil)
	done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: filepath.Join(dir, "state")})
	if want := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}; err != nil || !cmp.Equal(want, done.Recovered) {
		t.Errorf("recovered %q, %v; want %q", done.Recovered, err, want)
	}
	if diff := cmp.Diff(before, hosts(t, dir)); diff != "" {
		t.Errorf("host (-before +got):\n%s", diff)
	}
}
