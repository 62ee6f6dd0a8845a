// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// programOptions are the options of interpreters whose value is a program.
var programOptions = map[string][]string{
	"python": {"-c"}, "pypy": {"-c"}, "perl": {"-e", "-E"}, "ruby": {"-e"}, "jruby": {"-e"}, "node": {"-e", "-p", "--eval", "--print"},
	"nodejs": {"-e", "-p", "--eval", "--print"}, "bun": {"-e", "--eval"}, "php": {"-r", "-B", "-R", "-E"}, "lua": {"-e"}, "luajit": {"-e"},
	"tclsh": nil, "expect": {"-c"}, "osascript": {"-e"}, "guile": {"-c"}, "racket": {"-e"}, "julia": {"-e", "-E"}, "rscript": {"-e"},
	"groovy": {"-e"}, "elixir": {"-e"}, "ghc": {"-e"},
}

// programs are the ways in which other languages start a command. A program can hide its command from such a list of names.
var programs = regexp.MustCompile("(?i)\\bsystem\\b|\\bexec([lv]p?e?|sync|file\\w*)?\\b|shell_exec|os\\.execute|\\bp?spawn\\w*|popen|subprocess|child_process|" +
	"\\bv?fork(pty)?\\b|proc_open|passthru|pcntl_|`|\\bqx\\b|%x\\W|\\beval\\b|__import__|importlib|ctypes|\\bpty\\b|\\bsyscall\\b|" +
	"\\bopen3?\\b[^;\\n]*\\||[.\\\\]\\s?(shell|!)|do shell script")

func runsPrograms(text string) bool { return programs.MatchString(text) }

// program looks at a program of another language that is in the command or is its input.
func (c *commandSearch) program(words []string) {
	name := versionless(programName(words[0]))
	hides := false
	switch name {
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		hides = slices.ContainsFunc(languagePrograms(words, "Fvil", "e", "fE"), awkRuns)
	case "sed", "gsed", "ssed":
		hides = slices.ContainsFunc(languagePrograms(words, "l", "e", "f"), sedRuns)
	case "sqlite", "psql", "mysql", "mariadb":
		hides = slices.ContainsFunc(words[1:], databaseRuns) || c.inputRuns(databaseRuns, !hasStatement(name, words))
	case "ed", "red", "ex":
		hides = c.inputRuns(editorRuns, true)
	case "vi", "vim", "nvim", "view", "ftp", "sftp", "lftp", "mail", "mailx", "gdb", "lldb", "gnuplot", "dc":
		hides = c.inputRuns(editorRuns, false)
	default:
		if options, ok := programOptions[name]; ok {
			hides = c.interpreterRuns(words, options)
		}
	}
	if hides {
		c.hidden = shownWord(words[0])
	}
}

// inputRuns reports whether the input of a program may start a command. Input that is needed and not in the script may.
func (c *commandSearch) inputRuns(runs func(string) bool, needed bool) bool {
	if c.input == nil {
		return needed
	}
	return isComputed(*c.input) || runs(*c.input)
}

// databaseCommands are the ways in which clients of databases start a command: ".shell x", ".once |x",
// "\\! x", "\\g |x", "system x", "copy a to program 'x'". Commands with a dot may be shortened.
var databaseCommands = regexp.MustCompile(`(?im)^\s*\.(s(h(e(ll?)?)?|y\w*)?(\s|$)|[^\n]*\|)|\\[^\n]*[!|]|\\P|^\s*(system|pager)\s|\sprogram\s`)

func databaseRuns(text string) bool {
	return databaseCommands.MatchString(text) || isComputed(text) && strings.HasPrefix(strings.TrimSpace(text), ".")
}

