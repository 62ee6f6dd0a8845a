// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

// A target is a machine with something to steal and to break, and a CLI in a workspace there. All of it
// is in a folder that only its user may enter.
type target struct {
	*claudetest.RealCLI
	opts    *claude.Options
	request agent.Request // but for the prompt
	// secret is in files and variables of the host, key pays for the model.
	secret, key string
	dir         string // of the host's files
	file        string // holds the secret
	servers     map[string]*server
	victim      *exec.Cmd
	before      map[string]string
}

// variable of the host that no agent may see.
const secretVariable = "ISOLATION_TEST_SECRET"

func newTarget(t *testing.T) *target {
	t.Helper()
	return newTargetWith(t, claudetest.CLI(t))
}

func newTargetWith(t *testing.T, cli *claudetest.RealCLI) *target {
	t.Helper()
	h := &target{RealCLI: cli, secret: "secret-" + rand.Text(), key: "sk-ant-api03-" + rand.Text()}
	t.Setenv(secretVariable, h.secret)
	if info, err := os.Stat(h.Root); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%s can be entered by others: %v, %v", h.Root, info, err)
	}
	h.dir = filepath.Join(h.Root, "host")
	h.file = filepath.Join(h.dir, "file")
	mustMake(t, h.file, h.secret)
	mustMake(t, filepath.Join(h.Root, "other", "file"), h.secret)
	testkit.PutProgram(t, os.Args[0], h.Work)
	h.Path = testkit.PutProgram(t, h.Path, h.Root)
	h.listen(t)
	h.startVictim(t)
	return h
}

// agent is an agent that may do everything without a question, and does what the turns say.
func (h *target) agent(t *testing.T, turns ...script.Turn) *claudetest.Model {
	t.Helper()
	model := claudetest.NewModel(t, turns...)
	h.opts = h.Options(model)
	h.SetEnv(h.opts, model, map[string]string{"ANTHROPIC_API_KEY": h.key})
	h.opts.PermissionMode = claude.ModeBypassPermissions
	h.before = h.look(t)
	return model
}

// beside is the same machine with another workspace.
func (h *target) beside(t *testing.T) *target {
	t.Helper()
	cli, other := *h.RealCLI, *h
	cli.Work = filepath.Join(h.Root, "second")
	if err := os.Mkdir(cli.Work, 0o700); err != nil {
		t.Fatal(err)
	}
	testkit.PutProgram(t, os.Args[0], cli.Work)
	other.RealCLI = &cli
	return &other
}

// attacker is the command line of the attacking program, from the workspace.
func attacker(args ...string) string {
	return attackVariable + "=1 ./" + filepath.Base(os.Args[0]) + " '" + strings.Join(args, "' '") + "'"
}

func mustMake(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A server of the host counts what reaches it.
type server struct {
	address string
	reached atomic.Int64
}

func (h *target) listen(t *testing.T) {
	t.Helper()
	h.servers = map[string]*server{}
	for name, at := range map[string][2]string{
		"tcp": {"tcp", "127.0.0.1:0"}, "tcp6": {"tcp6", "[::1]:0"}, "udp": {"udp", "127.0.0.1:0"}, "udp6": {"udp6", "[::1]:0"},
		"path": {"unix", filepath.Join(h.dir, "socket")}, "abstract": {"unix", "@" + rand.Text()},
	} {
		s := &server{}
		err := s.serve(t, at[0], at[1])
		if err != nil && strings.HasSuffix(name, "6") {
			t.Logf("no IPv6 here: %v", err)
			s.address = "[::1]:9"
		} else if err != nil {
			t.Fatal(err)
		}
		h.servers[name] = s
	}
}

func (s *server) serve(t *testing.T, network, address string) error {
	if strings.HasPrefix(network, "udp") {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		s.address = c.LocalAddr().String()
		s.until(t, c.Close, func() error { _, _, err := c.ReadFrom(make([]byte, 99)); return err })
		return nil
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	s.address = l.Addr().String()
	s.until(t, l.Close, func() error {
		c, err := l.Accept()
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	return nil
}

// until counts how often next succeeds until the end of the test.
func (s *server) until(t *testing.T, stop, next func() error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for next() == nil {
			s.reached.Add(1)
		}
	})
	t.Cleanup(func() { _ = stop(); wg.Wait() })
}

// startVictim starts a process for others to kill.
func (h *target) startVictim(t *testing.T) {
	t.Helper()
	h.victim = exec.Command("/bin/cat")
	h.victim.Env = []string{secretVariable + "=" + h.secret}
	stdin, err := h.victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := h.victim.Wait(); err != nil {
			t.Errorf("a process of the host was hit: %v", err)
		}
	})
}

