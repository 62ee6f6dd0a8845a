// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"regexp"
)

// A tool is a program of the distribution.
type tool struct {
	name    string // also of the package
	program string
	version []string // arguments that print its version
	without string   // what is lost if it is missing
}

var tools = []tool{
	{"bubblewrap", "bwrap", []string{"--version"}, "without it, what the CLI starts may outlive it"},
	{"socat", "socat", []string{"-V"}, "without it, the CLI's own Bash sandbox cannot reach the network"},
	{"tmux", "tmux", []string{"-V"}, "without it, the live view is not tested in a terminal"},
	{"chromium", "chromium", []string{"--version"}, "without it, the page is not tested in a browser"},
}

var number = regexp.MustCompile(`\d+\.\d+(\.\d+)*`)

// tool makes sure of one tool. It returns a few words on its state and, if the tool is missing, the command that fixes it.
func (s setup) tool(ctx context.Context, t tool) (text, fix string) {
	if version, ok := s.version(ctx, t); ok {
		return t.name + version + "  ok", ""
	}
	if s.goos != "linux" {
		return t.name + "  not used here", ""
	}
	fix = s.install(ctx, t)
	if version, ok := s.version(ctx, t); ok {
		return t.name + version + "  installed", ""
	}
	return t.name + "  missing", fix + " (" + t.without + ")"
}

// version returns the version of an installed tool with a space before it.
func (s setup) version(ctx context.Context, t tool) (string, bool) {
	path, err := s.look(t.program)
	if err != nil {
		return "", false
	}
	out, _ := s.run(ctx, path, t.version...)
	if v := number.FindString(out); v != "" {
		return " " + v, true
	}
	return "", true
}

// install tries to install t, and returns the command a person would use. The package lists are
// fetched only if the first try fails: usually they are there, and fetching them takes longest.
func (s setup) install(ctx context.Context, t tool) string {
	apt, err := s.look("apt-get")
	if err != nil {
		return "install the package " + t.name + " of your distribution"
	}
	if s.euid != 0 {
		return "sudo apt-get install --no-install-recommends " + t.name
	}
	args := []string{"install", "--yes", "--no-install-recommends", t.name}
	if _, err := s.run(ctx, apt, args...); err != nil {
		if _, err := s.run(ctx, apt, "update"); err == nil {
			_, _ = s.run(ctx, apt, args...)
		}
	}
	return "apt-get update && apt-get install " + t.name
}
