// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// childTask is the variable that makes this program a child which applies a plan or recovers, and may be
// killed at that.
const childTask = "APPLYTREE_CHILD"

func TestMain(m *testing.M) {
	if task := os.Getenv(childTask); task != "" {
		if err := child(task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// child does its task: "apply", "all or nothing" or "recover". It kills itself before its nth change.
func child(task string) error {
	n, _ := strconv.Atoi(os.Args[2])
	count := 0
	testFault = func(string, string) error {
		if count++; count == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it comes
		}
		return nil
	}
	b := &bench{dir: filepath.Join(os.Args[1], "tree"), work: filepath.Join(os.Args[1], "work"), wanted: filepath.Join(os.Args[1], "wanted")}
	root, err := filetree.Open(b.dir)
	if err != nil {
		return err
	}
	b.root = root
	if task == "recover" {
		_, _, err := Recover(b.root, b.work)
		return err
	}
	b.steps = planFor(sketchOf(loud{}, b.dir), sketchOf(loud{}, b.wanted))
	fmt.Println("ready")
	_, err = b.apply(task == "all or nothing")
	return err
}

// loud is a tester for the child, which has no test.
type loud struct{}

func (loud) Helper()                      {}
func (loud) Cleanup(func())               {}
func (loud) Error(args ...any)            { panic(fmt.Sprint(args...)) }
func (loud) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (loud) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// spawn starts a child. With a delay it is killed that long after it is ready; it reports whether it died.
func spawn(t tester, b *bench, task string, n int, delay time.Duration) (killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], filepath.Dir(b.dir), strconv.Itoa(n))
	cmd.Env = append(os.Environ(), childTask+"="+task)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if delay > 0 {
		_, _ = out.Read(make([]byte, 16))
		time.Sleep(delay)
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err == nil {
		return false
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v", cmd.ProcessState)
	}
	return true
}

// everything has a bit of each kind of change.
func everything() *struct{ before, after layout } {
	before, after := layout{}, layout{}
	for i, name := range slices.Sorted(maps.Keys(changes)) {
		in := fmt.Sprintf("%02d/", i)
		for dst, src := range map[*layout]layout{&before: changes[name].before, &after: changes[name].after} {
			(*dst)[in] = node{}
			for p, n := range src {
				if n.link != "" {
					n.link = in + n.link
				}
				(*dst)[in+p] = n
			}
		}
	}
	return &struct{ before, after layout }{before, after}
}

func TestRecover_ProcessKilledAtEachChange(t *testing.T) {
	some := changes["folders that allow nothing"]
	for _, task := range []string{"apply", "all or nothing"} {
		t.Run(task, func(t *testing.T) {
			for n := 1; ; n++ {
				b := setUp(t, some.before, some.after)
				killed := spawn(t, b, task, n, 0)
				if killed && n%testkit.Size(5, 1) == 0 {
					for m := 1; spawn(t, b, "recover", m, 0); m += 2 {
					}
				}
				b.afterKill(t, task)
				if !killed {
					return
				}
			}
		})
	}
}

func TestRecover_ProcessKilledAtAnyMoment(t *testing.T) {
	all := everything()
	for round := range testkit.Size(12, 200) {
		task := []string{"apply", "all or nothing"}[round%2]
		b := setUpIn(t, inMemory(), all.before, all.after)
		contents := slices.Collect(maps.Values(sketchOf(t, b.dir).content))
		spawn(t, b, task, 0, time.Duration(1+rand.IntN(12000))*time.Microsecond)
		if round%3 == 0 {
			spawn(t, b, "recover", rand.IntN(40), 0)
		}
		b.afterKill(t, task)
		b.nothingLost(t, contents)
	}
}

// afterKill recovers, and fails unless the tree is whole.
func (b *bench) afterKill(t tester, task string) {
	t.Helper()
	began := pathExists(filepath.Join(b.work, string(applying)))
	recoverAll(t, b)
	wholly(t, b, task == "all or nothing", began)
	if pathExists(b.work) {
		b.tidy(t)
	}
}

func TestApply_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^Test(Apply_(Makes|IsExact|Fault|Unexpected|AllOrNothing|Concurrent|Exchanged|Metadata|Moved|Touched|WorkFolderOnAnotherDisk|SocketThat|FilesKept|Invalid|FailedStaging|Restores)|Recover_(CrashIn|Process))")
}
