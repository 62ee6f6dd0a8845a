// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// bash is a call of the shell.
func bash(command string) event.ToolCall {
	input, _ := json.Marshal(map[string]string{"command": command})
	return event.ToolCall{ID: "1", Name: "Bash", Input: input}
}

func TestCommandRules_Allow(t *testing.T) {
	g := ForClaude(Rules(RuleOptions{Allow: []string{
		"Bash(npm run test)", "Bash(git status:*)", "Bash(go test *)", "Bash(ls*)", "Bash(echo:*)", "Bash(cat:*)",
		"Bash(git * main)", "Bash(find:*)", "Bash(find . -name x -delete)", `Bash(git commit -m "a b")`, "Bash([:*)", "Bash(grep:*)", "Bash(fd:*)",
	}}))
	allowed := []string{
		"npm run test", "  npm   run 'test' ", `"npm" r\un t"es"t`, "npm run test # a comment",
		"git status", "git status --short", "git status $DIR", "git status *.go",
		"go test", "go test ./...", "ls", "ls -la", "lsof", "git checkout main", "git push --force origin main",
		`git commit -m "a b"`, `git commit -m 'a b'`,
		"git status && go test ./...", "git status || echo no", "git status; ls", "git status | cat", "ls &", "git status\nls",
		"(git status)", "{ git status; }", "echo $(git status)", "echo `git status`", "cat <(git status)", `echo "$(ls "$(git status)")"`,
		"if git status; then ls; else echo; fi", "for f in a b; do cat $f; done", "while git status; do ls; done",
		"case x in a) ls;; esac", "f() { ls; }", "! git status", "time ls", "[ -f x ] && ls",
		"ls 2>&1", "ls >/dev/null 2>&1", "ls </dev/null", "cat <<EOF\ntext\nEOF", "cat <<< text", "ls 2>&-",
		"CI=1 npm run test", "x=1; echo $x", `out=$(git status); echo "${out:-none}"`, `echo "${x%.go}"`,
		"find . -name x", "find . -name '*.go'", "find . -name *.go", "find . -name x -delete", "fd -e go",
	}
	refused := []string{
		// no more and no less than the rule says
		"npm run tests", "npm run test --watch", "npm run", "npm", "npm run test:unit", "git", "git stat", "git statusx", "gitstatus",
		"git checkout main2", "golang test", `git commit -m a b`, "git 'status --short'",
		// a second command
		"git status; rm -rf x", "git status && rm x", "git status || rm x", "git status | rm x", "git status |& sh",
		"git status & rm x", "git status\nrm x",
		"rm x; git status", "(rm x); ls", "{ rm x; }; ls", "ls; exit; rm x", "if rm x; then ls; fi", "if ls; then rm x; fi",
		"if ls; then ls; elif rm x; then ls; fi",
		"for f in $(rm x); do ls; done", "for f in a; do rm $f; done", "while rm x; do ls; done", "until ls; do rm x; done",
		"case $(rm x) in a) ls;; esac", "case a in a) rm x;; esac", "case a in $(rm x)) ls;; esac", "f() { rm x; }; f",
		"ls() { rm x; }; ls", "function ls { rm x; }; ls",
		"! rm x", "time rm x", "coproc rm x", "select x in a; do rm x; done",
		// behind what looks like a comment or the end of a text
		"ls # x \\\nrm x", "ls $#; rm x", "ls a#b; rm x", "echo ${#x}; rm x", "ls;# \nrm x", "ls \\#; rm x", "ls '#'; rm x",
		"cat <<E\nE\nrm x\nE", "cat <<'E'\n'E'\nE\nrm x", "cat <<\\E\n$(ls)\nE\nrm x",
		"cat <<-E\n\tE\nrm x", "cat <<E; rm x\nE", "cat <<E | rm x\nE", "cat <<E\n${x:-`rm x`}\nE", "cat <<\"E\"F\n$(ls)\nEF\nrm x",
		"echo $((ls); rm x)", "echo $( (rm x) )", "((ls); rm x)", "echo \"'\"; rm x; echo \"'\"", "echo '\\'; rm x", `echo "\\"; rm x`,
		// in substitutions
		"git status $(rm x)", "git status `rm x`", `git status "$(rm x)"`, "git status \"`rm x`\"", "cat <(rm x)", "ls >(rm x)",
		"echo ${x:-$(rm x)}", "echo ${x/a/$(rm x)}",
		"echo $(echo $(rm x))", "cat <<EOF\n$(rm x)\nEOF", "cat <<EOF\n`rm x`\nEOF", `cat <<< "$(rm x)"`, "echo $((1 + $(rm x)))",
		"echo ${x:$(rm x):1}", "x=$(rm x)", "CI=$(rm x) ls",
		// what evaluates text
		"echo $((x))", "((x))", "let x", "[[ $x -eq 1 ]]", "echo ${x@P}", "echo ${!x}", "echo ${a[x]}", "a[x]=1", "a=(1)",
		"echo *(e:'rm x':)", "echo ${x:1:2}", "echo $[x]",
		"eval ls", "source ls", ". ls", "exec ls", "command ls", "builtin echo", "trap 'rm x' EXIT; ls", "alias ls='rm x'; ls",
		// what runs others
		"env ls", "sudo ls", "xargs ls", "nohup ls", "timeout 5 ls", "bash -c ls", "sh -c 'git status'", "nice ls",
		"find . -exec rm {} +", "find . -execdir rm {} +", "find . -delete", "find . -ok rm {} +", "find . -fprint x",
		`find . "-exec" rm {} +`, `find . -ex\ec rm {} +`, "find . $ACTION", "find . -{exec,x} rm {} +", "find . -exe? rm",
		"find . -name y -delete",
		"fd -x rm", "fd --exec rm", "fd --exec-batch=rm", "fd -Hx rm", "fd $X",
		// files
		"ls > x", "ls >> x", "ls >| x", "ls &> x", "ls &>> x", "ls <> x", "ls 2> x", "cat < /etc/passwd", "ls >& x", "> x",
		"ls > /dev/nullx", "ls > $X", "ls >&$X", "echo $(<x)", "ls {fd}> /dev/null", "(ls) > x", "{ ls; } > x",
		"if ls; then ls; fi > x",
		// variables
		"LD_PRELOAD=x ls", "PATH=. ls", "PATH=.; ls", "export PATH=.; ls", "declare -x PATH=.; ls", "local x=1", "readonly x=1",
		"for PATH in .; do ls; done", "echo ${PATH:=x}", "path=(.); ls", "path=.; ls", "GIT_PAGER=x git status", "IFS=x; ls",
		"http_proxy=x; ls", "npm_config_script_shell=x npm run test", "x=1 ls", "BASH_ENV=x ls", "PROMPT_COMMAND=x; ls", "select PATH in .; do ls; done",
		// names that are computed
		"$X", "$X status", "g$X status", `"$X"`, "$(echo rm) x", "l? -la", "[l]s", "{ls,-la}", "$'l\\x73'", "*", "~+/x", "ls$X", "ls?",
		"ls{,of} x", "ls$(echo)", "ls*",
		// names that are others
		"/bin/ls", "./ls", "LS", "../git status", "git\u00a0status", "ech\u00f3",
		// what cannot be read
		"", " ", "# nothing", "ls 'x", "ls $(", "if ls", "ls )", "ls;;", "ls\x00", "ls\\\r\nrm x", "ls \x01", "ls\x1b", "ls && ", "<<EOF", "ls " + strings.Repeat("x", maxCommand),
	}
	for _, command := range allowed {
		if got := g.Decide(bash(command), Facts{}); got.Verdict != event.Allow {
			t.Errorf("%q: got %s (%s), want allow", command, got.Verdict, got.Reason)
		}
	}
	for _, command := range refused {
		if got := g.Decide(bash(command), Facts{}); got.Verdict != event.Deny {
			t.Errorf("%q: got %s, want deny", command, got.Verdict)
		}
	}
}

