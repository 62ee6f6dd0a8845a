// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/workspace"
)

// A mounted is a program with a folder to mount.
type mounted struct {
	*program
	host string
}

func newMounted(t *testing.T, turns ...script.Turn) mounted {
	t.Helper()
	p := newProgram(t, claudetest.NewModel(t, turns...).URL())
	host := filepath.Join(p.cli.Root, "shop")
	if err := os.Mkdir(host, 0o755); err != nil {
		t.Fatal(err)
	}
	m := mounted{p, host}
	m.write("price.txt", "7\n")
	m.write("old.txt", "old\n")
	return m
}

func (m mounted) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.host, name), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// wants checks the host's files: what is in each, or that it is gone.
func (m mounted) wants(files map[string]string) {
	m.t.Helper()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(m.host, name))
		if want == "" && err == nil {
			m.t.Errorf("%s is there: %q", name, got)
		} else if want != "" && string(got) != want {
			m.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// leftovers are workspaces that are still there.
func (m mounted) leftovers() []string {
	found, _ := filepath.Glob(filepath.Join(m.env["TMPDIR"], workspace.Prefix+"*"))
	return found
}

const sells = "cd shop && echo 9 > price.txt && rm old.txt && echo new > new.txt"

func TestMount_IsACopy(t *testing.T) {
	m := newMounted(t, bash(sells), script.Text("Done."))
	got := m.run("run", "--allow", "shellExecute", "--mount", m.host, "Sell.")
	if got.code != 0 || !strings.Contains(got.errors, "are gone with it (") || !strings.Contains(got.errors, "--write-back") {
		t.Errorf("exit code %d, want 0 and a word about what is lost:\n%s%s", got.code, got.out, got.errors)
	}
	m.wants(map[string]string{"price.txt": "7\n", "old.txt": "old\n", "new.txt": ""})
	if left := m.leftovers(); left != nil {
		t.Errorf("%v is left", left)
	}
}

func TestWriteBack_CopiesChangesToTheHost(t *testing.T) {
	m := newMounted(t, bash(sells+"; cd ..; mkdir more; exit 1"), bash(sells+" && mkdir .git && touch .git/config"), script.Text("Done."))
	got := m.run("run", "--allow", "shellExecute", "--mount", m.host, "--write-back", "Sell.")
	if got.code != 0 || !strings.Contains(got.errors, "2 written, 1 deleted") {
		t.Errorf("exit code %d:\n%s%s", got.code, got.out, got.errors)
	}
	if !strings.Contains(got.errors, "shop/.git: belongs to a git repository") || strings.Contains(got.errors, "Git is not set") {
		t.Errorf("the text for people does not name what was left out:\n%s", got.errors)
	}
	if !strings.Contains(got.out, "put back") {
		t.Errorf("the output does not name the command that failed:\n%s", got.out)
	}
	m.wants(map[string]string{"price.txt": "9\n", "old.txt": "", "new.txt": "new\n"})
	if left := m.leftovers(); left != nil {
		t.Errorf("%v is left", left)
	}
}

// goNames are options that no flag has, and commands that cannot be sent.
var goNames = regexp.MustCompile(`Options|/compact|MountPath|FollowSymlinks|\b[Ee]xclude\b|\bDir\b|\bForce\b|\bState\b|TempDir`)

// The host is changed while the agent works: nothing is written, and what the agent did is not lost.
func TestWriteBack_ConflictLeavesBothSidesUntouched(t *testing.T) {
	m := newMounted(t)
	model := claudetest.NewModel(t, bash(sells), script.Func(func(*script.Request) script.Turn {
		m.write("price.txt", "8\n")
		return script.Text("Done.")
	}))
	m.setEnv(model.Env())
	m.leaves = true // the agent's side
	got := m.run("run", "--allow", "shellExecute", "--mount", m.host, "--write-back", "Sell.")
	if got.code != exitError || !strings.Contains(got.errors, "nothing was written back") || !strings.Contains(got.errors, "price.txt") || goNames.MatchString(got.errors) {
		t.Errorf("exit code %d, want 1 and the conflict:\n%s", got.code, got.errors)
	}
	m.wants(map[string]string{"price.txt": "8\n", "old.txt": "old\n", "new.txt": ""})
	left := m.leftovers()
	if len(left) != 1 || !strings.Contains(got.errors, left[0]) {
		t.Fatalf("left is %v, want the one that is named:\n%s", left, got.errors)
	}
	if kept, err := os.ReadFile(filepath.Join(left[0], "shop", "price.txt")); string(kept) != "9\n" {
		t.Errorf("the agent's side is %q, %v", kept, err)
	}
}

// A run that did not come to its end writes nothing back, and says where its files are.
func TestWriteBack_UnfinishedRunWritesNothing(t *testing.T) {
	m := newMounted(t, bash(sells), bash("true").Always())
	m.leaves = true // what was done by then
	got := m.run("run", "--allow", "shellExecute", "--mount", m.host, "--write-back", "--max-turns", "2", "Sell.")
	left := m.leftovers()
	if got.code != exitLimit || len(left) != 1 || !strings.Contains(got.errors, "nothing was written back") || !strings.Contains(got.errors, left[0]) {
		t.Errorf("exit code %d, left is %v:\n%s", got.code, left, got.errors)
	}
	m.wants(map[string]string{"price.txt": "7\n"})
}

// strangePatch is an answer that git would apply.
const strangePatch = `diff --git a/planted.txt b/planted.txt
new file mode 100644
--- /dev/null
+++ b/planted.txt
@@ -0,0 +1 @@
+planted
`

// Standard output has the patch alone: git applies what the agent changed, and never what the model writes.
func TestDiff_GitAppliesNothingElse(t *testing.T) {
	for name, flags := range map[string][]string{"quiet": {"--quiet"}, "lines": nil} {
		t.Run(name, func(t *testing.T) {
			m := newMounted(t, bash(sells), script.Text("Sold.\n\n"+strangePatch))
			got := m.run(append([]string{"run", "--allow", "shellExecute", "--mount", m.host + ":shop", "--diff", "Sell."}, flags...)...)
			if got.code != 0 || !strings.Contains(got.errors, "Sold.\n") {
				t.Errorf("exit code %d, want the answer on standard error:\n%s\nstdout:\n%s", got.code, got.errors, got.out)
			}
			m.wants(map[string]string{"price.txt": "7\n", "new.txt": "", "../planted.txt": ""})
			apply := exec.Command("git", "apply")
			apply.Dir, apply.Stdin = filepath.Dir(m.host), strings.NewReader(got.out)
			apply.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.cli.Root, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := apply.CombinedOutput(); err != nil {
				t.Errorf("git apply: %v\n%s%s", err, out, got.out)
			}
			m.wants(map[string]string{"price.txt": "9\n", "old.txt": "", "new.txt": "new\n", "../planted.txt": ""})
			if !strings.HasPrefix(got.out, "diff --git a/shop/") {
				t.Errorf("standard output does not begin with the patch:\n%s", got.out)
			}
		})
	}
}

// A part of a patch would be a success to git apply. The error has a command that prints it all the same, or names the copies.
func TestDiff_UnfinishedRunPrintsNoPatch(t *testing.T) {
	check := "version: 1\n" + aTask + "policy: {shellExecute: allow}\ncompletion: {files: [shop/report.md], rounds: 1}\n"
	for name, x := range map[string]struct {
		flags   []string
		code    int
		left    bool // the copies stay
		printed bool
	}{
		"a limit":       {[]string{"--allow", "shellExecute", "--max-turns", "2", "Sell."}, exitLimit, false, false},
		"an interrupt":  {[]string{"--allow", "shellExecute", "Sell."}, exitInterrupted, false, false},
		"a check":       {[]string{"-f", "agent.yaml"}, exitLimit, false, false},
		"nothing kept":  {[]string{"-f", "agent.yaml", "--no-keep"}, exitLimit, true, false},
		"asked by name": {[]string{"-f", "agent.yaml", "--write-back", "--write-back-incomplete"}, exitLimit, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			rest := script.Text("Done.").Always()
			switch x.code {
			case exitInterrupted:
				rest = bash("touch begun; perl -e 'select(undef,undef,undef,20)'")
			case exitLimit:
				if !slices.Contains(x.flags, "-f") {
					rest = bash("true").Always()
				}
			}
			m := newMounted(t, bash(sells), rest)
			m.leaves = x.left || x.code == exitInterrupted
			m.cli.WriteFile(t, "agent.yaml", check)
			r := m.start(append([]string{"run", "--quiet", "--diff", "--mount", m.host + ":shop"}, x.flags...)...)
			if x.code == exitInterrupted {
				m.awaitCopy("shop/begun")
				r.signal(os.Interrupt)
			}
			got := r.wait()
			if got.code != x.code || (got.out != "") != x.printed {
				t.Fatalf("exit code %d, want %d; it printed %q, want a patch: %v\n%s", got.code, x.code, got.out, x.printed, got.errors)
			}
			left := m.leftovers()
			if (left != nil) != x.left || x.left && !strings.Contains(got.errors, "look at what it has done in "+left[0]) {
				t.Errorf("left is %v, want it left: %v\n%s", left, x.left, got.errors)
			}
			if x.printed {
				return
			}
			if !strings.Contains(got.errors, "the run did not come to its end, so no patch was printed") {
				t.Errorf("the errors do not name the missing patch:\n%s", got.errors)
			}
			show := regexp.MustCompile(`drover (runs show \S+ --diff)`).FindStringSubmatch(got.errors)
			if (show == nil) != x.left {
				t.Fatalf("the command that prints the patch is %q:\n%s", show, got.errors)
			}
			if show != nil {
				if patch := m.run(strings.Fields(show[1])...); patch.code != 0 || !strings.Contains(patch.out, "\n+9\n") {
					t.Errorf("exit code %d, the patch is %q; %s", patch.code, patch.out, patch.errors)
				}
			}
		})
	}
}

