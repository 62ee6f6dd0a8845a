// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"
)

// runsOthers are programs whose arguments may be a command.
var runsOthers = setOf(
	// of the shell
	"command exec builtin trap coproc noglob nocorrect time - --", // "time -- x"
	// the user, the group and their rights
	"sudo doas run0 pkexec su runuser sg setpriv capsh gosu su-exec setuidgid chpst runcon aa-exec s6-setuidgid s6-envdir s6-softlimit",
	// the environment, limits and priorities of a process
	"env envdir softlimit nohup timeout nice ionice chrt taskset uclampset coresched prlimit choom stdbuf setsid setpgid setarch",
	"linux32 linux64 i386 i486 i586 i686 x86_64 uname26 cpulimit cgexec numactl eatmydata faketime catchsegv tini dumb-init",
	"start-stop-daemon daemonize daemon caffeinate gtime hyperfine retry",
	// namespaces and containers
	"chroot unshare nsenter bwrap firejail proot fakeroot fakechroot systemd-run systemd-inhibit systemd-cat systemd-nspawn",
	"systemd-socket-activate schroot lxc-attach flatpak-spawn distrobox toolbox nix-shell proxychains proxychains4 torsocks torify tsocks trickle",
	// terminals
	"script screen tmux dtach abduco reptyr unbuffer rlwrap xvfb-run dbus-run-session dbus-launch ssh-agent xterm",
	// debuggers and tracers
	"strace ltrace sotruss gdb lldb valgrind rr spawn shell",
	// lists of files and arguments
	"xargs parallel env_parallel sem rush find fd fdfind",
	// others
	"flock lockf watch watchexec entr nodemon reflex chronic ifne pee busybox toybox ssh autossh mosh sshpass socat dotenv npx pnpx bunx uvx",
)

// subcommands are the commands of programs whose further arguments may be a command.
var subcommands = map[string]map[string]bool{
	"npm": setOf("exec x"), "pnpm": setOf("exec dlx"), "yarn": setOf("exec dlx"), "bun": setOf("x"), "bundle": setOf("exec"),
	"poetry": setOf("run"), "pipenv": setOf("run"), "uv": setOf("run"), "pipx": setOf("run"), "rye": setOf("run"), "pdm": setOf("run"),
	"hatch": setOf("run"), "conda": setOf("run"), "mamba": setOf("run"), "direnv": setOf("exec"), "mise": setOf("exec x"),
	"asdf": setOf("exec"), "rbenv": setOf("exec"), "pyenv": setOf("exec"), "nodenv": setOf("exec"), "nvm": setOf("exec"),
	"docker": setOf("run exec"), "docker-compose": setOf("run exec"), "podman": setOf("run exec unshare"), "podman-compose": setOf("run exec"), "nerdctl": setOf("run exec"), "kubectl": setOf("exec run"),
	"apptainer": setOf("exec"), "singularity": setOf("exec"), "lxc": setOf("exec"), "runc": setOf("exec"), "crun": setOf("exec"), "machinectl": setOf("shell"), "adb": setOf("shell"),
	"flatpak": setOf("run"), "nix": setOf("shell develop run"), "guix": setOf("shell environment"), "ip": setOf("exec"),
	"perf": setOf("stat record trace"), "op": setOf("run"), "doppler": setOf("run"), "aws-vault": setOf("exec"), "chamber": setOf("exec"),
	"sops": setOf("exec-env exec-file"), "rustup": setOf("run"), "opam": setOf("exec"), "keyctl": setOf("session"), "git": setOf("run foreach filter-branch"),
}

// commandOptions are the options of programs whose value is a command.
var commandOptions = map[string][]string{
	"tar":   {"--to-command", "--checkpoint-action", "-I", "--use-compress-program", "--rsh-command", "--rmt-command", "-F", "--info-script", "--new-volume-script"},
	"cpio":  {"--rsh-command", "--rmt-command"},
	"zip":   {"-TT", "--unzip-command"},
	"rsync": {"-e", "--rsh", "--rsync-path"},
	"scp":   {"-S", "-o"}, "sftp": {"-S", "-o"}, "ssh": {"-o"},
	"sort": {"--compress-program"}, "split": {"--filter"}, "install": {"--strip-program"},
	"rg": {"--pre", "--hostname-bin"}, "man": {"-P", "--pager", "-H", "--html"}, "ag": {"--pager"}, "bat": {"--pager"}, "batcat": {"--pager"},
	"less": {"-o", "+"}, "more": {"+"}, "wget": {"--use-askpass"}, "sqlite": {"-cmd"},
	"go": {"-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"},
	"nc": {"-e", "-c"}, "ncat": {"-e", "-c", "--exec", "--sh-exec"}, "netcat": {"-e", "-c"},
	"svn": {"--diff-cmd", "--diff3-cmd", "--editor-cmd", "--config-option"}, "hg": {"-c", "--command", "--config"},
	"make": {"--eval"}, "gmake": {"--eval"}, "cmake": {"-P"}, "ctest": {"--launcher"},
	"mapfile": {"-C"}, "readarray": {"-C"}, "complete": {"-C"}, "compgen": {"-C"}, "bind": {"-x"}, "hash": {"-p"}, "fc": {"-e"},
	"git": {"-x", "--exec", "--extcmd", "-O", "--open-files-in-pager", "--upload-pack", "-u", "--receive-pack", "--sendmail-cmd", "--pager", "--tool-cmd"},
	"vi":  editorOptions, "vim": editorOptions, "nvim": editorOptions, "view": editorOptions, "ex": editorOptions, "gvim": editorOptions,
	"vimdiff": editorOptions, "rvim": editorOptions,
}

