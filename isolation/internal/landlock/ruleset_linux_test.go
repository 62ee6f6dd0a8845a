// SPDX-License-Identifier: Apache-2.0

package landlock

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/internal/testkit"
)

// open opens a ruleset for a test.
func open(t *testing.T, r Ruleset, knows func(rights) bool) (*os.File, Enforced) {
	t.Helper()
	file, enforced, err := r.open(knows)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file, enforced
}

// knowsUpTo is a kernel that knows the first n of the later features.
func knowsUpTo(n int) func(rights) bool {
	return func(r rights) bool {
		for _, f := range later[:n] {
			if f.rights == r {
				return supported(r)
			}
		}
		return false
	}
}

// A trial is something to try: without a ruleset it works.
type trial struct {
	attempt string
	inside  string // outcome under a ruleset of a kernel with the feature
	needs   int    // number of the later feature that restricts it, from 1; 0 is every kernel
}

// either is the outcome of what some kernels of the same version refuse and others do not.
const either = "ok or EACCES"

const (
	refer = iota + 1
	truncate
	tcp
	bind
	ioctl
	abstract
	signals
	paths
	udp
)

// trials sets the stage, and returns the ruleset and what to try.
func trials(t *testing.T, s stage) (Ruleset, []trial) {
	t.Helper()
	read, work, out := s.folder(t, "read"), s.folder(t, "work"), s.folder(t, "out")
	s.folder(t, "work/a")
	s.folder(t, "work/b")
	for _, name := range []string{"read/f", "work/f", "work/a/f", "work/gone", "work/link", "out/f", "out/t", "out/chmod", "out/gone"} {
		s.file(t, name)
	}
	allowed, other := serve(t, "tcp", "127.0.0.1:0"), serve(t, "tcp", "127.0.0.1:0")
	socket := filepath.Join(out, "socket")
	serve(t, "unix", socket)
	s.give(t, socket)
	name := "@drover-landlock-" + filepath.Base(s.dir)
	serve(t, "unix", name)
	r := Ruleset{
		ReadOnly: append(system(), read, s.self), ReadWrite: []string{work}, Devices: []string{"/dev/null"},
		ConnectTCP: []uint16{port(t, allowed)}, BindTCP: []uint16{0},
	}
	in := func(verb, path string) string { return verb + " " + path }
	return r, []trial{
		{in("read", read+"/f"), "ok", 0},
		{in("list", read), "ok", 0},
		{"run /bin/true", "ok", 0},
		{in("write", read+"/f"), "EACCES", 0},
		{in("write", read+"/new"), "EACCES", 0},
		{in("truncate", read+"/f"), "EACCES", truncate},
		{in("write", work+"/f"), "ok", 0},
		{in("truncate", work+"/f"), "ok", 0},
		{in("mkdir", work+"/sub"), "ok", 0},
		{in("fifo", work+"/fifo"), "ok", 0},
		{in("symlink", work+"/symlink"), "ok", 0},
		{in("remove", work+"/gone"), "ok", 0},
		{fmt.Sprintf("rename %s/a/f %s/b/f", work, work), "ok", 0},
		{in("write", "/dev/null"), "ok", 0},
		{in("read", out+"/f"), "EACCES", 0},
		{in("list", out), "EACCES", 0},
		{in("write", out+"/f"), "EACCES", 0},
		{in("write", out+"/new"), "EACCES", 0},
		{in("mkdir", out+"/sub"), "EACCES", 0},
		{in("remove", out+"/gone"), "EACCES", 0},
		{in("truncate", out+"/t"), "EACCES", truncate},
		{fmt.Sprintf("link %s/t %s/link2", out, work), "EXDEV", 0},
		{fmt.Sprintf("rename %s/link %s/moved", work, out), "EACCES", 0},
		{in("run", s.dir+"/copy"), "EACCES", 0},
		{in("tcp", allowed), "ok", 0},
		{in("tcp", other), "EACCES", tcp},
		{"listen 127.0.0.1:0", "ok", 0},
		{in("listen", "127.0.0.1:"+free(t)), "EACCES", bind},
		{fmt.Sprint("listen 127.0.0.2:", port(t, allowed)), "EACCES", bind}, // to reach is not to listen
		{in("unix", name), "EPERM", abstract},
		{fmt.Sprint("signal ", s.waiter(t)), "EPERM", signals},
		{in("unix", socket), "EACCES", paths},
		{in("udp", serve(t, "udp", "127.0.0.1:0")), "EACCES", udp},
		// What no version restricts: the words of Enforced are true.
		{in("mptcp", other), either, 0},
		{in("fastopen", other), either, 0},
		{in("stat", out+"/f"), "ok", 0},
		{in("chmod", out+"/chmod"), "ok", 0},
		{fmt.Sprintf("read /proc/%d/cmdline", s.waiter(t)), "ok", 0},
	}
}

