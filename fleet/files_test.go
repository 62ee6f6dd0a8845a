// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// filesIn is what a folder has: the mode of each path and a hash of its content, or where a link leads.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		if info.Mode().Type() == fs.ModeSymlink {
			target, _ := os.Readlink(name)
			what += " " + target
		}
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x %s", sha256.Sum256(data), info.ModTime().UTC().Format(time.RFC3339Nano))
		}
		all[rel] = what
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// The next attempt has the files of the finished calls, and not those of the one that was under way. Only what a call has
// changed is kept.
func TestWorker_FilesOfFinishedCallsAreRestored(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		large := bytes.Repeat([]byte("0123456789abcdef"), 50_000)
		name := "caf\xe9" // not UTF-8
		calls := []func(in func(string) string){
			func(in func(string) string) {
				must(os.MkdirAll(in("sub/empty"), 0o750))
				must(os.WriteFile(in("sub/large"), large, 0o640))
				must(os.WriteFile(in("a"), []byte("one"), 0o600))
				must(os.WriteFile(in("gone"), []byte("one"), 0o600))
				must(os.WriteFile(in(name), nil, 0o755))
				must(os.Symlink("sub/large", in("link")))
				must(os.Symlink("/etc", in("out")))
				must(os.Mkdir(in("turned"), 0o700))
				must(os.WriteFile(in("turned/x"), nil, 0o600))
				must(os.WriteFile(in("unfolded"), nil, 0o600))
			},
			func(in func(string) string) {
				must(os.WriteFile(in("a"), []byte("two"), 0o600))
				must(os.Remove(in("gone")))
				must(os.RemoveAll(in("turned")))
				must(os.WriteFile(in("turned"), []byte("a file now"), 0o400))
				must(os.Remove(in("unfolded")))
				must(os.Mkdir(in("unfolded"), 0o711))
				must(os.WriteFile(in("unfolded/x"), nil, 0o600))
				must(os.Chmod(in("sub"), 0o500))
			},
		}
		var recorded func(n int)
		step := func(n int, do func(in func(string) string)) agenttest.Step {
			return func(r *agenttest.Run) {
				root := r.Request.Workspace.Root()
				c := event.ToolCall{ID: event.CallID(ident.NewUUID()), Name: "Bash", Input: json.RawMessage(fmt.Sprintf(`{"command":"%d"}`, n))}
				r.Yield(event.Event{Payload: c}, nil)
				if d := r.Request.Host.Decide(r.Context, c); d.Verdict == event.Allow {
					do(func(name string) string { return filepath.Join(root, name) })
					if r.Context.Err() != nil { // it has died
						return
					}
					r.Yield(event.Event{Payload: event.ToolResult{ID: c.ID, Name: c.Name, Status: event.ToolSuccess, Output: json.RawMessage(`"done"`)}}, nil)
					recorded(n + 1)
				}
			}
		}
		dying, f := open(t), open(t)
		r := submit(t, f, "Why?", "")
		recorded = func(n int) { // an agent makes a call when the one before is recorded
			for record, err := range r.Events(t.Context(), 0) {
				if strings.Contains(string(record.Data), `"tool:invoked"`) {
					n--
				}
				if must(err); n == 0 || err != nil {
					return
				}
			}
		}
		var want, got map[string]string
		dead, release := make(chan struct{}), make(chan struct{})
		work(t, fleet.Worker{Fleet: dying, Lease: time.Second, Agents: []fleet.Agent{asks(nil, step(0, calls[0]), step(1, calls[1]),
			func(r *agenttest.Run) { want = filesIn(t, r.Request.Workspace.Root()) },
			step(2, func(in func(string) string) {
				must(os.WriteFile(in("half"), []byte("under way"), 0o600))
				_ = dying.Close()
				close(dead)
				<-release // a worker that is cut off may not notice it for long
			}), agenttest.Block())}})
		t.Cleanup(func() { close(release) })
		<-dead
		var once sync.Once
		work(t, fleet.Worker{Fleet: f, Lease: time.Second, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
			once.Do(func() { got = filesIn(t, r.Request.Workspace.Root()) })
		}, answers("ok"))}})
		if result := wait(t, r); result.State != fleet.Succeeded || result.Attempts != 2 {
			t.Errorf("the run ended with %+v, want success in the second attempt", result)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 7 {
			t.Errorf("the files of the next attempt (-want +got):\n%s", diff)
		}
		sizes, objects, err := fleet.KeptFiles(t.Context(), f, r.ID())
		if err != nil || len(sizes) != 2 || sizes[1] > 2000 || objects != 1 {
			t.Errorf("the log has changes of %v bytes and the store %d contents, %v; want small ones of two calls, and one content", sizes, objects, err)
		}
		if err := r.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left, _, err := fleet.Kept(t.Context(), f, r); err != nil || slices.ContainsFunc(left, func(o string) bool { return strings.HasPrefix(o, r.ID()) }) {
			t.Errorf("the removed run has left %q, %v", left, err)
		}
	})
}