// look is the host's files: each with its mode and content. The workspace is the agent's; of it only
// what would be dangerous outside is listed.
func (h *target) look(t testing.TB) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(h.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inside := strings.HasPrefix(path, h.Work+"/") || strings.HasPrefix(path, filepath.Join(h.Temp, isolation.HomePrefix))
		dangerous := info.Mode()&(fs.ModeDevice|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSocket) != 0
		switch {
		case inside && !dangerous:
			return nil
		case info.Mode().IsRegular() && info.Size() < 1<<20:
			content, _ := os.ReadFile(path)
			seen[path] = fmt.Sprint(info.Mode(), string(content))
		default:
			seen[path] = info.Mode().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// unharmed fails the test if anything has come out.
func (h *target) unharmed(t testing.TB) {
	t.Helper()
	if diff := cmp.Diff(h.before, h.look(t)); diff != "" {
		t.Errorf("the host's files (-before +after):\n%s", diff)
	}
	for name, s := range h.servers {
		if n := s.reached.Load(); n > 0 {
			t.Errorf("the host's server %q was reached %d times", name, n)
		}
	}
	if left := h.processes(); len(left) > 0 {
		t.Errorf("processes outlived the run: %q", left)
	}
}

// processes are those of the attacking program that are alive, after a moment for the kernel.
func (h *target) processes() []string {
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := processesWith(h.Work)
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// processesWith are the command lines of other processes that name a path.
func processesWith(path string) []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		content, _ := os.ReadFile(line)
		cwd, _ := os.Readlink(filepath.Join(filepath.Dir(line), "cwd"))
		if filepath.Dir(line) != fmt.Sprint("/proc/", os.Getpid()) && (strings.Contains(string(content), path) || strings.HasPrefix(cwd, path)) {
			found = append(found, strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	return found
}

// isolation is the default one, with its homes among the host's files.
func (h *target) isolation() *isolation.Isolation { return &isolation.Isolation{TempDir: h.Temp} }

// A record is the events of a run.
type record []event.Event

// run runs the agent to its end.
func (h *target) run(t testing.TB, in *isolation.Isolation, opts *agent.RunnerOptions) record {
	t.Helper()
	r, err := agent.NewRunner(claudecode.New(h.opts).In(in), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all record
	request := h.request
	request.Prompt = "Get out."
	for e, err := range r.Run(ctx, request) {
		if err != nil {
			t.Errorf("the run was refused: %v", err)
			break
		}
		all = append(all, e)
	}
	return all
}

func payloads[P event.Payload](r record) []P {
	var all []P
	for _, e := range r {
		if p, ok := e.Payload.(P); ok {
			all = append(all, p)
		}
	}
	return all
}

// results are the results of tool calls by the id of the call.
func (r record) results() map[string]event.ToolResult {
	all := map[string]event.ToolResult{}
	for _, result := range payloads[event.ToolResult](r) {
		all[string(result.ID)] = result
	}
	return all
}

func (r record) done(t testing.TB) event.Done {
	t.Helper()
	all := payloads[event.Done](r)
	if len(all) != 1 {
		t.Fatalf("%d done events, want one", len(all))
	}
	return all[0]
}

// text is the text of all events, for a search.
func (r record) text(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, e := range r {
		line, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// sortedKeys keep the order of attempts the same in each run.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