// hasStatement reports whether a database client has a statement in its arguments, and so reads none from its input.
func hasStatement(name string, words []string) bool {
	options := []string{"-e", "--execute", "-V", "--version", "--help"}
	switch name {
	case "sqlite":
		operands := 0
		for i, w := range words[1:] {
			if !mayBeOption(w) && !slices.Contains(sqliteOptions, words[i]) {
				operands++
			}
		}
		return operands > 1 || slices.ContainsFunc(words, func(w string) bool { return strings.TrimLeft(w, "-") == "version" })
	case "psql":
		options = []string{"-c", "--command", "-f", "--file", "-l", "--list", "-V", "--version", "--help"}
	}
	for i, w := range words[1:] {
		for _, option := range options {
			if value, ok := optionValue(w, words[i+2:], option); ok && !isStream(value) {
				return true
			}
		}
	}
	return false
}

// sqliteOptions of sqlite3 have a value.
var sqliteOptions = []string{"-cmd", "-init", "-separator", "-newline", "-nullvalue", "-vfs", "-maxsize", "-mmap"}

// editorRuns reports whether a line of an editor, or of another program with commands of its own, may start one of
// the shell: "!x", "w !x", "~!x", "shell x".
func editorRuns(text string) bool {
	return strings.Contains(text, "!") || runsPrograms(text) || strings.Contains(text, "shell")
}

// interpreterRuns reports whether an interpreter may start a command: its program may start one, or cannot be
// read. One in a file is taken as any other program.
func (c *commandSearch) interpreterRuns(words, options []string) bool {
	inline := false
	for i := 1; i < len(words); i++ {
		w := words[i]
		if !mayBeOption(w) || w == "-" {
			if i > 1 && slices.Contains([]string{"-W", "-X", "-I", "-C", "-x"}, words[i-1]) {
				continue
			}
			if inline || !isStream(w) {
				return false
			}
			break
		}
		if len(words) == 2 && slices.Contains([]string{"-v", "-V", "-h", "--version", "--help", "-version"}, w) {
			return false
		}
		for _, option := range options {
			value, ok := optionValue(w, words[i+1:], option)
			if !ok {
				continue
			}
			if isComputed(value) || runsPrograms(value) {
				return true
			}
			if inline = true; len(words) > i+1 && value == words[i+1] {
				i++
			}
			break
		}
	}
	return !inline && (c.input == nil || isComputed(*c.input) || runsPrograms(*c.input))
}

// languagePrograms gives the programs of awk and sed: the values of an option, or the first operand if no option names one.
// The letters are those of options with other values, with a program, and with the file of one.
func languagePrograms(words []string, valued, inline, file string) []string {
	var found []string
	given := false
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "--":
			continue
		case strings.HasPrefix(w, "--"):
			if _, value, ok := strings.Cut(w, "="); ok && (strings.HasPrefix(w, "--e") || strings.HasPrefix(w, "--so")) {
				found, given = append(found, value), true
			}
			given = given || strings.HasPrefix(w, "--f")
		case len(w) > 1 && w[0] == '-':
			at := strings.IndexAny(w, valued+inline+file)
			if at < 0 || w[1] == 'i' {
				continue // "-i.orig"
			}
			value := w[at+1:]
			if i++; value != "" {
				i--
			} else if i < len(words) {
				value = words[i]
			}
			if strings.IndexByte(inline, w[at]) >= 0 {
				found = append(found, value)
			}
			if strings.IndexByte(file, w[at]) >= 0 && isStream(value) {
				found = append(found, string(computed))
			}
			given = given || strings.IndexByte(valued, w[at]) < 0
		case !given:
			return append(found, w)
		}
	}
	return found
}

// awkRuns reports whether a program of awk starts a command: by system, a pipe, or an indirect call.
func awkRuns(program string) bool {
	last := byte('\n') // the last character that is no space
	for i := 0; i < len(program); i++ {
		switch b := program[i]; {
		case b == computed || b == '@' || b == '|' && !strings.HasPrefix(program[i:], "||"):
			return true
		case b == '|':
			i++
		case b == '"', b == '/' && strings.IndexByte("\n({},;=~!&|:[?", last) >= 0:
			for i++; i < len(program) && program[i] != b; i++ {
				if program[i] == '\\' {
					i++
				}
			}
		case b == '#':
			for i+1 < len(program) && program[i+1] != '\n' {
				i++
			}
			continue
		case strings.HasPrefix(program[i:], "system"):
			return true
		}
		if i < len(program) && program[i] != ' ' && program[i] != '\t' {
			last = program[i]
		}
	}
	return false
}

