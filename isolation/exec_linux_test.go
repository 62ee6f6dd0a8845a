// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

func TestExecs_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^TestExec_")
}

// shell runs a line of shell beside an agent that works in dir.
func shell(t *testing.T, in *isolation.Isolation, dir, line string, change ...func(*isolation.ExecOptions)) (code int, output string) {
	t.Helper()
	o := isolation.ExecOptions{Argv: []string{"bash", "-c", line}, Program: isolation.Program{Dir: dir}}
	for _, c := range change {
		c(&o)
	}
	done, err := in.Exec(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return done.ExitCode, string(done.Output)
}

func TestExec_WorksOnTheFilesOfTheAgent(t *testing.T) {
	dir := testkit.SharedFolder(t)
	plant(t, filepath.Join(dir, "check.sh"), "#!/bin/sh\necho \"$@\"; cat agent.txt; echo wrong >&2; echo done > result.txt; exit 3\n")
	plant(t, filepath.Join(dir, "agent.txt"), "by the agent\n")
	if err := os.Chmod(filepath.Join(dir, "check.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	done, err := (*isolation.Isolation)(nil).Exec(t.Context(), isolation.ExecOptions{Argv: []string{"./check.sh", "a b", "$c"}, Program: isolation.Program{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	output := string(done.Output)
	// Two streams have no order.
	if without := strings.Replace(output, "wrong\n", "", 1); done.ExitCode != 3 || without != "a b $c\nby the agent\n" || without == output {
		t.Errorf("got exit code %d and %q", done.ExitCode, output)
	}
	info, err := os.Stat(filepath.Join(dir, "result.txt"))
	if err != nil || !ownedByMe(info) {
		t.Errorf("what the command wrote: %v, %v; want a file of this user", info, err)
	}
}

func TestExec_MissingProgramFails(t *testing.T) {
	code, output := shell(t, nil, testkit.SharedFolder(t), "", func(o *isolation.ExecOptions) { o.Argv = []string{"no-such-program"} })
	if code != 127 || !strings.Contains(output, "not found") {
		t.Errorf("got exit code %d and %q, want 127 and why", code, output)
	}
	if _, err := (*isolation.Isolation)(nil).Exec(t.Context(), isolation.ExecOptions{}); err == nil || !strings.Contains(advice.Text(err), "next:") {
		t.Errorf("no command at all: %v", err)
	}
}

func TestExec_ReadOnlyCannotWrite(t *testing.T) {
	dir := testkit.SharedFolder(t)
	plant(t, filepath.Join(dir, "file"), "as it was")
	code, output := shell(t, nil, dir, "cat file; echo other > file", func(o *isolation.ExecOptions) { o.ReadOnly = true })
	if code == 0 || !strings.Contains(output, "as it was") || !strings.Contains(output, "Read-only file system") {
		t.Errorf("got exit code %d and %q", code, output)
	}
}

func TestExec_HasNoSecretsAndAHomeOfItsOwn(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
	t.Setenv("SOME_TOKEN", "sk-ant-secret")
	dir := testkit.SharedFolder(t)
	in := &isolation.Isolation{APIKey: "sk-ant-secret", Env: map[string]string{"CHECK": "of the isolation"}, IncludeHostEnv: true}
	_, output := shell(t, in, dir, "env; find ~ | wc -l; id -u; touch ~/x /tmp/x && echo both", func(o *isolation.ExecOptions) {
		o.Env = map[string]string{"MORE": "of the call"}
	})
	for _, want := range []string{"CHECK=of the isolation", "MORE=of the call", "HOME=", "\n2\n", "both"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is missing in %s", want, output)
		}
	}
	for _, bad := range []string{"sk-ant-secret", "ANTHROPIC", "\n0\n"} {
		if strings.Contains(output, bad) {
			t.Errorf("%q is in %s", bad, output)
		}
	}
	_, err := in.Exec(t.Context(), isolation.ExecOptions{Argv: []string{"true"}, Program: isolation.Program{Dir: dir}, Env: map[string]string{"LD_PRELOAD": "x"}})
	if _, ok := errors.AsType[*isolation.RefusedError](err); !ok {
		t.Errorf("LD_PRELOAD: got %v, want a refusal", err)
	}
}

func ownedByMe(info os.FileInfo) bool { return int(info.Sys().(*syscall.Stat_t).Uid) == os.Getuid() }

// mischief is what a command tries that an agent has written, and what the answer must not be.
type mischief struct{ name, line, never string }

func mischiefs(t *testing.T, canary string) []mischief {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = udp.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, from, err := udp.ReadFrom(make([]byte, 9)); err == nil {
			t.Errorf("%d bytes were received from %v", n, from)
		}
		_ = udp.Close()
	})
	victim := exec.Command("sleep", "86399")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	port := func(a net.Addr) string { _, p, _ := net.SplitHostPort(a.String()); return p }
	return []mischief{
		{"a server of the host", "exec 3<>/dev/tcp/127.0.0.1/" + port(l.Addr()) + " && echo GOT IT", "GOT IT"},
		{"a datagram", "echo x > /dev/udp/127.0.0.1/" + port(udp.LocalAddr()), "GOT IT"}, // it would be received
		{"a file of the host", "cat " + canary, "THE CANARY"},
		{"a link to a file of the host", "ln -s " + canary + " link; cat link", "THE CANARY"},
		{"writing outside", "echo THE CANARY was here >> " + canary + " && echo GOT IT", "GOT IT"},
		{"passwords", "cat /etc/shadow && echo GOT IT", "GOT IT"},
		{"killing a process of the host", fmt.Sprintf("kill -9 %d && echo GOT IT", victim.Process.Pid), "GOT IT"},
		{"memory of a process of the host", fmt.Sprintf("cat /proc/%d/environ && echo GOT IT", os.Getpid()), "GOT IT"},
		{"a namespace of its own", "unshare -r true && echo GOT IT", "GOT IT"},
		{"being root", "id -u | sed s/^0$/GOT/", "GOT"},
	}
}