func TestCommandRules_Deny(t *testing.T) {
	g := ForClaude(AllowTools("Bash"), DenyTools("Bash(rm:*)", "Bash(git push:*)", "Bash(npm publish)", "Bash(curl *)", "Bash(/sbin/shutdown)"))
	denied := []string{
		"rm x", "rm", "rm -rf /", "git push", "git push origin main", "npm publish", "curl x", "shutdown", "/sbin/shutdown",
		// anywhere
		"ls; rm x", "ls && rm x", "ls | rm x", "ls & rm x", "ls\nrm x", "(rm x)", "echo $(rm x)", "echo `rm x`", "cat <(rm x)",
		"f() { rm x; }", "if rm x; then ls; fi", "coproc rm x", "time rm x", "! rm x",
		"echo ${a:$(rm x):1}", "echo ${a[$(rm x)]}", "((a[$(rm x)]))", "[[ -n $(rm x) ]]", "cat <<EOF\n$(rm x)\nEOF",
		"export A=$(rm x)", "A=$(rm x)", "ls > $(rm x)", "case $(rm x) in a) ;; esac",
		// by other spellings
		"/bin/rm x", "/usr/bin/../bin/rm x", "./rm x", "\\rm x", "r\\m x", `"rm" x`, `'r'm x`, "r\\\nm x", "$'rm' x", "$'\\x72m' x",
		"RM x", "rm.exe x", "=rm x", "A=1 rm x", "  rm\tx", "~/bin/rm",
		"git  push", "git 'push'", "git pu\"sh\"", "git --no-pager push", "git -C . push", "git -c a=b -C . push", "/usr/bin/git push",
		// by what the shell computes
		"$X", "$X -rf", "r$X x", "/bin/r? x", "/bin/[r]m x", "{rm,-rf,x}", `{"rm",-rf} x`, "$(echo rm) x", "git $X", "git pu$X",
		"git {push,--force}", "git pu*", "git $@", "${X}m x", "@(rm) x", " ${x:-rm x}\\", "${x:-rm /}bin/tool", "$HOME/bin/tool",
		"/bin$'\\x2f'rm x", `"/bin${X}rm" x`, `"/bin$(echo /)rm" x`, `"$@" x`, `"${a[@]}"`, `"${x:-$@}"/y`, "npm $X publish", "$X rm x",
		"npm publish $X", "npm $X", "rm$X", `"$X"`, `git "$X"`, `git "pu$X"`,
		// behind others
		"sudo rm x", "sudo -u root rm x", "env rm x", "env -i A=b rm x", "env -S 'rm x'", "nohup rm x", "timeout 5 rm x",
		"timeout -s KILL 5s rm x", "xargs rm", "ls | xargs -n 1 rm", "command rm x", "exec rm x", "builtin rm", "nice -n 5 rm x",
		"find . -exec rm {} +", "find . -name x -execdir /bin/rm {} \\;", "sudo env nohup rm x", "busybox rm x", "stdbuf -o0 rm x",
		"sudo git push", "sudo git -C . push", "sudo $X", "env A=b $X", "sudo -u root $X", "timeout 5 $X",
		"bash -c 'rm x'", `bash -c "rm x"`, "sh -c 'ls; rm x'", "bash -ec 'rm x'", "bash -o pipefail -c 'rm x'",
		"bash --norc -c 'rm x'", "/bin/sh -c 'rm x'", "zsh -c 'rm x'", "sudo bash -c 'rm x'", "env bash -c 'rm x'",
		"xargs sh -c 'rm x'",
		`bash -c "bash -c 'rm x'"`, "eval rm x", "eval -- rm x", "time -- rm x", "time -- $X", "time -p -- rm x", "bash -c -- 'rm x'",
		"source -- /dev/stdin", "{rm,x}<y", "{rm,x} <y", "eval 'rm x'", `eval "ls; rm" x`, "eval $X", "bash -c $X", `bash -c "$X"`,
		"su -c 'rm x' me", "ssh host 'rm x'", "ssh host rm x", "watch 'rm x'", "trap 'rm x' EXIT", "alias ls='rm x'", "alias q=rm\nq",
		"alias q=$X", "alias $X", "env -S'rm x'", "env -vS'rm x'", "env --split-string='rm x'", "parallel 'rm {}' ::: a",
		// hidden from sight
		"echo cm0geA== | base64 -d | sh", "bash", "bash -s", "bash -x", "bash <<< 'rm x'", "bash <<EOF\nrm x\nEOF", "bash /dev/stdin",
		"bash -", "bash <(echo rm x)", "source <(echo rm x)", ". /dev/stdin", "cat x | sudo bash", "cat x | env -i sh",
		"sudo -u me bash -c $X",
		"rm\r x", "ls 'x", "ls $(", "", " ", "ls\x00", strings.Repeat("ls; ", maxCommand),
		"git " + strings.Repeat("-c a=b ", 40) + "push", "env " + strings.Repeat("x ", 2000) + "rm",
		strings.Repeat("eval ", 5) + "rm x", strings.Repeat("eval ", 20) + "ls",
	}
	free := []string{
		"ls", "echo rm", "echo 'rm x'", "git status", "git commit -m push", "git pull; ls", "npm publish --dry-run", "npm run publish",
		"rmdir x", "echo $X", "ls $X", "git status $X", "cat rm",
		"sudo ls", "env A=b ls", "sudo cat $X", "xargs grep x", "bash script.sh", "bash -c 'ls'", "bash --version", "eval ls",
		"sh ./run.sh -s", "git rm x", "# rm x", "for f in *; do cat $f; done", "cat <<'EOF'\nrm x\nEOF",
		"find . -name x", "timeout 5 ls", "[ -f x ]", `"$HOME/bin/tool" x`, `"$HOME"/bin/tool x`, "HEAD=1 ls",
	}
	for _, command := range denied {
		got := g.Decide(bash(command), Facts{})
		if got.Verdict != event.Deny || got.Policy != "deny-list" {
			t.Errorf("%.80q: got %s, want deny", command, got.Verdict)
		}
	}
	for _, command := range free {
		if got := g.Decide(bash(command), Facts{}); got.Verdict != event.Allow {
			t.Errorf("%q: got %s (%s), want allow", command, got.Verdict, got.Reason)
		}
	}
}

