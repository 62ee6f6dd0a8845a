// SPDX-License-Identifier: Apache-2.0

// Package wording has the words that all commands use for errors: flags where errors of the packages name options.
package wording

import (
	"regexp"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/safetext"
)

// flags map advice for programs to what a user of the command can do. An alternative that has no flag is left out.
var flags = []struct {
	found *regexp.Regexp
	flag  string
}{
	{regexp.MustCompile(`; Options\.[^;]*`), ""},
	{regexp.MustCompile(`raise Options\.\w+, or `), ""},
	{regexp.MustCompile(`^or set Isolation\.APIKey.*|, or give a key with \w+\.WithAPIKey`), ""},
	{regexp.MustCompile(`set Auth\.UseStoredLogin to use`), "use --stored-login to have"},
	{regexp.MustCompile(`set Isolation\.Weakest \((drover run [^)]*)\)`), "use $1"},
	{regexp.MustCompile(`give one of them another MountPath`), "give one of them another path: --mount folder:path"},
	{regexp.MustCompile(`, or leave it out with Exclude`), ", or mount less"},
	{regexp.MustCompile(`\bexclude (it|what cannot be read)`), "mount less"},
	{regexp.MustCompile(`set FollowSymlinks to copy what it leads to`), "put what it leads to in its place"},
	{regexp.MustCompile(`, or set FollowSymlinks`), ""},
	{regexp.MustCompile(`leave MountPath empty for the base name`), "leave the path out for the base name"},
	{regexp.MustCompile(`raise TreeOptions\.MaxDisk, or release checkpoints`), "mount less"},
	{regexp.MustCompile(`write to another Dir, choose with Only, or set Force.*`), "bring both sides together by hand"},
	{regexp.MustCompile(`(AllowedHostRoots|its permissions), or write to another Dir`), "$1"},
	{regexp.MustCompile(`set State\b`), "set XDG_STATE_HOME"},
	{regexp.MustCompile(`set (?:Isolation\.)?TempDir to`), "set TMPDIR to"},
	{regexp.MustCompile(`check Options\.Model: `), "check --model: "},
	{regexp.MustCompile(`send /compact or /clear, or start a new session`), "shorten the prompt or the files that it names"},
	{regexp.MustCompile(`leave it out and set Localhost \(NetworkPolicy\.AllowLocalhost\)`), "leave it out, and add --allow-localhost"},
	{regexp.MustCompile(`, or (?:lower the floor|raise the limit on (?:bytes|files|memory|CPU time))`), ""},
	{regexp.MustCompile(`, or accept less by setting Isolation\.Weakest`), ", or accept less by --isolation"},
	{regexp.MustCompile(`check Options\.URLs, Credentials and TLS`), "check that the servers of --nats are running, and --credentials and --tls-ca if they ask for them"},
	{regexp.MustCompile(`close the other Fleet, use another folder, or run a NATS cluster.*`), "stop the other drover serve, name another folder, or share a NATS cluster by drover worker --nats"},
	{regexp.MustCompile(`in Options\.Name`), "in --fleet"},
	{regexp.MustCompile(`with the same Key`), "with the same --key"},
	{regexp.MustCompile(`another Key`), "another --key"},
	{regexp.MustCompile(`raise the limit \(Options\..*`), "try again when the machine is less busy; drover doctor looks for what is wrong"},
}

// fields maps options to the flags that set them.
var fields = strings.NewReplacer(
	"Network.AllowedDomains", "--allow-domain", "Sandbox.WritablePaths", "--writable", "Sandbox.ReadablePaths", "--readable",
	"option VerbatimPrompts", "a prompt with standard input",
)

// Error renders an error and its advice for a user of the command. It is empty for nil.
func Error(err error) string {
	var lines []string
	for text, next := range advice.All(err) {
		lines = append(lines, advice.Render(Text(text), Flags(next)))
	}
	return strings.Join(lines, "\n")
}

// Flags names flags where a text for programs names options. A line that is about options alone is left out.
func Flags(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		left := line
		for _, f := range flags {
			left = f.found.ReplaceAllString(left, f.flag)
		}
		if left != "" || line == "" {
			lines = append(lines, fields.Replace(left))
		}
	}
	return strings.Join(lines, "\n")
}

// Text is the text of an error without the names of packages, and with flags for options.
func Text(text string) string { return safetext.Text(Flags(text)) }
