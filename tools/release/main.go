// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
)

// A platform is an operating system and a processor, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// platforms are those of a release.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

// A release is one version, built from a checkout.
type release struct {
	root, out string // the checkout, and the folder with a folder for each version
	version   string
	platforms []platform
	// uncommitted allows changes that are in no commit. The bytes cannot be built again from one then.
	uncommitted bool
	log         io.Writer

	commit string
	date   time.Time // of the commit; all files have it
}

func main() {
	r := release{platforms: platforms, log: os.Stdout}
	flag.StringVar(&r.root, "root", ".", "the checkout")
	flag.StringVar(&r.out, "out", "dist", "the folder for the files")
	flag.Parse()
	r.version = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.build(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", advice.Text(err))
		os.Exit(1)
	}
}

// build makes the files in a folder of their own, which takes its final name when it is complete.
func (r *release) build(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(r.out, ".making-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(made) }()
	for _, p := range r.platforms {
		if err := r.pack(ctx, p, made); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		fmt.Fprintf(r.log, "release   %s\n", r.name(p))
	}
	if err := sum(made); err != nil {
		return err
	}
	final := filepath.Join(r.out, r.version)
	if err := errors.Join(os.RemoveAll(final), os.Chmod(made, 0o755), os.Rename(made, final)); err != nil {
		return err
	}
	fmt.Fprintf(r.log, "release   %s\n", final)
	return nil
}

// name begins the names of the files of a platform.
func (r *release) name(p platform) string { return "drover_" + r.version + "_" + p.String() }

var (
	semver   = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?$`)
	constant = regexp.MustCompile(`(?m)^const Version = "([^"]+)"$`)
)

// check refuses a version that is not one, is not that of the code, or has no section in the changelog.
func (r *release) check(ctx context.Context) error {
	if !semver.MatchString(r.version) {
		return advice.Wrap(fmt.Errorf("%q is not a semantic version", r.version), "make release VERSION=0.2.0, without a v before it")
	}
	core, _, _ := strings.Cut(r.version, "-")
	source, err := os.ReadFile(filepath.Join(r.root, "claude", "environ.go"))
	if err != nil {
		return err
	}
	if found := constant.FindSubmatch(source); found == nil || string(found[1]) != core {
		return advice.Wrap(fmt.Errorf("claude.Version is not %s", core), "set it in claude/environ.go")
	}
	log, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !hasSection(string(log), core) {
		return advice.Wrap(fmt.Errorf("CHANGELOG.md has no section %s with an entry", core), "write one under the heading ## %s", core)
	}
	return r.checkCommit(ctx)
}

// hasSection reports whether a changelog has a heading of a version, and text below it.
func hasSection(changelog, version string) bool {
	_, section, found := strings.Cut("\n"+changelog, "\n## "+version+"\n")
	text, _, _ := strings.Cut(section, "\n## ")
	return found && strings.TrimSpace(text) != ""
}

// checkCommit finds the commit and its date.
func (r *release) checkCommit(ctx context.Context) error {
	changes, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !r.uncommitted {
		return advice.Wrap(errors.New("the checkout has changes that are in no commit"), "commit them, or build in a fresh clone")
	}
	last, err := r.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(last, " ")
	r.commit = commit
	unix, err := strconv.ParseInt(seconds, 10, 64)
	r.date = time.Unix(unix, 0).UTC()
	return err
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.root
	return output(cmd)
}

// goTool runs the go command for a platform. Settings of this machine that change what is built are replaced.
func (r *release) goTool(ctx context.Context, p platform, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
	return output(cmd)
}

func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// pack builds the command for a platform, and makes its archive and its bill of materials in dir.
func (r *release) pack(ctx context.Context, p platform, dir string) error {
	work, err := os.MkdirTemp("", "drover-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	binary := filepath.Join(work, "drover")
	if p.os == "windows" {
		binary += ".exe"
	}
	if _, err := r.goTool(ctx, p, "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid= -X main.releaseVersion="+r.version, "-o", binary, "./cmd/drover"); err != nil {
		return err
	}
	if err := r.try(ctx, p, binary); err != nil {
		return err
	}
	modules, err := r.linked(ctx, p, binary)
	if err != nil {
		return err
	}
	files := []file{{name: filepath.Base(binary), mode: 0o755}, {name: "LICENSE"}, {name: "CHANGELOG.md"}, {name: "THIRD-PARTY-LICENSES.txt", content: licenceText(modules)}}
	for i, from := range []string{binary, filepath.Join(r.root, "LICENSE"), filepath.Join(r.root, "CHANGELOG.md")} {
		if files[i].content, err = os.ReadFile(from); err != nil {
			return err
		}
	}
	bill, err := r.bill(p, modules, files[0].content)
	if err != nil {
		return err
	}
	files = append(files, file{name: "drover.cdx.json", content: bill})
	if err := os.WriteFile(filepath.Join(dir, r.name(p)+".cdx.json"), bill, 0o644); err != nil {
		return err
	}
	return r.archive(p, dir, files)
}

// try asks a binary for its version in both ways, where this machine can run it.
func (r *release) try(ctx context.Context, p platform, binary string) error {
	if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
		return nil
	}
	for _, ask := range []string{"--version", "version"} {
		answer, err := output(exec.CommandContext(ctx, binary, ask))
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(answer), r.version) {
			return fmt.Errorf("drover %s prints %q, want %s", ask, answer, r.version)
		}
	}
	return nil
}

// sum writes the checksums of all files of a folder, as sha256sum --check reads them.
func sum(dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