func TestCommandRules_AskAndDenyMatchTheSameCommands(t *testing.T) {
	g := ForClaude(Rules(RuleOptions{Allow: []string{"Bash(git:*)"}, Ask: []string{"Bash(git push:*)"}, Deny: []string{"Bash(git reset:*)"}}))
	for command, want := range map[string]event.Verdict{
		"git status": event.Allow, "git push": event.Ask, "git -C . push": event.Ask, "git push; git reset": event.Deny, "ls": event.Deny, "ls; git push": event.Ask,
	} {
		if got := g.Decide(bash(command), Facts{}); got.Verdict != want {
			t.Errorf("%q: got %s (%s), want %s", command, got.Verdict, got.Reason, want)
		}
	}
}

func TestCommandRules_CommandComesFromTheInputOrTheName(t *testing.T) {
	g := ForClaude(Rules(RuleOptions{Allow: []string{"Bash(git status)"}}))
	cases := []struct {
		name, tool, input string
		want              event.Verdict
	}{
		{"input", "Bash", `{"command":"git status"}`, event.Allow},
		{"escaped", "Bash", `{"comman\u0064":"git\u0020status"}`, event.Allow},
		{"name", "Bash(git status)", ``, event.Allow},
		{"both alike", "Bash(git status)", `{"command":"git status"}`, event.Allow},
		{"name hides input", "Bash(git status)", `{"command":"rm x"}`, event.Deny},
		{"input hides name", "Bash(rm x)", `{"command":"git status"}`, event.Deny},
		{"twice", "Bash", `{"command":"git status","command":"rm x"}`, event.Deny},
		{"no string", "Bash", `{"command":["git status"]}`, event.Deny},
		{"no object", "Bash", `"git status"`, event.Deny},
		{"no JSON", "Bash", `{"command":"git status"`, event.Deny},
		{"more", "Bash", `{"command":"git status"} {}`, event.Deny},
		{"null", "Bash", `{"command":null}`, event.Deny},
		{"nothing", "Bash", ``, event.Deny},
		{"foreign", "mcp__other__Bash", `{"command":"git status"}`, event.Deny},
	}
	for _, c := range cases {
		if got := g.Decide(event.ToolCall{Name: c.tool, Input: json.RawMessage(c.input)}, Facts{}); got.Verdict != c.want {
			t.Errorf("%s: got %s (%s), want %s", c.name, got.Verdict, got.Reason, c.want)
		}
	}
}

