// SPDX-License-Identifier: Apache-2.0

// Package wording has the words that all commands use in the same way: errors for people, numbers and amounts.
package wording

import (
	"regexp"
	"strings"
)

// packageNames are what errors of our packages begin with. They help programmers, not people.
var packageNames = regexp.MustCompile(`(?m)(^|: )(?:drover|claude|claudecode|agent|agentfile|prompt|gate|gateway|guard|isolation|transcript|tool|event|schema|script|workspace): `)

// forPrograms are pieces of advice that only a program can follow, and what a person can do instead.
var forPrograms = []struct {
	found *regexp.Regexp
	said  string
}{
	{regexp.MustCompile(`; Options\.[^\n;]*`), ""},
	// The CLI's own advice; the address is one inside the cell.
	{regexp.MustCompile(` This is a server-side issue, [^\n]*check your inference gateway \([^)\n]*\)\.`), ""},
	{regexp.MustCompile(`raise Options\.\w+, or `), ""},
	{regexp.MustCompile(`(?:resuming from|the conversation in) Options\.Store: .*the store has no such session`), "--resume: there is no such conversation in this folder"},
	{regexp.MustCompile(`(?:resuming from|the conversation in) Options\.Store: .*unsafe store key: [^\n]*`), "--resume: it is no token of a conversation"},
	{regexp.MustCompile(`the conversation in Options\.Store: .*the session is in use\n  next: [^\n]*`), "--resume: the conversation is in use\n  next: wait until the other run has ended"},
	{regexp.MustCompile(`the conversation in Options\.Store: .*not found: (conversation )`), "--resume: $1"},
	{regexp.MustCompile(`, or give a key with isolation\.WithAPIKey`), ""},
	{regexp.MustCompile(`set Auth\.UseStoredLogin to use`), "use --stored-login to have"},
	{regexp.MustCompile(`set Isolation\.Weakest \((drover run [^)\n]*)\)`), "use $1"},
	{regexp.MustCompile(`give one of them another MountPath`), "give one of them another path: --mount folder:path"},
	{regexp.MustCompile(`, or leave it out with Exclude`), ", or mount less"},
	{regexp.MustCompile(`\bexclude (it|what cannot be read)`), "mount less"},
	{regexp.MustCompile(`set FollowSymlinks to copy what it leads to`), "put what it leads to in its place"},
	{regexp.MustCompile(`, or set FollowSymlinks`), ""},
	{regexp.MustCompile(`leave MountPath empty for the base name`), "leave the path out for the base name"},
	{regexp.MustCompile(`raise TreeOptions\.MaxDisk, or release checkpoints`), "mount less"},
	{regexp.MustCompile(`write to another Dir, choose with Only, or set Force[^\n]*`), "bring both sides together by hand"},
	{regexp.MustCompile(`(AllowedHostRoots|its permissions), or write to another Dir`), "$1"},
	{regexp.MustCompile(`set State\b`), "set XDG_STATE_HOME"},
	{regexp.MustCompile(`set TempDir to`), "set TMPDIR to"},
	{regexp.MustCompile(`check Options\.Model: `), "check --model: "},
	{regexp.MustCompile(`send /compact or /clear, or start a new session`), "shorten the prompt or the files that it names"},
	{regexp.MustCompile(`Network\.AllowedDomains`), "--allow-domain"},
	{regexp.MustCompile(`Sandbox\.WritablePaths`), "--writable"},
	{regexp.MustCompile(`Sandbox\.ReadablePaths`), "--readable"},
	{regexp.MustCompile(`set Isolation\.TempDir to`), "set TMPDIR to"},
	{regexp.MustCompile(`, or (?:lower the floor|raise the limit on (?:bytes|files|memory|CPU time))`), ""},
	{regexp.MustCompile(`, or accept less by setting Isolation\.Weakest`), ", or accept less by --isolation"},
	{regexp.MustCompile(`\n  next: or set Isolation\.APIKey[^\n]*`), ""},
	{regexp.MustCompile(`raise the limit \(Options\.[^\n]*`), "try again when the machine is less busy; drover doctor looks for what is wrong"},
}

// Error is the text of an error without the names of packages, and without advice for programs. It is empty for nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error())
}

// Text is [Error] for the text of an error, as events have it.
func Text(text string) string {
	for _, advice := range forPrograms {
		text = advice.found.ReplaceAllString(text, advice.said)
	}
	for { // matches do not overlap, but names may follow each other
		shorter := packageNames.ReplaceAllString(text, "$1")
		if shorter == text {
			return strings.TrimSpace(text)
		}
		text = shorter
	}
}

// FirstLine is the first line that says something. The CLI puts errors between tags.
func FirstLine(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "<tool_use_error>"), "</tool_use_error>")
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(first)
}
