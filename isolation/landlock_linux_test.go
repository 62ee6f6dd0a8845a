// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

func onlyLandlock() *isolation.Isolation {
	return &isolation.Isolation{Strongest: landlock, Weakest: landlock}
}

func TestLandlock_IsRefusedToRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is not root")
	}
	cli := claudetest.CLI(t)
	_, err := claudecell.Open(t.Context(), onlyLandlock(), cli.Options(claudetest.NewModel(t)), isolation.OpenOptions{})
	weak, ok := errors.AsType[*isolation.WeakError](err)
	if !ok || weak.Asked != landlock || !strings.Contains(advice.Text(err), "to root") || !strings.Contains(advice.Text(err), "ordinary user") {
		t.Errorf("got %v, want an error that says why root does not get it, and what to do", err)
	}
}

func TestLandlock_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^TestLandlockCLI_")
}

func ordinary(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("Landlock is not for root; TestLandlock_AsOrdinaryUser runs this")
	}
}

func TestLandlockCLI_StaysInside(t *testing.T) {
	ordinary(t)
	cli := claudetest.CLI(t)
	canary, outside := filepath.Join(cli.Root, "canary", "file"), filepath.Join(cli.Root, "out")
	plant(t, canary, "THE CANARY")
	if err := os.Mkdir(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	connect := func(kind string, port any) string {
		return fmt.Sprintf("(exec 3<>/dev/%s/127.0.0.1/%v) && echo connected; true", kind, port)
	}
	write := script.Input{"file_path": filepath.Join(outside, "written"), "content": "x"}
	i := onlyLandlock()
	i.Network = isolation.WithDomains("example.org")
	events := playIn(t, cli, i, []try{
		{"inside", "Bash", command("echo in > inside && cat inside && mktemp && git init -q repo && git -C repo status && echo x > /dev/null"), "drover-home-", "", false},
		{"canary", "Bash", command("cat " + canary + "; true"), "Permission denied", "THE CANARY", false},
		{"list", "Bash", command("ls " + filepath.Dir(canary) + "; true"), "Permission denied", "file\n", false},
		{"outside", "Bash", command("touch " + outside + "/bash && echo made; true"), "Permission denied", "made", false},
		{"tmp", "Bash", command("touch /tmp/drover-level-test && echo made; true"), "Permission denied", "made", false},
		{"read", "Read", script.Input{"file_path": canary}, "", "THE CANARY", true},
		{"write", "Write", write, "", "", true},
		{"tcp", "Bash", command(connect("tcp", tcpServer(t))), "ermission denied", "connected", false},
		{"udp", "Bash", command(connect("udp", udp.LocalAddr().(*net.UDPAddr).Port)), "ermission denied", "connected", false},
		{"environ", "Bash", command(fmt.Sprintf("cat /proc/%d/environ | wc -c; true", os.Getpid())), "ermission denied", "", false},
		{"signal", "Bash", command(fmt.Sprintf("kill -0 %d && echo alive; true", os.Getpid())), "not permitted", "alive", false},
		{"denied", "Bash", command("curl -sS -m 10 http://denied.example/ -o /dev/null -w '%{http_code}'"), "403", "", false},
		{"bind", "Bash", command(perl(`bind(S,sockaddr_in(0,INADDR_ANY)) or die "bind: $!"; print "bound"`)), "ermission denied", "bound", false},
		{"multipath", "Bash", command(`perl -MSocket -e 'socket(S,AF_INET,SOCK_STREAM,262) or die "socket: $!"; print "made"'; true`), "ermission denied", "made", false},
		// The words about what is missing are true.
		{"listen", "Bash", command(perl(`listen(S,1) or die "listen: $!"; print "listens"`)), "listens", "", false},
		{"namespace", "Bash", command("unshare -U true && echo made; true"), "not permitted", "made", false},
		{"detached", "Bash", command("(setsid tail -f /dev/null >/dev/null 2>&1 &) ; echo started"), "started", "", false},
	})
	for _, name := range []string{"bash", "written"} {
		if _, err := os.Stat(filepath.Join(outside, name)); err == nil {
			t.Errorf("%s was written outside", name)
		}
	}
	protection := oneProtection(t, events, landlock)
	text := strings.Join(protection.Missing, "\n")
	for _, want := range []string{"can outlive the run", "command lines", "that the kernel picks"} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %q, want %q in it", text, want)
		}
	}
	for _, not := range []string{"UDP", "Multipath"} { // the filter closes them
		if strings.Contains(text, not) {
			t.Errorf("missing: %q, want nothing of %s", text, not)
		}
	}
	denied := of[proxy.Connection](events)
	if len(denied) != 1 || denied[0].Verdict != proxy.Denied || denied[0].Host != "denied.example" {
		t.Errorf("connections: %+v, want the one that was denied", denied)
	}
}