func checkMischief(t *testing.T, in *isolation.Isolation) {
	dir, canary := testkit.SharedFolder(t), filepath.Join(testkit.SharedFolder(t), "canary")
	plant(t, canary, "THE CANARY")
	if err := os.Chmod(canary, 0o666); err != nil { // only the isolation protects it
		t.Fatal(err)
	}
	for _, m := range mischiefs(t, canary) {
		if _, output := shell(t, in, dir, m.line); strings.Contains(output, m.never) {
			t.Errorf("%s: %q", m.name, output)
		}
	}
	if text, err := os.ReadFile(canary); err != nil || string(text) != "THE CANARY" {
		t.Errorf("the file outside is %q now, %v", text, err)
	}
}

func TestExec_StaysInTheCell(t *testing.T) { checkMischief(t, nil) }

func TestExec_StaysBehindLandlock(t *testing.T) {
	ordinary(t)
	checkMischief(t, onlyLandlock())
}

func TestExec_SeesNoProcessesOfTheHost(t *testing.T) {
	victim := exec.Command("sleep", "86398")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	if _, output := shell(t, nil, testkit.SharedFolder(t), "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); strings.Contains(output, "86398") {
		t.Errorf("the command sees %s", output)
	}
}

// It is ended with everything that it started, also what has left its session.
func TestExec_TimeoutEndsTheWholeTree(t *testing.T) {
	for _, in := range levelsHere() {
		dir := testkit.SharedFolder(t)
		line := "setsid sleep 7654.321 & sleep 7654.321 & echo begun; sleep 7654.321"
		code, output := shell(t, in, dir, line, func(o *isolation.ExecOptions) { o.Timeout = 500 * time.Millisecond })
		if code != isolation.ExitTimeout || !strings.HasPrefix(output, "begun\n") || !strings.Contains(output, "[the command was stopped after 500ms. Make it faster, or run less of it]") {
			t.Errorf("got exit code %d and %q", code, output)
		}
		if left, _ := exec.Command("pgrep", "-f", "sleep 7654.321").Output(); len(left) > 0 {
			t.Errorf("processes are left: %s", left)
		}
	}
}

func levelsHere() []*isolation.Isolation {
	all := []*isolation.Isolation{nil}
	if os.Getuid() != 0 {
		all = append(all, onlyLandlock())
	}
	return all
}

