// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// sandboxFacts are what this system offers to confine programs. An empty version with a nil error could not be read.
type sandboxFacts struct {
	root       bool
	bubblewrap toolFact
	// namespaces is why bubblewrap cannot make the namespaces of a sandbox; nil if it was tried and can.
	namespaces error
	// byHandle means that a cell mounts a checked path by its handle; else by name, and a difference ends the start.
	byHandle bool
	socat    toolFact
	// userNamespaces is why this user cannot make one; nil if it was tried and worked.
	userNamespaces error
	seccomp        error
	landlock       int // version of its interface; 0 for none
	landlockErr    error
	// userFix is what would allow user namespaces.
	userFix string
	install func(packages string) string
}

// A toolFact is a program that was looked for.
type toolFact struct {
	version string
	err     error
}

// probedOnce lets two checks share one probe.
func probedOnce(probe func(context.Context) sandboxFacts) func(context.Context) sandboxFacts {
	var once sync.Once
	var facts sandboxFacts
	return func(ctx context.Context) sandboxFacts {
		once.Do(func() { facts = probe(ctx) })
		return facts
	}
}

// lackedTime reports whether something did not answer in time. To install it would not help.
func (f sandboxFacts) lackedTime() bool {
	for _, err := range []error{f.bubblewrap.err, f.namespaces, f.socat.err, f.userNamespaces} {
		if errors.Is(err, errNoTime) {
			return true
		}
	}
	return false
}

// examineSandbox reports what the CLI's own sandbox for shell commands would find. No run fails for it.
func (m *machine) examineSandbox(ctx context.Context) *Check {
	if m.goos != "linux" {
		return &Check{State: stateSkipped, Detail: "bubblewrap, seccomp and landlock are not available on " + m.goos}
	}
	f := m.sandbox(ctx)
	c := &Check{State: stateOK, Version: f.bubblewrap.version, Parts: f.parts(), Fix: f.fixes()}
	here, lacking := f.sorted()
	c.Detail = strings.Join(here, ", ")
	if len(lacking) > 0 {
		c.State = stateWarning
		c.Detail = strings.TrimSuffix(strings.Join(lacking, ", ")+"; here: "+c.Detail, "; here: ")
		if f.lackedTime() {
			c.Fix = []string{moreTime}
		}
	}
	return c
}

// sorted returns the available parts and the missing ones, each in words.
func (f sandboxFacts) sorted() (here, lacking []string) {
	add := func(err error, good, bad string) {
		if err == nil {
			here = append(here, good)
		} else {
			lacking = append(lacking, bad+" ("+err.Error()+")")
		}
	}
	add(f.bubblewrap.err, strings.TrimSpace("bubblewrap "+f.bubblewrap.version), "no bubblewrap")
	if f.bubblewrap.err == nil {
		add(f.namespaces, "namespaces tried", "bubblewrap makes no namespaces")
	}
	switch {
	case f.bubblewrap.err != nil || f.namespaces != nil:
	case f.byHandle:
		here = append(here, "mounts by handle")
	default:
		here = append(here, "mounts by name, compared inside (no --bind-fd)")
	}
	add(f.userNamespaces, "user namespaces", "no user namespaces")
	add(f.seccomp, "seccomp", "no seccomp")
	add(f.landlockErr, fmt.Sprintf("landlock %d", f.landlock), "no landlock")
	add(f.socat.err, strings.TrimSpace("socat "+f.socat.version), "no socat")
	return here, lacking
}

// parts are the same for programs: a version, "yes" or "no".
func (f sandboxFacts) parts() map[string]string {
	word := func(err error, good string) string {
		switch {
		case err != nil:
			return "no"
		case good == "":
			return "yes"
		}
		return good
	}
	return map[string]string{
		"bubblewrap":     word(f.bubblewrap.err, f.bubblewrap.version),
		"namespaces":     word(f.namespaces, ""),
		"userNamespaces": word(f.userNamespaces, ""),
		"seccomp":        word(f.seccomp, ""),
		"landlock":       word(f.landlockErr, fmt.Sprint(f.landlock)),
		"socat":          word(f.socat.err, f.socat.version),
	}
}

// fixes are the commands that fix what a command can, not what the kernel lacks. All are needed, so they make one line.
func (f sandboxFacts) fixes() []string {
	var packages, commands []string
	if f.bubblewrap.err != nil {
		packages = append(packages, "bubblewrap")
	}
	if f.socat.err != nil {
		packages = append(packages, "socat")
	}
	if len(packages) > 0 {
		commands = append(commands, f.install(strings.Join(packages, " ")))
	}
	if f.userNamespaces != nil || f.bubblewrap.err == nil && f.namespaces != nil {
		commands = append(commands, f.userFix)
	}
	if len(commands) == 0 {
		return nil
	}
	return []string{strings.Join(commands, " && ")}
}