// awaitCopy waits for a file in the workspace.
func (m mounted) awaitCopy(name string) {
	m.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if found, _ := filepath.Glob(filepath.Join(m.env["TMPDIR"], workspace.Prefix+"*", name)); found != nil {
			return
		}
	}
	m.t.Fatalf("there is no %s in the workspace", name)
}

// The model knows what is there without a message of the user, and works in the workspace.
func TestMount_SystemPromptNamesTheMounts(t *testing.T) {
	m := newMounted(t)
	m.write("in$cash.txt", "1\n")
	model := claudetest.NewModel(t, bash("pwd; ls"), script.Text("Done."))
	m.setEnv(model.Env())
	if got := m.run("run", "--allow", "shellExecute", "--mount", m.host+":goods/today", "Look."); got.code != 0 {
		t.Errorf("exit code %d:\n%s", got.code, got.errors)
	}
	if first := model.Requests()[0]; !first.SawText("goods/today") || !first.SawText("`price.txt`") || !first.SawText("`in$cash.txt`") {
		t.Error("the prompt does not name what was mounted")
	}
	if result, _, _ := model.ToolResult("Bash"); !strings.Contains(result, workspace.Prefix) || !strings.HasSuffix(strings.TrimSpace(result), "goods") {
		t.Errorf("the command saw %q", result)
	}
}