func TestExec_EndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	for _, after := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 200 * time.Millisecond} { // also while it is being started
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(after, func() { cancel(why) })
		_, err := (*isolation.Isolation)(nil).Exec(ctx, isolation.ExecOptions{Argv: []string{"sleep", "7653"}, Program: isolation.Program{Dir: testkit.SharedFolder(t)}})
		if !errors.Is(err, why) {
			t.Errorf("after %v: got %v, want why the context ended", after, err)
		}
	}
}

func TestExec_ForkBombIsBounded(t *testing.T) {
	in := &isolation.Isolation{Limits: isolation.Limits{Processes: 40}}
	code, output := shell(t, in, testkit.SharedFolder(t), "bomb() { bomb | bomb & }; bomb; sleep 7652", func(o *isolation.ExecOptions) { o.Timeout = time.Second })
	if code != isolation.ExitTimeout || !strings.Contains(output, "temporarily unavailable") {
		t.Errorf("got exit code %d and %.300q", code, output)
	}
}

func TestExec_LongOutputIsCut(t *testing.T) {
	line := "seq 3000000; echo the end >&2; sleep 0.1; echo really"
	code, output := shell(t, nil, testkit.SharedFolder(t), line, func(o *isolation.ExecOptions) { o.MaxOutput = 1000 })
	if code != 0 || !strings.HasSuffix(output, "really\n") || !strings.HasPrefix(output, "[2288") || len(output) > 1100 {
		t.Errorf("got exit code %d and %d bytes, %q", code, len(output), output)
	}
	code, output = shell(t, nil, testkit.SharedFolder(t), "yes", func(o *isolation.ExecOptions) { o.Timeout = 300 * time.Millisecond })
	if code != isolation.ExitTimeout || len(output) > 257<<10 {
		t.Errorf("got exit code %d and %d bytes", code, len(output))
	}
}

func TestExec_DiskLimitEndsTheCommand(t *testing.T) {
	in := &isolation.Isolation{Limits: isolation.Limits{WorkspaceBytes: 8 * mebibyte}}
	line := "for n in $(seq 200); do head -c 1000000 /dev/zero > grown-$n; sleep 0.02; done; echo everything"
	code, output := shell(t, in, testkit.SharedFolder(t), line)
	if code != isolation.ExitBreach || strings.Contains(output, "everything") || !strings.Contains(output, "[the cell took ") || strings.Contains(output, "next:") {
		t.Errorf("got exit code %d and %q", code, output)
	}
}

// A CLI that is installed in the project would be started by the next run.
func TestExec_CannotReplaceTheCLI(t *testing.T) {
	dir := testkit.SharedFolder(t)
	cli := filepath.Join(dir, "bin", "claude")
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	plant(t, cli, string(program))
	_, output := shell(t, nil, dir, "echo evil > bin/claude && echo GOT IT; mv bin other && echo GOT IT; rm -rf bin && echo GOT IT", func(o *isolation.ExecOptions) { o.Program.Path = cli })
	if now, err := os.ReadFile(cli); err != nil || string(now) != string(program) || strings.Contains(output, "GOT IT") {
		t.Errorf("the CLI was replaced: %v, %s", err, output)
	}
}

func TestExec_NeedsTheRequiredLevel(t *testing.T) {
	dir := testkit.SharedFolder(t)
	sandbox := &isolation.Isolation{Strongest: isolation.LevelSandbox, Weakest: isolation.LevelSandbox}
	_, err := sandbox.Exec(t.Context(), isolation.ExecOptions{Argv: []string{"true"}, Program: isolation.Program{Dir: dir}})
	if refused, ok := errors.AsType[*isolation.RefusedError](err); !ok || refused.Field != "Weakest" {
		t.Errorf("at the level sandbox: got %v, want a refusal", err)
	}
	code, output := shell(t, isolation.Development(), dir, "echo $HOME; echo here > written; exit 7")
	if code != 7 || strings.Contains(output, os.Getenv("HOME")+"\n") {
		t.Errorf("on the host: got exit code %d and %q", code, output)
	}
}