// sedRuns reports whether a script of sed starts a command: by "e", or by the flag e of "s". One that cannot be read may.
func sedRuns(script string) bool {
	s := sedScript(script)
	for {
		s = s.trim("; \t\n{}")
		if s == "" {
			return false
		}
		var ok bool
		if s, ok = s.address(); !ok || s == "" {
			return true
		}
		command := s[0]
		s = s[1:]
		switch command {
		case 's':
			if s, ok = s.delimited(2); !ok {
				return true
			}
			flags := s.upTo(";}\n")
			if at := strings.IndexByte(flags, 'w'); at >= 0 {
				flags = flags[:at]
				s = s[len(s.upTo("\n")):]
			}
			if strings.ContainsAny(flags, "e\x01\x03") {
				return true
			}
			s = s.trim("gpimIM0123456789 \t")
		case 'y':
			if s, ok = s.delimited(2); !ok {
				return true
			}
		case '#', 'a', 'i', 'c', 'r', 'R', 'w', 'W':
			line := s.upTo("\n")
			for strings.HasSuffix(line, `\`) && len(line) < len(s) {
				line += "\n" + s[len(line)+1:].upTo("\n")
			}
			s = s[len(line):]
		case ':', 'b', 't', 'T', 'q', 'Q', 'l', 'L':
			s = s[len(s.upTo(";}\n")):]
		case 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', '=', 'F', '{', '}':
		default:
			return true
		}
	}
}

type sedScript string

func (s sedScript) trim(cut string) sedScript { return sedScript(strings.TrimLeft(string(s), cut)) }

func (s sedScript) upTo(end string) string {
	if at := strings.IndexAny(string(s), end); at >= 0 {
		return string(s[:at])
	}
	return string(s)
}

// address skips the lines that a command is for.
func (s sedScript) address() (sedScript, bool) {
	for {
		s = s.trim("0123456789$,~+! \t")
		if s == "" || s[0] != '/' && s[0] != '\\' {
			return s, true
		}
		if s[0] == '\\' {
			s = s[1:]
		}
		var ok bool
		if s, ok = s.delimited(1); !ok {
			return s, false
		}
		s = s.trim("IM")
	}
}

// delimited skips parts that end in the character that the text begins with.
func (s sedScript) delimited(parts int) (sedScript, bool) {
	if s == "" {
		return s, false
	}
	end, pattern := s[0], parts // only the first part has sets of characters
	set := false
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && !set:
			i++
		case s[i] == '[' && parts == pattern && !set:
			first := i + 1 // a bracket at this position does not end the set
			if strings.HasPrefix(string(s[first:]), "^") {
				first++
			}
			if set = strings.IndexByte(string(s[min(first+1, len(s)):]), ']') >= 0; set {
				i = first
			}
		case s[i] == ']':
			set = false
		case s[i] == end && !set:
			if parts--; parts == 0 {
				return s[i+1:], true
			}
		}
	}
	return s, false
}

// inputText gives the text that a command reads, if it is in the script; "" for a file, in which no command is looked for.
func inputText(redirects []*syntax.Redirect) *string {
	var input *string
	for _, r := range redirects {
		if r.N != nil && r.N.Value != "0" {
			continue
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			var text strings.Builder
			if r.Hdoc != nil {
				for _, part := range r.Hdoc.Parts {
					if lit, ok := part.(*syntax.Lit); ok {
						text.WriteString(lit.Value)
					} else {
						text.WriteByte(computed)
					}
				}
			}
			input = new(text.String())
		case syntax.WordHdoc:
			input = new(wordText(r.Word, false))
		case syntax.RdrIn:
			if input = nil; !isStream(wordText(r.Word, false)) {
				input = new("")
			}
		case syntax.DplIn, syntax.RdrInOut:
			input = nil
		}
	}
	return input
}
