// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

// An attempt is one tool call of an agent that wants to get out.
type attempt struct {
	name  string
	tool  string
	input script.Input
	// want is a pattern that the result has: that the attempt was really made, and how it failed.
	want string
	// not are texts that the result must not have, beside those that none may have.
	not []string
}

// How the kernel refuses.
const (
	hidden    = `No such file|does not exist|not exist|ENOENT`
	forbidden = `Permission denied|Read-only file system|not permitted|Operation not permitted`
	unreached = `refused: .*(connection refused|no such file|unreachable|cannot assign|not supported|timeout)`
)

func bash(name, command, want string, not ...string) attempt {
	return attempt{name, "Bash", script.Input{"command": command}, want, not}
}

// attempts are all that are made against a target.
func (h *target) attempts() []attempt {
	return slices.Concat(h.fileAttempts(), h.toolAttempts(), h.procAttempts(), h.networkAttempts(), h.processAttempts(), h.settingsAttempts())
}

func (h *target) fileAttempts() []attempt {
	other := filepath.Join(h.Root, "other")
	return []attempt{
		bash("read a file of the host", "cat "+h.file, hidden),
		bash("read another workspace", "cat "+other+"/file; ls "+other, hidden),
		bash("look beside the workspace", "ls -a ..", `work`, "host", "other", "config"),
		bash("climb", "cd ..; cd ../../..; cat ./"+h.file+"; cd "+h.Work+"/../host; pwd", hidden),
		bash("read homes", "ls -la /root /home", `(?s)/root': (`+hidden+`).*/home': (`+hidden+`)`),
		bash("read /etc/shadow", "cat /etc/shadow", hidden),
		bash("read machine ids and sockets", "ls /sys /run/dbus /var/run/docker.sock /etc/machine-id /boot", `(?s)((`+hidden+`).*){5}`),
		bash("write beside the workspace", "echo x > ../beside; echo x >> "+h.file, ``),
		bash("remove beside the workspace", "rm -rf ../host ../other ../config ../tmp; mv ../work ../gone; true", ``),
		bash("write to the system", "touch /usr/bin/x; echo x >> /usr/bin/env; touch /x /etc/x /dev/x", `(?s)(/usr/bin/x.*)(`+forbidden+`)`),
		bash("replace users", "echo 'root::0:0::/:/bin/sh' > /etc/passwd", forbidden),
		bash("a symbolic link to a file", "ln -s "+h.file+" made-link; cat made-link; echo x >> made-link", hidden),
		bash("a symbolic link to a folder", "ln -s "+h.dir+" made-folder; cat made-folder/file; echo x > made-folder/new", hidden),
		bash("a planted link", "cat planted-link; echo x >> planted-link; cp /usr/bin/env planted-link", hidden),
		bash("a hard link", "ln "+h.file+" hard; ln /usr/bin/env hard-env", `(?s)(`+hidden+`).*(cross-device|Invalid|not permitted)`),
		bash("a set-uid program", "cp /usr/bin/env made-env; chmod u+s made-env; chmod 6755 made-env; ls -l made-env", `not permitted`, "rws"),
		bash("programs with set-uid", "su -c id </dev/null; sudo -n id; id -u", `(?m)^1000$`, "uid=0"),
		bash("disks", "ls /dev/sd* /dev/vd* /dev/nvme* /dev/mem /dev/kmem /dev/kvm /dev/fuse; head -c1 /dev/mem", hidden),
		bash("device nodes", "mknod disk b 8 0; mknod memory c 1 1; ls -l disk memory", `not permitted`),
		{"outside of the CLI's sandbox", "Bash", script.Input{"command": "cat " + h.file + "; id -u", "dangerouslyDisableSandbox": true}, hidden, nil},
	}
}