var editorOptions = []string{"-c", "--cmd", "+"}

func setOf(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, line := range names {
		for name := range strings.FieldsSeq(line) {
			set[name] = true
		}
	}
	return set
}

// firstCommand is the index of the first argument that may be a command, 0 if none may be.
func firstCommand(words []string) int {
	name := programName(words[0])
	if runsOthers[name] || isLoader(name) {
		return 1
	}
	further := subcommands[versionless(name)]
	if further == nil {
		return 0
	}
	return 1 + slices.IndexFunc(words, func(w string) bool { return further[w] })
}

// isLoader reports whether a program is the dynamic linker, which runs the program that it is given.
func isLoader(name string) bool {
	return strings.HasPrefix(name, "ld") && strings.Contains(name, ".so")
}

// versionless is a name without the version at its end: python3.12 is python.
func versionless(name string) string {
	if short := strings.TrimRight(name, "0123456789.-"); short != "" {
		return short
	}
	return name
}

// options looks at options whose value is a command.
func (c *commandSearch) options(words []string) {
	options := commandOptions[versionless(programName(words[0]))]
	for i, w := range words[1:] {
		for _, option := range options {
			if value, ok := optionValue(w, words[i+2:], option); ok {
				c.value(value, shownWord(words[0]))
			}
		}
	}
}

// optionValue gives the value of an option, in the word itself or in the next one. Long options may
// be shortened, and those of one letter may be joined.
func optionValue(word string, rest []string, option string) (value string, ok bool) {
	if !strings.HasPrefix(word, option[:1]) || word == "--" {
		return "", false
	}
	next := ""
	if len(rest) > 0 {
		next = rest[0]
	}
	if len(option) > 2 || len(option) == 1 {
		name, joined, cut := strings.Cut(word, "=")
		switch {
		case option == "+":
			return word[1:], true
		case cut && len(name) > 2 && strings.HasPrefix(option, name):
			return joined, true
		case !cut && (word == option || len(word) > 3 && strings.HasPrefix(option, word)):
			return next, true
		}
		return "", false
	}
	if strings.HasPrefix(word, "--") {
		return "", false
	}
	at := strings.IndexByte(word, option[1])
	switch {
	case at < 0:
		return "", false
	case at == len(word)-1:
		return next, true
	}
	return word[at+1:], true
}

// value looks at a text that a program takes for a command, or that has one behind a sign.
func (c *commandSearch) value(text, by string) {
	source := sourceOf(text)
	c.text(source, by, false)
	for _, part := range scriptsIn(source) {
		c.text(part, by, false)
	}
	if _, command, ok := strings.Cut(source, "!"); ok {
		c.text(command, by, true)
	}
	if runsPrograms(text) {
		c.hidden = by
	}
}

// sourceOf writes a text as a script in which the parts that are not known stay so.
func sourceOf(text string) string {
	return strings.NewReplacer(string(computed), "$X", string(unknown), `"$X"`).Replace(text)
}

// git looks at settings of git that are commands: aliases, pagers, editors and others.
func (c *commandSearch) git(words []string) {
	name := versionless(programName(words[0]))
	if name == "make" || name == "gmake" {
		c.makeVariables(words)
		return
	}
	if name != "git" {
		return
	}
	by := shownWord(words[0])
	configures := slices.Contains(words, "config")
	for i, w := range words[1:] {
		rest := words[i+2:]
		key, value, ok := strings.Cut(w, "=")
		key = strings.TrimPrefix(strings.TrimPrefix(key, "--config-env"), "-c")
		switch {
		case strings.HasPrefix(w, "--config-env"):
			c.hidden = by // the value is in a variable
		case strings.HasPrefix(w, "ext::"):
			c.value(strings.TrimPrefix(w, "ext::"), by)
		case ok:
			c.setting(key, value, by)
		case configures && len(rest) > 0:
			c.setting(w, rest[0], by)
		}
	}
}

// setting looks at the value of a setting of git. An alias is a command of git unless it begins with "!".
func (c *commandSearch) setting(key, value, by string) {
	key = strings.ToLower(key)
	if !strings.HasPrefix(key, "alias.") {
		if isComputed(value) && !slices.ContainsFunc(runningSettings, func(part string) bool { return strings.Contains(key, part) }) {
			return
		}
		if (strings.HasPrefix(key, "include") || key == "core.hookspath") && value != "/dev/null" {
			c.hidden = by // a file with settings, a folder with programs
		}
		c.value(value, by)
		return
	}
	command, ok := strings.CutPrefix(value, "!")
	if !ok {
		command = "git " + value
	}
	c.text(sourceOf(command), by, true)
}

// runningSettings are parts of the names of settings of git whose values are commands.
var runningSettings = []string{
	"command", "cmd", "pager", "editor", "fsmonitor", "hookspath", "askpass", "external", "textconv", "driver", "clean", "smudge",
	"process", "program", "helper", "filter", "hook", "uploadpack", "receivepack", "proxy", "browser", "tunnel", "include", "update",
}

// makeVariables looks at variables of make, whose values may call the shell.
func (c *commandSearch) makeVariables(words []string) {
	by := shownWord(words[0])
	for i, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		if ok {
			c.assign(strings.TrimRight(name, ":+?!"), value)
		}
		_, expands, _ := strings.Cut(w, "$(")
		if strings.HasPrefix(strings.TrimSpace(expands), "shell") || strings.Contains(w, "!=") {
			c.hidden = by
		}
		if file, ok := optionValue(w, words[i+2:], "-f"); ok && isStream(file) {
			c.hidden = by
		}
	}
}