// perl is a command that has a TCP socket S and does something with it.
func perl(code string) string {
	return `perl -MSocket -e 'socket(S,AF_INET,SOCK_STREAM,0) or die "socket: $!"; ` + code + `'; true`
}

func TestLandlockCLI_GetsTheAllowedNetwork(t *testing.T) {
	ordinary(t)
	cli := claudetest.CLI(t)
	data, out := filepath.Join(cli.Root, "data"), filepath.Join(cli.Root, "out")
	plant(t, filepath.Join(data, "file"), "READABLE")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	own, server := ownProxy(t), helloServer(t)
	i := onlyLandlock()
	i.Network = &isolation.NetworkPolicy{AllowLocalBinding: true, AllowLocalhost: true, HTTPProxyPort: own.port}
	i.Sandbox = &isolation.Sandbox{WritablePaths: []string{"../out"}, ReadablePaths: []string{data}}
	events := playIn(t, cli, i, []try{
		{"bind", "Bash", command(perl(`bind(S,sockaddr_in(0,INADDR_ANY)) or die "bind: $!"; print "bound"`)), "bound", "", false},
		{"port", "Bash", command(perl(`bind(S,sockaddr_in(` + freePort(t) + `,INADDR_ANY)) or die "bind: $!"; print "bound"`)), "bound", "", false},
		{"readable", "Bash", command("cat " + data + "/file; touch " + data + "/x && echo made; true"), "READABLE", "made", false},
		{"writable", "Bash", command("touch ../out/x && echo made"), "made", "", false},
		{"localhost", "Bash", command("curl -sS -m 10 --noproxy '' --proxy $ALL_PROXY http://" + server), "hello", "", false},
		{"own-proxy", "Bash", command("curl -sS -m 10 http://any.example/x"), "your proxy was asked for http://any.example/x", "", false},
	})
	if got := own.requests.Load(); got != 1 {
		t.Errorf("the proxy of the caller's got %d connections, want 1", got)
	}
	if text := strings.Join(oneProtection(t, events, landlock).Enforced, "\n"); !strings.Contains(text, fmt.Sprintf("HTTP at port %d", own.port)) {
		t.Errorf("enforced: %q, want the proxy of the caller's", text)
	}
}

func TestLandlockCLI_IsEndedAtItsLimits(t *testing.T) {
	ordinary(t)
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("Bash", command("for n in 1 2 3 4 5 6 7 8; do head -c 8000000 /dev/zero > f$n; done; tail -f /dev/null")), script.Text("done"))
	opts := cli.Options(model)
	opts.SettingSources, opts.PermissionMode = nil, claude.ModeBypassPermissions
	i := onlyLandlock()
	i.TempDir, i.Limits = cli.Root, isolation.Limits{WorkspaceBytes: 32 << 20}
	var events eventLog
	c, err := claudecell.Open(t.Context(), i, opts, isolation.OpenOptions{Emit: events.emit})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			break
		}
	}
	if _, broken := errors.AsType[*isolation.BreachError](c.Stopped()); !broken {
		t.Errorf("the run was stopped by %v, want a BreachError", c.Stopped())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := of[isolation.Breach](&events); len(got) != 1 || got[0].Limit != 32<<20 {
		t.Errorf("reported breaches: %+v, want one", got)
	}
}

func TestLandlockCLI_FailedStartHasTheReason(t *testing.T) {
	ordinary(t)
	cli := claudetest.CLI(t)
	opts := cli.Options(claudetest.NewModel(t))
	opts.SettingSources = nil
	c, err := claudecell.Open(t.Context(), onlyLandlock(), opts, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	program := filepath.Join(cli.Root, "bin", "program")
	plant(t, program, "#!/no/such/interpreter\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{program: "running " + program, cli.Root + "/none": "no such file"} {
		_, err := opts.Spawner.Spawn(t.Context(), launch.Command{Path: path, Dir: cli.Work})
		if _, ok := errors.AsType[*launch.Error](err); !ok || !strings.Contains(advice.Text(err), want) {
			t.Errorf("got %v, want a LaunchError that says %q", err, want)
		}
	}
}