// A conversation belongs to the folder that it was begun in, though each run works in a new copy.
func TestConversations_ContinueInANewCopy(t *testing.T) {
	m := newMounted(t)
	model := claudetest.NewModel(t, bash(sells), script.Text("Sold."), script.Text("Again."), script.Text("Here."))
	m.setEnv(model.Env())
	first := m.run("run", "--json", "--allow", "shellExecute", "--mount", m.host, "--write-back", "Sell.")
	_, token, found := strings.Cut(first.out, `"resumeToken":"`)
	if !found || first.code != 0 {
		t.Fatalf("exit code %d:\n%s%s", first.code, first.out, first.errors)
	}
	for line := range strings.Lines(first.out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is no event", line)
		}
	}
	token, _, _ = strings.Cut(token, `"`)
	for _, more := range [][]string{{"--mount", m.host}, nil} {
		got := m.run(append([]string{"run", "--resume", token, "More."}, more...)...)
		if got.code != 0 || !model.LastRequest().SawText("Sold.") {
			t.Errorf("%v: exit code %d:\n%s%s", more, got.code, got.out, got.errors)
		}
	}
}

func TestMount_InvalidMountsAreRejected(t *testing.T) {
	m := newMounted(t)
	links, linked := filepath.Join(m.cli.Root, "links"), filepath.Join(m.cli.Root, "linked")
	for _, err := range []error{
		os.Mkdir(links, 0o755), os.Symlink("/etc/hosts", filepath.Join(links, "hosts")),
		os.Symlink(filepath.Join(m.host, "price.txt"), linked), syscall.Mkfifo(filepath.Join(m.cli.Root, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]struct {
		args []string
		code int
		want string
	}{
		"home":            {[]string{"--mount", m.env["HOME"]}, exitUsage, "holds your home"},
		"all":             {[]string{"--mount", "/"}, exitUsage, "holds your home"},
		"twice":           {[]string{"--mount", m.host, "--mount", m.host}, exitUsage, "--mount folder:path"},
		"nothing":         {[]string{"--mount", ""}, exitUsage, "names no file or folder"},
		"not there":       {[]string{"--mount", m.host + "/none"}, exitUsage, "no such file"},
		"another system":  {[]string{"--mount", `C:\x`}, exitUsage, "no such file"},
		"a link out":      {[]string{"--mount", links}, exitUsage, "mount less, or put what it leads to in its place"},
		"a link":          {[]string{"--mount", linked}, exitUsage, "mount what it leads to"},
		"a pipe":          {[]string{"--mount", m.cli.Root + "/pipe"}, exitUsage, "mount less"},
		"no name":         {[]string{"--mount", m.host + ":."}, exitUsage, "leave the path out"},
		"climbing out":    {[]string{"--mount", m.host + ":../x"}, exitUsage, "leads out of the workspace"},
		"no time":         {[]string{"--mount", m.host, "--timeout", "1us"}, exitLimit, "the time is up"},
		"diff and events": {[]string{"--mount", m.host, "--diff", "--json"}, exitUsage, "choose one"},
	} {
		t.Run(name, func(t *testing.T) {
			got := m.run(append([]string{"run", "x"}, x.args...)...)
			if got.code != x.code || !strings.Contains(got.errors, x.want) || strings.Contains(got.errors, "workspace: ") || goNames.MatchString(got.errors) {
				t.Errorf("exit code %d, want %d and %q:\n%s", got.code, x.code, x.want, got.errors)
			}
			if left := m.leftovers(); left != nil || got.out != "" {
				t.Errorf("%v is left, and printed was %q", left, got.out)
			}
		})
	}
}

// A call that was denied does not keep the others' work from the host.
func TestWriteBack_DeniedCallsDoNotPreventIt(t *testing.T) {
	m := newMounted(t, bash(sells), script.Call("WebFetch", script.Input{"url": "http://x.example/", "prompt": "x"}), script.Text("Done."))
	if got := m.run("run", "--allow", "shellExecute", "--mount", m.host, "--write-back", "Sell."); got.code != exitDenied {
		t.Errorf("exit code %d:\n%s", got.code, got.errors)
	}
	m.wants(map[string]string{"price.txt": "9\n", "old.txt": "", "new.txt": "new\n"})
}

func TestMount_InterruptedRunKeepsTheCopy(t *testing.T) {
	m := newMounted(t, bash(sells), bash("echo 5 > price.txt; touch begun; perl -e 'select(undef,undef,undef,20)'"))
	m.leaves = true
	r := m.start("run", "--allow", "shellExecute", "--mount", m.host, "--write-back", "Sell.")
	m.awaitCopy("shop/begun")
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(&r.seen, r.stdout)
	got := r.wait()
	left := m.leftovers()
	if got.code != exitInterrupted || len(left) != 2 || !strings.Contains(got.errors, left[0]+",") || !strings.Contains(got.errors, left[1]+" if") {
		t.Fatalf("exit code %d, left is %v:\n%s", got.code, left, got.errors)
	}
	if kept, err := os.ReadFile(filepath.Join(left[0], "shop", "price.txt")); string(kept) != "9\n" {
		t.Errorf("the price is %q, %v, want that of the command which came to its end", kept, err)
	}
	m.wants(map[string]string{"price.txt": "7\n"})
}

func TestCleanup_StuckWorkspaceIsReportedWithOneAdvice(t *testing.T) {
	temp := filepath.Join(t.TempDir(), "temp")
	t.Setenv("TMPDIR", temp)
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	o := runOptions{files: mountFlags{mounts: mountList{{HostPath: t.TempDir(), MountPath: "work"}}}}
	p, err := o.openWorkspace(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(temp, temp+".moved"), os.WriteFile(temp, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	got := advice.Text(p.close())
	if !strings.Contains(got, "the workspace could not be removed: ") || !strings.Contains(got, p.Root()) || strings.Count(got, "next: ") != 1 {
		t.Errorf("got %q, want one piece of advice", got)
	}
}