func TestCommandRules_InvalidRulesAreErrors(t *testing.T) {
	for _, rule := range []string{"Bash()", "Bash(:*)", "Bash(ls; rm)", "Bash(ls > x)", "Bash(A=b ls)", "Bash($X)", "Bash(ls $X)", "Bash(ls &)", "Bash(! ls)", "Bash(ls 'x)", "Bash(ls", "Bash(ls\x01)", "Bash((ls))", "Bash(# x)"} {
		if _, err := New(AllowTools(rule)); err == nil {
			t.Errorf("%q: got no error", rule)
		} else if !strings.Contains(advice.Text(err), "allow-list") {
			t.Errorf("%q: error does not name the policy: %v", rule, err)
		}
	}
}

// Deep nesting must neither overflow the stack nor take long.
func TestCommandRules_DeepNestingIsReadInTime(t *testing.T) {
	g := ForClaude(Rules(RuleOptions{Allow: []string{"Bash(ls:*)"}, Deny: []string{"Bash(rm:*)"}}))
	for _, part := range []string{"(", "$(", "{ ", "if ", "! ", "`", "\"$(", "((", "$((", "${a:-", "[[ ( ", "<(", "case a in a) ", "- ", "env ", "sudo -u ", "$X", "ls;", "*", "f() ", "bash -c '", "eval ", "${a[", "x=", "{a,", "$(')' "} {
		start := time.Now()
		command := strings.Repeat(part, maxCommand/len(part))
		if got := g.Decide(bash(command), Facts{}); got.Verdict == event.Allow && part != "ls;" {
			t.Errorf("%q repeated is allowed", part)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q repeated took %v", part, took)
		}
	}
}