// free is a TCP port that no process uses.
func free(t *testing.T) string {
	t.Helper()
	address := ""
	t.Run("free", func(t *testing.T) { address = serve(t, "tcp", "127.0.0.1:0") })
	return fmt.Sprint(port(t, address))
}

func TestRuleset_RestrictsAsEnforcedStates(t *testing.T) {
	for _, kernel := range []struct {
		name  string
		knows func(rights) bool
	}{
		{"this kernel", supported},
		{"a kernel as 6.7", knowsUpTo(bind)},
		{"the first kernel", knowsUpTo(0)},
	} {
		t.Run(kernel.name, func(t *testing.T) {
			s := newStage(t)
			rules, all := trials(t, s)
			ruleset, enforced := open(t, rules, kernel.knows)
			for _, c := range compare(t, s, ruleset, all) {
				want := c.inside
				if c.needs > 0 && !kernel.knows(later[c.needs-1].rights) {
					want = "ok"
				}
				if strings.HasPrefix(c.attempt, "rename ") && c.inside == "ok" && !kernel.knows(later[refer-1].rights) {
					want = "EXDEV" // narrower than asked, which Enforced says too
				}
				if c.got != want && (want != either || c.got != "ok" && c.got != "EACCES") {
					t.Errorf("%s: got %s, want %s", c.attempt, c.got, want)
				}
			}
			if len(enforced.Holds)+len(enforced.Open) != 1+len(later)+len(never) {
				t.Errorf("words: got %d and %d, want one for each feature", len(enforced.Holds), len(enforced.Open))
			}
		})
	}
}

type outcome struct {
	trial
	got string
}

// compare tries everything under the ruleset, and then without it: there it must work, or the trial
// shows nothing.
func compare(t *testing.T, s stage, ruleset *os.File, all []trial) []outcome {
	t.Helper()
	copyOf := testkit.PutProgram(t, "/bin/true", s.dir)
	if err := os.Rename(copyOf, filepath.Join(s.dir, "copy")); err != nil {
		t.Fatal(err)
	}
	var attempts []string
	for _, c := range all {
		attempts = append(attempts, c.attempt)
	}
	behind := s.try(t, ruleset, attempts)
	var found []outcome
	for i, c := range all {
		found = append(found, outcome{c, behind[i]})
		if behind[i] == "ok" {
			continue
		}
		if got := s.try(t, nil, []string{c.attempt})[0]; got != "ok" {
			t.Errorf("%s without a ruleset: got %s, want ok", c.attempt, got)
		}
	}
	return found
}

