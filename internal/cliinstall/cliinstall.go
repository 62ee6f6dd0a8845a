// SPDX-License-Identifier: Apache-2.0

package cliinstall

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the lock file
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

const (
	// Pinned is the version that .drover/bin/claude is.
	Pinned = "2.1.325"
	// Oldest is the oldest version still tested, .drover/bin/claude-2.1.197.
	Oldest = "2.1.197"
)

var (
	//go:embed npm/package.json
	packageJSON []byte
	//go:embed npm/package-lock.json
	lockJSON []byte
)

// An Install names the installed programs.
type Install struct {
	Pinned string // absolute path
	Oldest string // absolute path
	// Fresh means that this call installed them.
	Fresh bool
}

// An Error is why the CLI could not be installed, with the command that installs it.
type Error struct {
	Err    error
	Output string // the end of the output of npm
	Repair string // a command
}

func (e *Error) Error() string {
	s := fmt.Sprintf("installing claude %s: %v", Pinned, e.Err)
	if e.Output != "" {
		s += "\n  npm printed: " + e.Output
	}
	return s
}

// Advice implements [advice.Adviser].
func (e *Error) Advice() string { return e.Repair }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Ensure makes sure that the CLI is installed below root and returns where.
func Ensure(ctx context.Context, root string) (Install, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return Install{}, err
	}
	d := layout{root}
	if in, ok := d.installed(); ok {
		return in, nil
	}
	if err := os.MkdirAll(d.bin(), 0o755); err != nil {
		return Install{}, &Error{Err: err, Repair: "make " + root + " writable, then make setup"}
	}
	unlock, err := lock(ctx, d.path("cli.lock"))
	if err != nil {
		return Install{}, &Error{Err: err, Repair: "wait for the other install, or remove " + d.path("cli.lock")}
	}
	defer unlock()
	if in, ok := d.installed(); ok { // by the previous holder of the lock
		return in, nil
	}
	return d.install(ctx)
}

// layout has the paths below a project's root.
type layout struct{ root string }

func (d layout) path(name string) string { return filepath.Join(d.root, ".drover", name) }
func (d layout) bin() string             { return d.path("bin") }
func (d layout) cli() string             { return d.path("cli") }

func (d layout) links() Install {
	return Install{
		Pinned: filepath.Join(d.bin(), "claude"+exe()),
		Oldest: filepath.Join(d.bin(), "claude-"+Oldest+exe()),
	}
}

// stamp changes with everything that decides what is installed.
func stamp() string {
	sum := sha256.New()
	sum.Write(packageJSON)
	sum.Write(lockJSON)
	return hex.EncodeToString(sum.Sum(nil)) + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
}

// installed reports whether both programs of this very lock file are installed.
func (d layout) installed() (Install, bool) {
	got, err := os.ReadFile(filepath.Join(d.cli(), "stamp"))
	if err != nil || string(got) != stamp() {
		return Install{}, false
	}
	in := d.links()
	return in, isProgram(in.Pinned) && isProgram(in.Oldest)
}

// install installs beside the final path and moves the result there in one step.
func (d layout) install(ctx context.Context) (Install, error) {
	next, err := os.MkdirTemp(d.path(""), "cli-new-")
	if err != nil {
		return Install{}, d.failure(err, "")
	}
	defer func() { _ = os.RemoveAll(next) }()
	if out, err := runNPM(ctx, next); err != nil {
		return Install{}, d.failure(err, out)
	}
	pinned, oldest, err := programs(next)
	if err == nil {
		err = os.WriteFile(filepath.Join(next, "stamp"), []byte(stamp()), 0o644)
	}
	if err == nil {
		err = d.replace(next)
	}
	in := d.links()
	if err == nil {
		err = errors.Join(d.link(pinned, in.Pinned), d.link(oldest, in.Oldest))
	}
	if err != nil {
		return Install{}, d.failure(err, "")
	}
	in.Fresh = true
	return in, nil
}

// replace replaces the install by next. MkdirTemp made it private; it is for every user who may read the project.
func (d layout) replace(next string) error {
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	old := next + "-old"
	if err := os.Rename(d.cli(), old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(next, d.cli()); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// link makes the program at path inside the install known as name, in one step.
func (d layout) link(path, name string) error {
	target, err := filepath.Rel(d.bin(), filepath.Join(d.cli(), path))
	if err != nil {
		return err
	}
	temp := name + ".new"
	_ = os.Remove(temp)
	if runtime.GOOS == "windows" { // symbolic links need rights there
		err = os.Link(filepath.Join(d.cli(), path), temp)
	} else {
		err = os.Symlink(target, temp)
	}
	if err != nil {
		return err
	}
	return os.Rename(temp, name)
}

func (d layout) failure(err error, output string) error {
	return &Error{Err: err, Output: output, Repair: repair(d.root, err)}
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
