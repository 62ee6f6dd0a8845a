// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
)

// wrappers run the command § that they are given as words.
var wrappers = []string{
	"§", "setpriv --no-new-privs §", "setpriv --reuid=1 --clear-groups §", "prlimit --nofile=5 §", "prlimit -n5 §", "choom -n 5 -- §",
	"/lib64/ld-linux-x86-64.so.2 §", "/lib/ld-musl-x86_64.so.1 §", "ld.so --preload x §", "/lib/ld-linux-aarch64.so.1 --argv0 x §",
	"screen -dm §", "screen -S x -d -m §", "tmux new-session -d §", "tmux new -d -s x §", "tmux run-shell §",
	"env A=b §", "nice -n 5 §", "nohup §", "timeout 5 §", "stdbuf -o0 §", "setsid -w §", "unshare -r §", "nsenter -t 1 -m §", "chroot / §",
	"chrt -b 0 §", "ionice -c 3 §", "taskset -c 0 §", "uclampset -m 5 §", "coresched new -- §", "setarch -R §", "linux32 §", "runcon -t x §",
	"strace -f §", "ltrace §", "gdb --args §", "valgrind §", "perf stat §", "perf record -- §", "rr record §",
	"watch §", "xargs §", "parallel §", "find . -exec § \\;", "fd -x §", "flock /tmp/x §", "runuser -u me -- §", "sudo §", "doas §",
	"busybox §", "toybox §", "bwrap --bind / / §", "firejail §", "fakeroot §", "proot §", "eatmydata §", "cgexec -g cpu:x §", "numactl -N 0 §",
	"faketime x §", "dbus-run-session -- §", "xvfb-run §", "ssh-agent §", "systemd-run §", "systemd-inhibit §", "systemd-cat §", "aa-exec -p x §",
	"gosu me §", "su-exec me §", "chpst -u me §", "start-stop-daemon --start --exec §", "torsocks §", "proxychains4 §", "chronic §", "ifne §",
	"entr §", "nodemon --exec §", "unbuffer §", "rlwrap §", "hyperfine §", "ssh host §", "command §", "exec -a x §", "builtin §", "time §",
	"git bisect run §", "git -C . bisect run §", "git submodule foreach --recursive §", "npm exec -- §", "pnpm dlx §", "npx §", "bundle exec §", "poetry run §", "uv run §",
	"docker run --rm image §", "podman exec x §", "kubectl exec pod -- §", "ip netns exec x §", "nix develop -c §", "direnv exec . §", "mise x -- §",
	"caffeinate §", "trap § EXIT", "dumb-init §", "daemonize §", "run0 §", "sotruss §", "systemd-socket-activate -l 5 §", "schroot -c x -- §", "lxc-attach -n x -- §",
	"runc exec x §", "podman unshare §", "docker-compose exec x §", "rustup run stable §", "opam exec -- §", "keyctl session - §",
}