func TestRuleset_EmptyAllowsNothing(t *testing.T) {
	s := newStage(t)
	ruleset, _ := open(t, Ruleset{ReadOnly: append(libraries(), s.self)}, supported) // else nothing could be run to try it
	got := s.try(t, ruleset, []string{"read /etc/passwd", "list /", "write /dev/null", "tcp " + serve(t, "tcp", "127.0.0.1:0")})
	if diff := cmp.Diff([]string{"EACCES", "EACCES", "EACCES", "EACCES"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRuleset_ListenAnywhereAllowsEveryPort(t *testing.T) {
	s := newStage(t)
	ruleset, enforced := open(t, Ruleset{ReadOnly: append(system(), s.self), BindAnyTCP: true}, supported)
	got := s.try(t, ruleset, []string{"listen 127.0.0.1:" + free(t), "tcp " + serve(t, "tcp", "127.0.0.1:0")})
	if diff := cmp.Diff([]string{"ok", "EACCES"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Contains(enforced.Open, later[bind-1].open) {
		t.Errorf("open: %v, want it to say so", enforced.Open)
	}
}

func TestOpen_RestrictsNoProcess(t *testing.T) {
	s := newStage(t)
	open(t, Ruleset{}, supported)
	if _, err := os.ReadFile(s.file(t, "f")); err != nil {
		t.Errorf("after Open: %v", err)
	}
}

func TestEnforced_DescribesThisKernel(t *testing.T) {
	if ABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	_, e := open(t, Ruleset{}, supported)
	if e.ABI != ABI() || e.ABI < 1 {
		t.Errorf("ABI: got %d, want %d", e.ABI, ABI())
	}
	// From the kernel's documentation: which version learned what.
	for number, since := range map[int]int{refer: 2, truncate: 3, tcp: 4, bind: 4, ioctl: 5, abstract: 6, signals: 6} {
		if got, want := strings.Contains(strings.Join(e.Holds, "\n"), later[number-1].holds), e.ABI >= since; got != want {
			t.Errorf("%q: got %v with version %d, want %v", later[number-1].holds, got, e.ABI, want)
		}
	}
	described := strings.Join(e.Holds, "\n")
	for _, gap := range e.Open {
		described += "\n" + gap.What
	}
	for _, word := range []string{"UDP", "unix sockets with a path", "Multipath TCP", "command lines"} {
		if !strings.Contains(described, word) {
			t.Errorf("%s is not mentioned", word)
		}
	}
}

func TestOpen_InvalidPathsAreRefused(t *testing.T) {
	if ABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	for name, r := range map[string]Ruleset{
		"relative":        {ReadOnly: []string{"usr"}},
		"empty":           {Devices: []string{""}},
		"the whole":       {ReadWrite: []string{"/usr/.."}},
		"missing":         {ReadOnly: []string{"/nowhere/at/all"}},
		"missing devices": {Devices: []string{"/dev/nothing"}},
	} {
		file, _, err := r.Open()
		if err == nil || !strings.Contains(advice.Text(err), "\n  next: ") {
			t.Errorf("%s: got %v, want an error that says what to do", name, err)
		}
		if file != nil {
			_ = file.Close()
		}
	}
}

func TestOpen_MissingLandlockIsReported(t *testing.T) {
	for reason, want := range map[error]string{
		unix.ENOSYS: "older than 5.13", unix.EOPNOTSUPP: "left out when the kernel started", unix.EPERM: "operation not permitted",
	} {
		err := unavailable(reason)
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, reason) || !strings.Contains(advice.Text(err), want) || !strings.Contains(advice.Text(err), "\n  next: ") {
			t.Errorf("%v: got %v, want %q and what to do", reason, err, want)
		}
	}
}

func TestLandlock_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^Test(CLI|Ruleset)_(Runs|Restricts|Empty)")
}

func TestCLI_RunsUnderARulesetAndStaysThere(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("rulesets are not for root; TestLandlock_AsOrdinaryUser runs this")
	}
	s := newStage(t)
	secret, forbidden := s.file(t, "secret"), filepath.Join(s.dir, "written")
	other := serve(t, "tcp", "127.0.0.1:0")
	cli := claudetest.CLI(t)
	command := fmt.Sprintf(`echo in > inside; cat inside; cat %s || echo no-read; echo x 2>&1 > %s || echo no-write; (exec 3<>/dev/tcp/127.0.0.1/%d) || echo no-tcp`,
		secret, forbidden, port(t, other))
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": command}), script.Text("done"))
	address, err := url.Parse(model.BaseURL())
	if err != nil {
		t.Fatal(err)
	}
	ruleset, _ := open(t, Ruleset{
		ReadOnly: append(system(), cli.Path, s.self), ReadWrite: []string{cli.Root},
		Devices:    []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty"},
		ConnectTCP: []uint16{port(t, address.Host)},
	}, supported)
	cmd := s.command("restrict", "cli", cli.Path, "-p", "go", "--dangerously-skip-permissions", "--strict-mcp-config", "--setting-sources", "")
	for name, value := range cli.Env(model.BaseURL()) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Dir, cmd.ExtraFiles = cli.Work, []*os.File{ruleset}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "done" {
		t.Errorf("the CLI printed %q, %v, want done", out, err)
	}
	result, _, _ := model.ToolResult("Bash")
	for _, want := range []string{"in\n", "no-read", "no-write", "no-tcp", "Permission denied"} {
		if !strings.Contains(result, want) {
			t.Errorf("the model saw %q of Bash, want %q in it", result, want)
		}
	}
	if _, err := os.Stat(forbidden); err == nil || strings.Contains(result, "content") {
		t.Errorf("a way out: stat %v, saw %q", err, result)
	}
}

func ExampleRuleset_Open() {
	ruleset, enforced, err := Ruleset{
		ReadOnly: []string{"/usr"}, ReadWrite: []string{os.TempDir()}, Devices: []string{"/dev/null"}, ConnectTCP: []uint16{8080},
	}.Open()
	if errors.Is(err, ErrUnavailable) {
		return
	}
	defer func() { _ = ruleset.Close() }() // after it was handed to the program as an extra file
	for _, gap := range enforced.Open {
		_ = gap.What // report it in the run's events
	}
}

func BenchmarkOpen(b *testing.B) {
	r := Ruleset{ReadOnly: system(), ReadWrite: []string{b.TempDir()}, Devices: []string{"/dev/null"}, ConnectTCP: []uint16{8080}}
	for b.Loop() {
		f, _, err := r.Open()
		if err != nil {
			b.Skip(err)
		}
		_ = f.Close()
	}
}
