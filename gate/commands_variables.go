// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// commandVariables hold a command that some program runs; promptVariables hold a text that the shell
// expands before it uses it; codeVariables name code that is loaded into other programs.
var (
	commandVariables = setOf(
		"GIT_SSH_COMMAND GIT_SSH GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_ASKPASS GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND",
		"PAGER MANPAGER SYSTEMD_PAGER BAT_PAGER DELTA_PAGER AWS_PAGER GH_PAGER PSQL_PAGER EDITOR VISUAL SUDO_EDITOR FCEDIT HGEDITOR SVN_EDITOR",
		"KUBE_EDITOR GH_EDITOR SYSTEMD_EDITOR PSQL_EDITOR TEXEDIT BROWSER GH_BROWSER SSH_ASKPASS SUDO_ASKPASS LESSOPEN LESSCLOSE LESSEDIT LESS",
		"RSYNC_RSH RSYNC_CONNECT_PROG CVS_RSH SVN_SSH HG_SSH TAPE RSH TAR_OPTIONS MANOPT PROMPT_COMMAND FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS",
		"CC CXX CPP LD AR CXXCPP RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CC_WRAPPER GOFLAGS MAKE DIFFTOOL MERGETOOL",
		"SHELL CONFIG_SHELL BASH_ALIASES BASH_CMDS aliases galiases saliases functions commands",
	)
	promptVariables = setOf("PS0 PS1 PS2 PS3 PS4 PROMPT RPROMPT")
	codeVariables   = setOf(
		"BASH_ENV ENV ZDOTDIR LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG_PARAMETERS GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM",
		"PERL5OPT PERL5DB RUBYOPT PYTHONSTARTUP MAKEFLAGS MFLAGS GNUMAKEFLAGS SHELLOPTS BASHOPTS VIMINIT EXINIT GVIMINIT",
	)
)

func isRunVariable(name string) bool {
	return commandVariables[name] || promptVariables[name] || isCodeVariable(name)
}

func isCodeVariable(name string) bool {
	return codeVariables[name] || strings.HasPrefix(name, "GIT_CONFIG_VALUE_") || strings.HasPrefix(name, "BASH_FUNC_")
}

// assignment looks at an assignment of the script: "A=b", "A=(b)", and "A=b" as a word of export.
func (c *commandSearch) assignment(a *syntax.Assign) {
	if a.Value != nil {
		value := wordText(a.Value, false)
		switch name, rest, ok := strings.Cut(value, "="); {
		case a.Name != nil:
			c.assign(a.Name.Value, value)
			c.sets(value) // "declare -n x=PS4"
		case ok:
			c.assign(name, rest)
		default:
			c.evaluates = c.evaluates || isComputed(value)
		}
	}
	if a.Array == nil || a.Name == nil {
		return
	}
	for _, element := range a.Array.Elems {
		if element.Value != nil {
			c.assign(a.Name.Value, wordText(element.Value, false))
		}
	}
}

// assign looks at the value of a variable that a program may run.
func (c *commandSearch) assign(name, value string) {
	name = strings.TrimSuffix(name, "+")
	switch {
	case strings.HasSuffix(name, "SHELL") && isShellName(programName(value)):
	case commandVariables[name]:
		c.value(strings.TrimLeft(value, "|;& "), name)
	case promptVariables[name] && isComputed(value):
		c.hidden = name
	case promptVariables[name]:
		c.substitutions(value, name)
	case isCodeVariable(name) && value != "" && value != "/dev/null":
		c.hidden = name
	}
}

// sets looks at a variable that gets a value which is not known.
func (c *commandSearch) sets(name string) {
	if isRunVariable(name) {
		c.hidden = name
	}
}

// substitutions looks at the commands in a text that the shell expands as if it stood in double quotes.
func (c *commandSearch) substitutions(text, by string) {
	c.text(": \""+strings.ReplaceAll(sourceOf(text), `"`, `\"`)+`"`, by, true)
}

// word looks for substitutions that the shell makes after it has read the quotes. In "a[$(rm x)]" it makes them wherever it
// expects the name of a variable or a number, and the word may get there through a variable.
func (c *commandSearch) word(text string) {
	if !strings.Contains(text, "$(") && !strings.Contains(text, "`") {
		return
	}
	if strings.Contains(text, "[") {
		c.substitutions(text, shownWord(text))
		return
	}
	c.quoted = append(c.quoted, text)
}

// expansion looks at "${x@P}", which makes the substitutions in a value, and at "${x:=y}".
func (c *commandSearch) expansion(p *syntax.ParamExp) {
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.OtherParamOps:
		c.evaluates = true
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		c.sets(p.Param.Value)
	}
}

// finish looks at quoted substitutions, if something in the script may make them.
func (c *commandSearch) finish() {
	if !c.evaluates || c.rule != nil {
		return
	}
	for _, text := range c.quoted {
		c.substitutions(text, shownWord(text))
	}
}

// unaryTest looks at "[[ -v name ]]".
func (c *commandSearch) unaryTest(t *syntax.UnaryTest) {
	if w, ok := t.X.(*syntax.Word); ok && (t.Op == syntax.TsVarSet || t.Op == syntax.TsRefVar) && isComputed(wordText(w, false)) {
		c.hidden = "[[ " + t.Op.String()
	}
}

// builtin looks at commands of the shell that take the names of variables.
func (c *commandSearch) builtin(words []string) {
	name, rest := programName(words[0]), words[1:]
	hides := false
	switch name {
	case "test", "[":
		hides = (slices.Contains(rest, "-v") || slices.Contains(rest, "-R")) && slices.ContainsFunc(rest, isComputed)
	case "printf":
		hides = len(rest) > 0 && (isComputed(rest[0]) && mayBeOption(rest[0]) && len(rest) > 1 && strings.IndexByte(rest[0], unknown) < 0 ||
			strings.HasPrefix(rest[0], "-v") && slices.ContainsFunc(rest[:min(2, len(rest))], c.namesRun))
	case "mapfile", "readarray", "getopts", "unset":
		hides = slices.ContainsFunc(rest, c.namesRun)
	case "wait":
		hides = slices.Contains(rest, "-p") && slices.ContainsFunc(rest, isComputed)
	case "read":
		for i, w := range rest {
			hides = hides || c.namesRun(w) && (i == 0 || !slices.Contains(readOptions, rest[i-1]))
		}
	case "enable":
		hides = slices.ContainsFunc(rest, func(w string) bool { return strings.HasPrefix(w, "-") && strings.Contains(w, "f") })
	case "at", "batch":
		hides = !slices.Contains(rest, "-l") && !slices.Contains(rest, "-r") && !slices.Contains(rest, "-d")
	case "crontab":
		reads := true // its input
		for i, w := range words[1:] {
			reads = reads && w != "-l" && w != "-r" && (mayBeOption(w) || words[i] == "-u")
		}
		hides = reads || slices.ContainsFunc(rest, isStream)
	case "newgrp":
		hides = true // a shell that reads its input
	}
	if hides {
		c.hidden = shownWord(words[0])
	}
}

// readOptions of read have a value.
var readOptions = []string{"-d", "-i", "-n", "-N", "-p", "-t", "-u"}

// namesRun reports whether a word is, or may be, the name of a variable that something runs.
func (c *commandSearch) namesRun(word string) bool {
	return isComputed(word) || isRunVariable(strings.TrimPrefix(word, "-v"))
}