// texts run the script § that they are given in one word.
var texts = []string{
	"LESS='+!§' less y", "bash -c '§'", "sh -ec '§'", "bash5 -c '§'", "sg users '§'", "sg users -c '§'", "su -c '§' me", "capsh -- -c '§'", "capsh --user=x -- -c '§'", "eval '§'",
	"script -c '§' /dev/null", "script -qc '§'", "tmux send-keys '§' Enter", "screen -X stuff '§'", "watch '§'", "env -S '§'", "flock x -c '§'",
	"gdb -ex 'shell §'", "gdb -batch -ex '!§'", "socat - EXEC:'§'", "socat - SYSTEM:'§'", "nix-shell --run '§'", "parallel '§' ::: a",
	"git -c alias.x='!§' x", "git -calias.x='!§' x", "git config alias.x '!§'", "git config --global alias.x '!§'", "git -c core.pager='§' log",
	"git -c core.sshCommand='§' fetch", "git -c core.fsmonitor='§' status", "git -c diff.external='§' diff", "git -c credential.helper='!§' fetch",
	"git -c filter.x.clean='§' add x", "git config core.editor '§'", "git config set core.pager '§'", "git rebase -x '§' main", "git rebase --exec='§' main",
	"git rebase --exec '§' main", "git filter-branch --tree-filter '§'", "git submodule foreach '§'", "git difftool -x '§'", "git grep -O'§' y",
	"git fetch --upload-pack='§' x", "git clone -u '§' x", "git push --receive-pack='§'", "git ls-remote 'ext::§'", "git clone -c core.pager='§' x",
	"GIT_SSH_COMMAND='§' git fetch", "export GIT_SSH_COMMAND='§'", "GIT_SSH_COMMAND='§'; git fetch", "env GIT_SSH_COMMAND='§' git fetch", "export 'GIT_SSH_COMMAND=§'",
	"declare -x GIT_PAGER='§'", "GIT_PAGER='§' git log", "GIT_EDITOR='§' git commit", "GIT_SEQUENCE_EDITOR='§' git rebase -i", "GIT_EXTERNAL_DIFF='§' git diff",
	"PAGER='§' man ls", "MANPAGER='§' man ls", "EDITOR='§' crontab -e", "VISUAL='§' less x", "SUDO_EDITOR='§' sudoedit x", "LESSOPEN='|§' less x", "BROWSER='§' gh",
	"PROMPT_COMMAND='§'", "PROMPT_COMMAND=('§')", "PROMPT_COMMAND+='; §'", "RSYNC_RSH='§' rsync x y", "TAR_OPTIONS='--to-command=§' tar xf x",
	"sudo GIT_PAGER='§' git log", "BASH_ALIASES[ls]='§'", "BASH_ALIASES=([ls]='§')", "aliases[ls]='§'",
	"PS4='$(§)'; set -x; ls", "PS4='+ `§` ' bash -x script.sh", "export PS4='$(§)'", "env PS4='$(§)' bash -x script.sh", "PS1='$(§)'", "PS0='${x:-$(§)}'",
	"mapfile -C '§' -c 1 a", "mapfile -t -c1 -C'§' a", "readarray -C '§' a", "complete -C '§' x", "compgen -C '§'", "alias ls='§'", "trap '§' EXIT", "bind -x '\"x\": §'",
	"test -v 'a[$(§)]'", "[ -v 'a[$(§)]' ]", "[ -v 'a[`§`]' ]", "[[ -v 'a[$(§)]' ]]", "[[ 'a[$(§)]' -eq 1 ]]", "printf -v 'a[$(§)]' x", "read 'a[$(§)]'", "unset 'a[$(§)]'",
	"declare 'a[$(§)]=1'", "let 'a[$(§)]'", "(( a[$(§)] ))", "x='a[$(§)]'; (( x ))", "x='a[$(§)]'; echo $((x + 1))", "x='a[$(§)]'; echo ${b[x]}", "x='a[$(§)]'; echo ${!x}",
	"x='a[$(§)]'; test -v \"$x\"", "wait -p 'a[$(§)]'", "x='$(§)'; echo ${x@P}", "x='$(§)'; y=${x@P}", "declare -n x='a[$(§)]'; x=1", "declare -i x='a[$(§)]'", "getopts x 'a[$(§)]'",
	"tar cf x --checkpoint=1 --checkpoint-action=exec='§'", "tar cf x --checkpoint-act=exec='§' y", "tar xf x --to-command='§'", "tar cf x -I '§' y", "tar --use-compress-program='§' -xf x",
	"tar xf x --to-command '§'", "rsync -e '§' x y", "rsync -ave '§' x y", "rsync --rsh='§' x y", "zip x.zip y -T -TT '§'", "zip -T --unzip-command='§' x", "sort --compress-program='§' x", "split --filter='§' x",
	"rg --pre '§' x", "man -P '§' ls", "vim -c ':!§' x", "vim '+!§' x", "nvim --cmd '!§'", "less '+!§' x", "go test -exec '§' ./...", "go build -toolexec='§' .", "nc -e '§' host 1", "ncat --sh-exec '§' host 1",
	"ssh -o ProxyCommand='§' host", "scp -o 'ProxyCommand=§' x y", "make SHELL='§'", "make CC='§'", "make 'X=$(shell §)'", "make --eval='$(shell §)'", "hg --config alias.x='!§' x",
	"awk 'BEGIN { system(\"§\") }'", "awk 'BEGIN { \"§\" | getline }'", "gawk '{ print | \"§\" }' x", "awk -F: '{ print $1 | \"§\" }' x", "mawk -f x -e 'BEGIN{system(\"§\")}'",
	"awk '{ x = 1/1; print | \"§\"; y = 1/1 }'", "sed '1e §' x", "sed -n 's/.*/§/e' x", "sed -e p -e 's/a/§/ge' x", "sed --expression='e §' x", "sed '/x/,/y/{e §\n}' x", "sed 's/[/]/§/e' x", "sed \"s,x,§,e\"",
	"python3 -c 'import os; os.system(\"§\")'", "python3.12 -Ic 'import subprocess; subprocess.run(\"§\", shell=True)'", "perl -e 'system(\"§\")'", "perl -ne 'exec \"§\"' x", "perl -e '`§`'",
	"perl -e 'open(F, \"§|\")'", "ruby -e 'system(\"§\")'", "ruby -e '`§`'", "ruby -e 'IO.popen(\"§\")'", "node -e 'require(\"child_process\").execSync(\"§\")'", "node -p 'x.spawnSync(\"§\")'",
	"php -r 'shell_exec(\"§\");'", "lua -e 'os.execute(\"§\")'", "expect -c 'spawn §'", "osascript -e 'do shell script \"§\"'", "sqlite3 x.db '.shell §'", "psql -c '\\! §'", "mysql -e '\\! §'",
	"python3 - <<'E'\nimport os\nos.system('§')\nE", "python3 <<'E'\nimport os\nos.system('§')\nE", "perl <<< 'system(\"§\")'",
	"sqlite3 x.db <<< '.shell §'", "sqlite3 x.db <<'E'\nselect 1;\n.sh §\nE", "echo '.shell §' | sqlite3 x.db", "sqlite3 x.db '.once |§' 'select 1'", "sqlite3 -separator , x.db <<< '.system §'", "psql <<< '\\! §'", "psql -d x <<< 'select 1 \\g |§'",
	"echo '\\! §' | psql", "psql -f - <<< '\\! §'", "psql -c \"copy x to program '§'\"", "mysql x <<< 'system §'", "mysql <<< '\\! §'", "{ mysql x; } <<< 'system §'", "ed <<< '!§'", "ed x <<'E'\nr !§\nE", "echo '!§' | ed", "ex x <<< '!§'",
	"vim -es x <<< '!§'", "sftp host <<< '!§'", "gdb <<< 'shell §'", "mail me <<< '~!§'", "crontab <<< '* * * * * §'", "crontab -u me <<< '* * * * * §'", "newgrp <<< '§'", "perl <<< 'print 1' <<< 'system(\"§\")'", "python3 3<<< 'print(1)'", "python3 < /dev/stdin",
	"git -c include.path=x status", "git -c includeIf.gitdir:/.path=x status", "git -c core.hooksPath=x commit", "git config core.hooksPath x", "GIT_CONFIG_GLOBAL=x git status", "GIT_CONFIG_SYSTEM=x git status",
	"echo x | at now", "crontab -", "hash -p /bin/rm ls; ls x", "enable -f ./x.so y", "LD_PRELOAD=./x.so ls", "BASH_ENV=x bash script.sh", "ENV=x sh script.sh", "env LD_PRELOAD=./x.so ls",
	"env 'BASH_FUNC_ls%%=() { §; }' bash script.sh", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!§' git x", "git --config-env=alias.x=X x", "read PS4 <<< '$(§)'",
	"for PS4 in '$(§)'; do set -x; done", "printf -v PS4 '$(§)'", "echo ${PS4:='$(§)'}", "declare -n x=PS4; x='$(§)'", "test -v \"$X\"", "[[ -v $X ]]", "unset \"$X\"", "read -r \"$X\"", "wait -p \"$X\"",
	"git -c alias.x=$X x", "git -c core.pager=$X log", "GIT_SSH_COMMAND=$X git fetch", "PS4=$X", "cat x | python3", "cat x | perl -", "make -f - all", "sed -f - x", "python3 -c $X", "tar xf x --to-command=$X",
}

