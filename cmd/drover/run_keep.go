// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record"
)

// envKeep sets what is kept of runs: "no", or limits such as "runs=500,age=30d,size=1GiB". Empty means the defaults.
const envKeep = "DROVER_KEEP"

// keepFlags are the flags about what is kept of a run.
type keepFlags struct {
	off     bool
	traffic bool
	secrets nameList // variables of which the values are secret
	// command is the command line that is kept, where another program than drover run runs it. Nil means that of this process.
	command []string
}

// A nameList collects names of environment variables.
type nameList []string

func (l *nameList) Type() string   { return "name" }
func (l *nameList) String() string { return strings.Join(*l, ",") }

func (l *nameList) Set(value string) error {
	for _, name := range splitList(value) {
		if name == "" || strings.Contains(name, "=") {
			return advice.Wrap(fmt.Errorf("%q is not the name of a variable", name), "give the name of an environment variable, not its value")
		}
		if os.Getenv(name) == "" {
			return advice.Wrap(fmt.Errorf("the variable %s is empty or not set", name), "set it, or leave the flag out")
		}
		*l = append(*l, name)
	}
	return nil
}

// cloudSecrets are variables with credentials of cloud services and of collectors of traces.
var cloudSecrets = []string{
	"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "OTEL_EXPORTER_OTLP_HEADERS",
	"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS", "GITHUB_TOKEN", "GH_TOKEN",
}

// secretValues are the values that must not be kept: credentials, and variables that the user names.
func secretValues(more []string) []string {
	var values []string
	for _, names := range [][]string{credentialNames, cloudSecrets, more} {
		for _, name := range names {
			if v := os.Getenv(name); v != "" {
				values = append(values, v)
			}
		}
	}
	return values
}

// secrets are the values that must neither be kept of a run nor be on its standard error: those of secretValues, and what an agent
// file gives to its servers. A value of a few characters in a file is a setting.
func (o *runOptions) secrets() []string {
	values := secretValues(o.keep.secrets)
	if f := o.file.agent; f != nil {
		for _, s := range f.Servers {
			for _, given := range []map[string]string{s.Env, s.Headers} {
				for _, v := range given {
					if len(v) >= minFileSecret {
						values = append(values, v)
					}
				}
			}
		}
	}
	return values
}

const minFileSecret = 6

// withoutSecrets is an error with its advice and its exit code, without the values of secrets.
func withoutSecrets(err error, secrets []string) error {
	known, found := safetext.NewRedactor(secrets...), false
	code, coded := errors.AsType[ending](err)
	var clean []error
	for text, next := range advice.All(err) {
		each := errors.New(known.String(text))
		found = found || each.Error() != text || known.String(next) != next
		if next != "" {
			each = advice.Wrap(each, "%s", known.String(next))
		}
		if coded {
			each = ending{code.code, each}
		}
		clean = append(clean, each)
	}
	if !found {
		return err
	}
	return errors.Join(clean...)
}

// safeErrors is standard error without the values of secrets. It passes on whole lines, those of several goroutines one after the
// other.
type safeErrors struct {
	mu sync.Mutex
	w  *safetext.Writer
}

func newSafeErrors(to io.Writer, secrets []string) *safeErrors {
	return &safeErrors{w: safetext.NewRedactor(secrets...).NewWriter(to)}
}

func (e *safeErrors) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.w.Write(p)
}

func (e *safeErrors) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.w.Close()
}

// runsFolder is the folder of kept runs, below a state folder that may be given.
func runsFolder(state string) (string, error) {
	if state == "" {
		var err error
		if state, err = leftover.StateFolder(); err != nil {
			return "", err
		}
	}
	return filepath.Join(state, "runs"), nil
}

func openRuns(state string) (*record.Store, error) {
	dir, err := runsFolder(state)
	var store *record.Store
	if err == nil {
		store, err = record.Open(dir)
	}
	if err != nil {
		return nil, advice.Wrap(err, "set XDG_STATE_HOME to a folder that can be written to, or add --no-keep")
	}
	return store, nil
}

// recorder keeps the run that begins in folder, or is nil for one that is not to be kept. One that cannot be kept goes on, and is
// reported. The traffic of the model is kept if its source records it.
func (o *runOptions) recorder(folder string, model *modelSource, errs io.Writer) (*record.Recorder, *record.Store, error) {
	keep, off, err := keepSetting(os.Getenv(envKeep))
	if err != nil || off || o.keep.off {
		return nil, nil, err
	}
	store, err := openRuns(o.state)
	if err != nil {
		report(errs, err)
		return nil, nil, nil
	}
	command := o.keep.command
	if command == nil {
		command = os.Args
	}
	opts := &record.RecorderOptions{
		Secrets: o.secrets(), Folder: folder, Traffic: model.traffic, Settle: model.settle, Command: command, Keep: keep,
		Versions: map[string]string{"drover": builtVersion()},
	}
	if f := o.file.agent; f != nil {
		opts.Name = f.Name
	}
	return record.NewRecorder(store, opts), store, nil
}

// builtVersion is the version of this program, with its commit where that is known.
func builtVersion() string {
	info, _ := debug.ReadBuildInfo()
	b := describeBuild(info)
	return strings.TrimSuffix(b.Version+"+"+b.Commit, "+")
}

// keepSetting reads the variable DROVER_KEEP.
func keepSetting(text string) (keep record.Retention, off bool, err error) {
	bad := func(format string, args ...any) (record.Retention, bool, error) {
		return keep, false, advice.Wrap(usageError("%s: %w", envKeep, fmt.Errorf(format, args...)), "set it to no, or to limits such as runs=500,age=30d,size=1GiB, or unset it")
	}
	switch text {
	case "":
		return keep, false, nil
	case "no":
		return keep, true, nil
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if seen[name] {
			return bad("%s is given twice", name)
		}
		seen[name] = true
		var err error
		switch name {
		case "runs":
			keep.MaxRuns, err = strconv.Atoi(value)
			err = cmp.Or(err, positive(int64(keep.MaxRuns)))
		case "age":
			keep.MaxAge, err = parseAge(value)
		case "size":
			keep.MaxBytes, err = parseSize(value)
		default:
			return bad("there is no limit %q", name)
		}
		if err != nil {
			return bad("%s=%s: %w", name, value, err)
		}
	}
	return keep, false, nil
}

func positive(n int64) error {
	if n <= 0 {
		return errors.New("not above zero")
	}
	return nil
}

// parseAge reads a duration, which may be in days: 12h, 30d.
func parseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n <= 0 || n > 36500 {
			return 0, errors.New("not a number of days")
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("not a duration such as 12h or 30d")
	}
	return d, positive(int64(d))
}

// parseSize reads a number of bytes, which may have a unit: 500MiB, 4GiB.
func parseSize(text string) (int64, error) {
	unit := int64(1)
	for _, u := range []struct {
		name string
		size int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}} {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = number, u.size
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, errors.New("not a size such as 500MiB")
	}
	return n * unit, positive(n)
}