func (h *target) toolAttempts() []attempt {
	read := func(name, path, want string) attempt {
		return attempt{"Read " + name, "Read", script.Input{"file_path": path}, want, nil}
	}
	write := func(name, path, want string) attempt {
		return attempt{"Write " + name, "Write", script.Input{"file_path": path, "content": "written"}, want, nil}
	}
	edit := func(name, path, want string) attempt {
		return attempt{"Edit " + name, "Edit", script.Input{"file_path": path, "old_string": "secret", "new_string": "edited"}, want, nil}
	}
	spy := func(name, command, want string) attempt {
		return attempt{"MCP server: " + name, "mcp__spy__run", script.Input{"command": command}, "(?s)the spy says.*(" + want + ")", nil}
	}
	return []attempt{
		spy("read a file of the host", "cat "+h.file, hidden),
		spy("read an environment", "env; cat /proc/[0-9]*/environ", `HOME=`),
		spy("reach the host", attacker("dial", "tcp", h.servers["tcp"].address), "refused"),
		read("a file of the host", h.file, hidden),
		read("through a link", filepath.Join(h.Work, "planted-link"), hidden),
		read("through /proc/1/root", "/proc/1/root"+h.file, hidden+`|could not be determined`),
		read("through /proc/self/root", "/proc/self/root/.."+h.file, hidden),
		read("the environment of init", "/proc/1/environ", ``),
		read("its own environment", "/proc/self/environ", ``),
		write("a file of the host", h.file, ``),
		write("through a link", filepath.Join(h.Work, "planted-link"), ``),
		write("beside the workspace", filepath.Join(h.Root, "beside"), ``),
		write("core_pattern", "/proc/sys/kernel/core_pattern", `EACCES|EROFS|EPERM|ENOENT`),
		write("a program of the system", "/usr/bin/drover-attack", `EACCES|EROFS|EPERM`),
		edit("a file of the host", h.file, ``),
		edit("through a link", filepath.Join(h.Work, "planted-link"), ``),
	}
}