func TestDenial_WrappersDoNotHideACommand(t *testing.T) {
	g := ForClaude(AllowTools("Bash"), DenyTools("Bash(rm:*)", "Bash(git push:*)"))
	for _, inner := range []string{"rm x", "/bin/rm -rf x", "git push origin", "git -C . push"} {
		for _, form := range append(wrappers, texts...) {
			denies(t, g, strings.ReplaceAll(form, "§", inner))
		}
	}
	for _, command := range []string{"git -c alias.p=push p", "git -c alias.p='push --force' p", "git config alias.p push", "git -c ALIAS.p=push p"} {
		denies(t, g, command)
	}
}

func denies(t testing.TB, g *Gate, command string) {
	t.Helper()
	if got := g.Decide(bash(command), Facts{}); got.Verdict != event.Deny || got.Policy != "deny-list" {
		t.Errorf("%q: got %s, want deny", command, got.Verdict)
	}
}

// The same forms pass with a command that no rule is about, unless they hide what they run.
func TestDenial_WrappersOfOtherCommandsPass(t *testing.T) {
	g := ForClaude(AllowTools("Bash"), DenyTools("Bash(rm:*)", "Bash(git push:*)"))
	for _, form := range wrappers {
		passes(t, g, strings.ReplaceAll(form, "§", "ls -la"))
	}
	for _, command := range []string{
		"git rm x", "docker rm x", "npm rm x", "git -c user.name=me commit -m rm", "git -c user.email=$X commit", "git config user.name 'a b'", "git config --get alias.x", "git log --format='%h %s'",
		"git commit -m 'Replace `rm` by $(trash)'", "git commit --exec-path", "git push-notes", "git rebase -i main", "git submodule update", "git grep rm", "git checkout -b run",
		"GIT_EDITOR=true git commit", "GIT_PAGER= git log", "PAGER=cat man ls", "GIT_PAGER=cat git log", `EDITOR="$HOME/bin/edit" git commit`, "GIT_CONFIG_GLOBAL=/dev/null git log", "CC=gcc make -j4 all",
		"PS4='+ ${BASH_SOURCE}:${LINENO}: '; set -x; ls", "export A=b; ls", "SHELL=/bin/bash ls", "NODE_OPTIONS=--max-old-space-size=4096 npm test", "export $(cat .env | xargs)",
		"mapfile -t a < x", "test -v a", "[[ -v a ]]", "[ \"$x\" -eq 1 ]", "[ $# -gt 0 ]", "[[ $x -eq 1 ]]", "echo $((i + 1))", "echo ${a[i]} ${!x} ${x@Q}", "wait $pid", "read -r line", "read -t \"$T\" line", "printf '%s\\n' \"$x\"", "printf \"$fmt\" x",
		"unset a b", "grep 'a[$(b)]' x", "declare -i n=1", "let n=n+1", "for f in *.go; do echo $f; done",
		"tar czf x.tgz rm", "tar -I zstd -xf x", "rsync -av rm y", "rsync -e ssh x host:y", "zip -r x.zip y", "sort -u x", "split -l 5 x", "rg rm", "vim -c wq x", "less x", "go test ./...", "go test -run exec ./...", "make rm", "make X=y all", "make -f Makefile.x",
		"awk '{ print $1 \"|\" $2 }' x", "awk -F'|' '/a|b/ { print $1 }' x", "awk '$1 ~ /x/ || $2 { n++ } END { print n }' x", "awk -f x.awk y", "awk -v a=1 '{ print a }' x",
		"sed -n '1,5p' x", "sed -i 's/a/e/g' x", "sed -i.bak -e 's/one/the/' x", "sed -E 's|[[:space:]]+$||; /^$/d' x", "sed 's/[/]/e/' x", "sed '/e/d;$!N;s/x/y/2' x", "sed -n '/a/,/b/{p;q}' x", "sed '1i\\\nexec e' x", "sed -f x.sed y", "sed '1!G;h;$!d' x", "sed 's/a/b/w e' x",
		"python3 -c 'print(1)'", "python3 -m json.tool x", "cat x | python3 -m json.tool", "python3 x.py -c system", "python3 --version", "python3 - <<'E'\nprint({1: [2]})\nE", "perl -pi -e 's/a/b/' x", "perl -ne 'print if /x/' y", "ruby -e 'puts 1'",
		"node -e 'console.log(1)'", "node --version", "node x.js", "php x.php", "python3 -c 'import sqlite3; c.execute(1)'", "sqlite3 x.db 'select 1'", "psql -c 'select 1'", "sqlite3 x.db < x.sql", "sqlite3 x.db <<< 'select 1 where 1 != 2'", "sqlite3 -header x.db '.show'", "sqlite3 -version", "psql -d x -f x.sql", "psql <<< 'select 1;'", "mysql -u me x < x.sql", "mysql -e 'select 1'",
		"ed -s x <<< $',s/a/b/\nw\nq'", "vim x", "git -c core.hooksPath=/dev/null commit -m x", "crontab x", "crontab -u me -l", "crontab -l", "at -l",
	} {
		passes(t, g, command)
	}
}

func passes(t *testing.T, g *Gate, command string) {
	t.Helper()
	if got := g.Decide(bash(command), Facts{}); got.Verdict != event.Allow {
		t.Errorf("%q: got %s (%s), want allow", command, got.Verdict, got.Reason)
	}
}

// However wrappers are stacked, the command inside is found.
func TestDenial_StackedWrappersDoNotHideACommand(t *testing.T) {
	g := ForClaude(AllowTools("Bash"), DenyTools("Bash(rm:*)"))
	rapid.Check(t, func(t *rapid.T) {
		command := "rm -rf x"
		for range rapid.IntRange(0, 5).Draw(t, "depth") {
			command = strings.ReplaceAll(rapid.SampledFrom(wrappers).Draw(t, "wrapper"), "§", command)
		}
		if rapid.Bool().Draw(t, "text") && !strings.ContainsAny(command, `\;`) {
			command = strings.ReplaceAll(rapid.SampledFrom(texts).Draw(t, "text"), "§", command)
		}
		if got := g.Decide(bash(command), Facts{}); got.Verdict != event.Deny || got.Policy != "deny-list" {
			t.Fatalf("%q: got %s, want deny", command, got.Verdict)
		}
	})
}