// A workspace with mounts is made again of them, and then gets what the calls have changed. A link of the agent leads no file out.
func TestWorker_FilesOfMountsAreRestored(t *testing.T) {
	name := "t" + ident.NewUUID()
	dying, f := openOn(t, "embedded", name), openOn(t, "embedded", name)
	host, outside := t.TempDir(), t.TempDir()
	for _, file := range []string{"kept", "changed", "deleted", "folder/x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(host, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(host, file), []byte("of the host"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	works := func(steps ...agenttest.Step) []fleet.Agent {
		return []fleet.Agent{fleet.Handle("asks", fleet.Handler[question, question]{
			Adapter: agenttest.New(steps...),
			Prepare: func(ctx context.Context, q question, s *session.Session) (*prompt.Prompt[question], *drover.Options, error) {
				w, err := workspace.Open(ctx, &workspace.Options{Session: s, AllowedHostRoots: []string{host}, Mounts: []workspace.HostMount{{HostPath: host, MountPath: "m"}}})
				if err != nil {
					return nil, nil, err
				}
				p, err := prompt.NewPrompt[question]("fleet", "files", prompt.Markdown("task", "Task", q.Text), w.Section())
				return p, nil, err
			},
		})}
	}
	var want, got map[string]string
	dead := make(chan struct{})
	work(t, fleet.Worker{Fleet: dying, Lease: time.Second, Agents: works(func(r *agenttest.Run) {
		in := func(name string) string { return filepath.Join(r.Request.Workspace.Root(), "m", name) }
		c := event.ToolCall{ID: "a", Name: "Bash", Input: json.RawMessage(`{"command":"x"}`)}
		r.Yield(event.Event{Payload: c}, nil)
		r.Request.Host.Decide(r.Context, c)
		err := errors.Join(os.WriteFile(in("changed"), []byte("of the agent"), 0o600), os.Remove(in("deleted")),
			os.RemoveAll(in("folder")), os.Symlink(outside, in("folder")), os.WriteFile(in("new"), nil, 0o600))
		if err != nil {
			t.Error(err)
		}
		want = filesIn(t, r.Request.Workspace.Root())
		r.Yield(event.Event{Payload: event.ToolResult{ID: c.ID, Name: c.Name, Status: event.ToolSuccess, Output: json.RawMessage(`"done"`)}}, nil)
	}, func(r *agenttest.Run) { close(dead) }, agenttest.Block())})
	r := submit(t, f, "Why?", "")
	<-dead
	for record, err := range r.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(record.Data), `"tool:invoked"`) {
			break
		}
	}
	_ = dying.Close()
	work(t, fleet.Worker{Fleet: f, Lease: time.Second, Agents: works(func(r *agenttest.Run) { got = filesIn(t, r.Request.Workspace.Root()) },
		agenttest.Emit(event.Done{Status: event.DoneSuccess, Output: json.RawMessage(`{"text":"ok"}`)}))})
	if result := wait(t, r); result.State != fleet.Succeeded || result.Attempts != 2 {
		t.Errorf("the run ended with %+v, want success in the second attempt", result)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 5 {
		t.Errorf("the files of the next attempt (-want +got):\n%s", diff)
	}
}