func (h *target) procAttempts() []attempt {
	return []attempt{
		bash("the root of init", "cat /proc/1/root"+h.file+"; cat /proc/self/root"+h.file+"; ls /proc/*/root/root /proc/*/cwd/../host", hidden),
		bash("all environments", "env; printenv; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; export -p; set", `HOME=`),
		bash("all command lines", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls -l /proc/[0-9]*/cwd /proc/[0-9]*/exe", `/proc/1/cwd`, h.dir),
		bash("all open files", "ls -l /proc/[0-9]*/fd", `pipe:|socket:`, h.dir, "/mnt/"),
		bash("processes of the host", "ls -d /proc/[0-9]* | wc -l; cat /proc/"+fmt.Sprint(os.Getpid())+"/cmdline", hidden, "isolation.test -test"),
		bash("core_pattern", "echo '|/bin/sh' > /proc/sys/kernel/core_pattern; cat /proc/sys/kernel/core_pattern | head -c0", forbidden),
		bash("other switches of the kernel", "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger; echo 1 > /proc/sys/vm/drop_caches; head -c1 /proc/kcore; cat /proc/kmsg </dev/null | head -c1", `(?s)sysrq.*(`+forbidden+`|`+hidden+`)`),
		bash("privileges", "grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status", `(?s)CapEff:\s+0+\n.*NoNewPrivs:\s+1\nSeccomp:\s+2`),
		bash("the first process and the CLI", attacker("reach"), `(?s)(refused: .*){26}`),
		bash("system calls", attacker("calls"), `(?s)(refused: .*){20}`),
		bash("namespaces", "unshare -Ur id; unshare -m id; nsenter -t 1 -m id; chroot / id", `(?s)unshare.*(not permitted|No space)`, "uid=0"),
	}
}

func (h *target) networkAttempts() []attempt {
	const httpProxy, socksProxy = "http://127.0.0.1:47801", "socks5://127.0.0.1:47802"
	_, port, _ := net.SplitHostPort(h.servers["tcp"].address)
	var dials, urls []string
	for _, name := range sortedKeys(h.servers) {
		dials = append(dials, name, h.servers[name].address)
	}
	for _, host := range []string{"0.0.0.0", "127.0.0.2", "[::ffff:127.0.0.1]"} {
		dials = append(dials, "tcp", host+":"+port)
	}
	for _, host := range loopbackNames {
		urls = append(urls, "http://"+host+":"+port+"/")
	}
	each := func(n int) string { return fmt.Sprintf(`(?s)(refused: .*){%d}`, n) }
	return []attempt{
		bash("the host's servers", attacker(append([]string{"dial"}, dials...)...), each(len(dials)/2)),
		bash("the host's servers by the proxy", attacker(append([]string{"proxy", httpProxy}, urls...)...), each(len(urls))),
		bash("the host's servers by the other proxy", attacker(append([]string{"proxy", socksProxy}, urls...)...), each(len(urls))),
		bash("other hosts by the proxy", attacker("proxy", httpProxy, "http://denied.example.invalid/", "https://tls.example.invalid/"), each(2)),
		bash("other hosts by the other proxy", attacker("proxy", socksProxy, "http://socks.example.invalid/"), each(1)),
		bash("a name", "getent hosts example.invalid; echo status $?", `status [1-9]`),
		bash("the gateway's other doors", attacker("gateway", "GET", "/v1/files", "POST", "/v1/messages/../../v1/organizations"), `(?s)(refused: 4.*){2}`),
		bash("the gateway as a proxy", attacker("proxy", "http://127.0.0.2:47800", "http://"+h.servers["tcp"].address+"/v1/messages"), `refused: 4`),
	}
}

// loopbackNames lead to the machine itself.
var loopbackNames = []string{"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f.1"}

func (h *target) processAttempts() []attempt {
	return []attempt{
		bash("kill processes of the host", attacker("kill", fmt.Sprint(h.victim.Process.Pid))+"; kill -9 "+fmt.Sprint(os.Getpid(), " ", os.Getppid()), `killed: no such process|No such process`),
		bash("outlive the turn", "setsid nohup "+attackVariable+"= sh -c '"+attacker("wait")+" & "+attacker("wait")+"' >/dev/null 2>&1 & (setsid "+strings.ReplaceAll(attacker("wait"), attackVariable, "env "+attackVariable)+" >/dev/null 2>&1 &) ; echo left", `left`),
		{"outlive the turn in the background", "Bash", script.Input{"command": attacker("wait"), "run_in_background": true}, `ackground`, nil},
		bash("a huge output", "yes | head -c 20000000", `y`),
		bash("still there", "echo still there", `still there`),
	}
}

// settingsAttempts change the settings of the CLI, for later runs and for this one.
func (h *target) settingsAttempts() []attempt {
	return []attempt{
		bash("settings of the CLI", `echo '{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"cat `+h.file+` > leaked"}]}]},"sandbox":{"enabled":false}}' > $CLAUDE_CONFIG_DIR/settings.json; mkdir -p .claude; cp $CLAUDE_CONFIG_DIR/settings.json .claude/settings.local.json; echo done`, ``),
		bash("after that", "cat leaked; ls hook-ran mcp-ran", hidden),
	}
}

// plant puts into the workspace what an earlier run could have left for this one.
func (h *target) plant(t *testing.T) {
	t.Helper()
	if err := os.Symlink(h.file, filepath.Join(h.Work, "planted-link")); err != nil {
		t.Fatal(err)
	}
	h.WriteFile(t, ".claude/settings.json", `{"enableAllProjectMcpServers":true,"env":{"PLANTED":"1"},"permissions":{"deny":["Bash","Read"]},
		"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch hook-ran"}]}],"PreToolUse":[{"hooks":[{"type":"command","command":"touch hook-ran"}]}]}}`)
	h.WriteFile(t, ".mcp.json", `{"mcpServers":{"planted":{"command":"touch","args":["mcp-ran"]}}}`)
	h.opts.MCPServers = map[string]claude.MCPServer{"spy": claude.MCPStdio{
		Command: filepath.Join(h.Work, filepath.Base(os.Args[0])), Args: []string{"mcp"}, Env: map[string]string{attackVariable: "1"}, AlwaysLoad: true,
	}}
}

// turnsOf makes the model call so many tools at once, in order.
func turnsOf(attempts []attempt, atOnce int) []script.Turn {
	var turns []script.Turn
	var calls []script.Block
	for n, a := range attempts {
		calls = append(calls, script.ToolCall{ID: callID(n), Name: a.tool, Input: a.input})
		if len(calls) == atOnce || n == len(attempts)-1 {
			turns, calls = append(turns, script.Reply(calls...)), nil
		}
	}
	return append(turns, script.Text("I am still inside."))
}

func callID(n int) string { return fmt.Sprintf("toolu_attempt_%d", n) }

// check looks at what the attempts led to.
func (h *target) check(t *testing.T, attempts []attempt, model *claudetest.Model, got record) {
	t.Helper()
	results := got.results()
	for n, a := range attempts {
		text, _, ok := model.ToolResult(callID(n))
		if _, emitted := results[callID(n)]; !emitted || !ok {
			t.Errorf("%s: left no trace: event %v, result %v", a.name, emitted, ok)
			continue
		}
		if !regexp.MustCompile(a.want).MatchString(text) {
			t.Errorf("%s: the result has nothing like %q:\n%s", a.name, a.want, clipped(text))
		}
		for _, bad := range slices.Concat(a.not, []string{"OPEN", h.secret, h.key}) {
			if strings.Contains(text, bad) {
				t.Errorf("%s: the result has %q:\n%s", a.name, bad, clipped(text))
			}
		}
	}
	if done := got.done(t); done.Status != event.DoneSuccess || done.Result != "I am still inside." {
		t.Errorf("done is %+v, want the answer of the model", done)
	}
	for _, secret := range []string{h.secret, h.key} {
		if strings.Contains(got.text(t), secret) {
			t.Error("the events contain a secret")
		}
	}
	for _, name := range []string{"hook-ran", "mcp-ran"} {
		if _, err := os.Lstat(filepath.Join(h.Work, name)); err == nil {
			t.Errorf("settings of the project were obeyed: %s is there", name)
		}
	}
	h.unharmed(t)
}

func clipped(text string) string { return text[:min(len(text), 1500)] }

// An agent that may use every tool without a question does not get out, whatever it tries.
func TestAttack_AgentStaysInTheCell(t *testing.T) {
	h := newTarget(t)
	attempts := h.attempts()
	model := h.agent(t, turnsOf(attempts, 6)...)
	h.plant(t)
	got := h.run(t, h.isolation(), nil)
	h.check(t, attempts, model, got)
	h.checkConnections(t, got)
}

// checkConnections sees to it that each attempt at the proxies and the gateway was reported.
func (h *target) checkConnections(t *testing.T, got record) {
	t.Helper()
	denied := map[string]int{}
	for _, c := range payloads[proxy.Connection](got) {
		if c.Verdict != proxy.Denied {
			t.Errorf("a connection was not denied: %+v", c)
		}
		denied[c.Host]++
	}
	for _, host := range []string{"denied.example.invalid", "tls.example.invalid", "socks.example.invalid", "127.0.0.1", "localhost", "::1"} {
		if denied[host] == 0 {
			t.Errorf("the attempt to reach %s was not reported; reported were %v", host, denied)
		}
	}
	if n := len(payloads[gateway.Refused](got)); n < 3 {
		t.Errorf("%d refusals of the gateway were emitted, want 3", n)
	}
	if protections := payloads[isolation.Protection](got); len(protections) != 1 || protections[0].Level != isolation.LevelCell {
		t.Errorf("got the protections %+v, want one cell", protections)
	}
}

// The key pays for the run and is nowhere in the cell.
func TestAttack_KeyNeverEntersTheCell(t *testing.T) {
	h := newTarget(t)
	var texts []string
	for _, text := range []string{h.key, h.secret, "planted for the search"} {
		texts = append(texts, hex.EncodeToString([]byte(text)))
	}
	planted := h.WriteFile(t, "planted", "planted for the search")
	model := h.agent(t,
		script.Call("Bash", script.Input{"command": attacker("search", strings.Join(texts, ","), h.Work, "/tmp", "/etc", "/run", "/dev/shm")}),
		script.Text("Nothing."),
	)
	got := h.run(t, h.isolation(), nil)
	text, _, _ := model.ToolResult("Bash")
	if !strings.Contains(text, "text 2 is in "+planted) || !strings.Contains(text, "looked into files") {
		t.Errorf("the search does not find what is there:\n%s", clipped(text))
	}
	for _, bad := range []string{"text 0", "text 1"} {
		if strings.Contains(text, bad) {
			t.Errorf("the key (0) or a variable of the host (1) is inside:\n%s", clipped(text))
		}
	}
	for _, r := range model.Requests() {
		if got := r.Header.Get("X-Api-Key"); got != h.key {
			t.Errorf("the upstream got the key %q, want the real one", got)
		}
	}
	if strings.Contains(got.text(t), h.key) {
		t.Error("the events contain the key")
	}
	h.unharmed(t)
}

// Most people are not root. What an agent can do there is tried again as one of them.
func TestAttacks_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^(TestAttack_|TestCLISandbox_WorksInACell$)")
}