// Wherever a command is in a script, it is seen.
func TestCommandRules_SecondCommandIsNeverAllowed(t *testing.T) {
	allow := ForClaude(Rules(RuleOptions{Allow: []string{"Bash(git status:*)", "Bash(ls:*)", "Bash(cat:*)", "Bash(echo:*)"}}))
	deny := ForClaude(AllowTools("Bash"), DenyTools("Bash(rm:*)"))
	rapid.Check(t, func(t *rapid.T) {
		good := drawScript(t, 4)
		if got := allow.Decide(bash(good), Facts{}); got.Verdict != event.Allow {
			t.Fatalf("%q: got %s (%s), want allow", good, got.Verdict, got.Reason)
		}
		if got := deny.Decide(bash(good), Facts{}); got.Verdict != event.Allow {
			t.Fatalf("%q: got %s (%s), want allow", good, got.Verdict, got.Reason)
		}
		places := strings.Count(good, "git status")
		if places == 0 {
			good, places = "git status; "+good, 1
		}
		at := rapid.IntRange(1, places).Draw(t, "place")
		parts := strings.Split(good, "git status")
		bad := strings.Join(parts[:at], "git status") + "rm -rf x" + strings.Join(parts[at:], "git status")
		for _, bad := range []string{bad, good + "; rm -rf x", "rm -rf x; " + good, good + " | rm -rf x", "rm -rf x && " + good, good + "\nrm -rf x"} {
			if got := allow.Decide(bash(bad), Facts{}); got.Verdict != event.Deny {
				t.Fatalf("allowing: %q: got %s", bad, got.Verdict)
			}
			if got := deny.Decide(bash(bad), Facts{}); got.Verdict != event.Deny {
				t.Fatalf("denying: %q: got %s", bad, got.Verdict)
			}
		}
	})
}

// drawScript makes a script of allowed commands.
func drawScript(t *rapid.T, depth int) string {
	simple := rapid.SampledFrom([]string{"git status", "git status --short", "ls -la", "cat 'a b' c", `echo "x y"`, "echo *", "git status"})
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
		return simple.Draw(t, "command")
	}
	form := rapid.SampledFrom([]string{
		"A; B", "A && B", "A || B", "A | B", "A & B", "A\nB", " (A)", "{ A; }", "echo $(A)", "echo `ls`; A", `cat "x$(A)" y`,
		"cat <(A)", "if A; then B; else A; fi",
		"for f in a $(A); do B; done", "while A; do B; done", "case $(A) in b) B;; esac", "f() { A; }; B", "if ! A; then B; fi",
		"{ time A; }", "x=$(A); B", "A 2>&1", " (A) >/dev/null", "echo ${x:-$(A)}", "CI=$(A) ls",
	}).Draw(t, "form")
	a, b := drawScript(t, depth-1), drawScript(t, depth-1)
	return strings.NewReplacer("A", a, "B", b).Replace(form)
}

// FuzzCommands looks for panics, and for commands that are allowed with a second one beside them.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{"git status", "ls -la | cat", "echo $(ls)", "if ls; then cat x; fi", "cat <<EOF\nx\nEOF", "ls # x", "ls \\", "for f in a; do ls; done", "case a in b) ls;; esac", "f() { ls; }"} {
		f.Add(seed)
	}
	allow := ForClaude(Rules(RuleOptions{Allow: []string{"Bash(git status:*)", "Bash(ls:*)", "Bash(cat:*)", "Bash(echo:*)", "Bash(find:*)"}}))
	deny := ForClaude(AllowTools("Bash"), DenyTools("Bash(rm:*)"))
	f.Fuzz(func(t *testing.T, command string) {
		if strings.Contains(deny.Decide(bash(command), Facts{}).Reason, "failed") {
			t.Fatalf("%q: a policy panics", command)
		}
		if got := allow.Decide(bash(command), Facts{}); got.Verdict != event.Allow {
			return
		}
		for _, both := range []string{"rm -rf x; " + command, "rm -rf x\n" + command, command + "\nrm -rf x", "$(rm -rf x) " + command} {
			if got := allow.Decide(bash(both), Facts{}); got.Verdict == event.Allow && !swallowsNext(command) {
				t.Errorf("%q is allowed", both)
			}
		}
	})
}

// swallowsNext reports whether what follows a command becomes a part of it.
func swallowsNext(command string) bool {
	return strings.HasSuffix(command, `\`) || strings.Contains(command, "<<")
}
