// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/internal/spill"
	"github.com/drover-agents/drover/launch"
)

func (c *Client) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{c.refuseDeferred, c.chooseNewest, c.lockStore, c.resume} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := c.openMirror(); err != nil {
		return err
	}
	cmd, err := c.launchCommand()
	if err != nil {
		return err
	}
	c.recorder.Start(c.opts.configDir(), c.opts.recordsFiles())
	proc, err := c.spawner().Spawn(ctx, cmd)
	if err != nil {
		c.recorder.End()
		return launchError(cmd, err)
	}
	c.connect(proc, cmd)
	return nil
}

func (c *Client) spawner() Spawner {
	if c.opts.Spawner != nil {
		return c.opts.Spawner
	}
	// As root, bubblewrap makes a /proc in which the sandbox of the CLI cannot make its own.
	return &HostSpawner{User: c.opts.User, NoPIDNamespace: os.Geteuid() == 0 && c.opts.sandboxed()}
}

func (o *Options) sandboxed() bool {
	settings, err := mergeSettings(o.Settings, o.Sandbox)
	if err == nil && o.SettingsFile != "" {
		settings, err = os.ReadFile(o.SettingsFile)
	}
	var s struct {
		Sandbox struct {
			Enabled bool `json:"enabled"`
		} `json:"sandbox"`
	}
	return err == nil && json.Unmarshal(settings, &s) == nil && s.Sandbox.Enabled
}

func (c *Client) launchCommand() (Command, error) {
	o := c.opts
	if err := launch.CheckDir(o.Dir); err != nil {
		return Command{}, err
	}
	found, err := Find(FindOptions{Path: o.CLIPath}) // not below o.Dir: an agent may have written there
	if err != nil {
		return Command{}, err
	}
	args, err := o.arguments()
	if err != nil {
		return Command{}, err
	}
	if c.awaits {
		args = append(args, awaitInitialize)
	}
	cmd := Command{Path: found.Path, Args: args, Dir: o.Dir, Env: o.launchEnviron()}
	return c.throughRuntime(cmd)
}

// throughRuntime puts the interpreter before a CLI that is a script.
func (c *Client) throughRuntime(cmd Command) (Command, error) {
	script := slices.Contains([]string{".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx"}, filepath.Ext(cmd.Path))
	runtime := c.opts.Runtime
	if len(runtime) == 0 && script {
		runtime = []string{"node"}
	}
	if len(runtime) == 0 {
		return cmd, nil
	}
	program, err := exec.LookPath(runtime[0])
	if err != nil {
		return cmd, &LaunchError{Path: runtime[0], Err: fmt.Errorf("%w: no runtime for %s", ErrCLINotFound, cmd.Path), Hint: "install it, or set Options.Runtime"}
	}
	cmd.Args = slices.Concat(runtime[1:], []string{cmd.Path}, cmd.Args)
	cmd.Path = program
	return cmd, nil
}

func launchError(cmd Command, err error) error {
	if failed := (*LaunchError)(nil); errors.As(err, &failed) {
		if errors.Is(err, ErrNotExecutable) && errors.Is(err, syscall.ENOEXEC) {
			failed.Hint += "; or run " + installCommand
		}
		return err
	}
	return &LaunchError{Path: cmd.Path, Err: fmt.Errorf("claude: starting the CLI: %w", err), Hint: "run it by hand with --version to see whether it starts at all"}
}

func (c *Client) connect(proc Process, cmd Command) {
	secrets := safetext.NewRedactor(secretValues(cmd.Env)...)
	c.log = slog.New(secrets.Handler(c.log.Handler()))
	c.conn = &conn{
		proc:     proc,
		out:      &lineWriter{w: proc.Stdin()},
		in:       lines.NewReader(proc.Stdout(), c.opts.MaxLineBytes),
		log:      c.log,
		started:  time.Now(),
		stderr:   &stderrReader{onLine: c.opts.Stderr, log: c.log, redact: secrets, done: make(chan struct{})},
		secrets:  noSecrets{secrets},
		queue:    spill.New(spill.Options{Memory: c.opts.MaxBufferedBytes, Paced: !c.opts.answersCLI()}),
		asked:    newHandlerTable(),
		prepare:  c.prepare,
		recorder: c.recorder,
		mirror:   c.mirrorLine,
		resulted: c.flushMirror,
		done:     make(chan struct{}),
	}
	c.conn.turns = &turnTracker{ceiling: backgroundCeiling(c.opts), ended: c.conn.turnEnded}
	c.mux = newMCPMux(c.opts.inProcess(), c.log)
	c.mux.attach(c.requestMCPMessage)
	go c.conn.stderr.run(proc.Stderr())
	go c.conn.read()
}

// answersCLI reports whether the CLI may send requests behind messages in the stream. Then the reader
// must never wait for the consumer of messages; otherwise a short wait saves memory.
func (o *Options) answersCLI() bool {
	return len(o.Hooks) > 0 || len(o.inProcess()) > 0 || o.CanUseTool != nil || o.OnElicitation != nil || o.OnUserDialog != nil
}

func (o *Options) inProcess() map[string]*MCPInProcess {
	servers := map[string]*MCPInProcess{}
	for name, s := range o.MCPServers {
		if ours, ok := s.(*MCPInProcess); ok {
			servers[name] = ours
		}
	}
	return servers
}

func backgroundCeiling(o *Options) time.Duration {
	if o.BackgroundCeiling == 0 {
		return 10 * time.Minute
	}
	return o.BackgroundCeiling
}

// secretValues are the values of variables whose names mark them as secret.
func secretValues(env []string) []string {
	var values []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"} {
			if len(value) >= 8 && strings.Contains(strings.ToUpper(name), word) {
				values = append(values, value)
				break
			}
		}
	}
	return values
}

// chooseNewest makes Continue the Resume of a conversation in Options.Store, which is locked before it is read.
func (c *Client) chooseNewest(ctx context.Context) error {
	o := c.opts
	if o.Store == nil || !o.Continue {
		return nil
	}
	key, err := transcript.Newest(ctx, o.Store, o.projectKey(), o.StoreLoadTimeout)
	if err != nil {
		return fmt.Errorf("claude: continuing from Options.Store: %w", err)
	}
	o.Resume, o.Continue = key.SessionID, false
	return nil
}

// resume writes the conversation of Options.Store to the files that the CLI resumes from.
func (c *Client) resume(ctx context.Context) error {
	o := c.opts
	if o.Store == nil || o.Resume == "" {
		return nil
	}
	resumed, err := transcript.Materialise(ctx, o.Store, transcript.Key{ProjectKey: o.projectKey(), SessionID: o.Resume}, transcript.ResumeOptions{
		HostConfigDir: o.configDir(), HostStateFile: o.stateFile(), TempDir: o.StoreDir, LoadTimeout: o.StoreLoadTimeout,
		KeepDeferred: o.awaitsInitialize(),
	})
	if err != nil {
		return fmt.Errorf("claude: resuming from Options.Store: %w", err)
	}
	c.resumed = resumed
	vars := maps.Clone(o.Env.vars)
	if vars == nil {
		vars = map[string]string{}
	}
	vars["CLAUDE_CONFIG_DIR"] = resumed.Dir
	o.Env.vars = vars
	return nil
}

func (o *Options) projectKey() string { return transcript.ProjectKey(cmp.Or(o.Dir, ".")) }

// Environ is the whole environment that the CLI gets with these options, as "NAME=value", sorted.
func (o *Options) Environ() []string { return o.environment(os.Environ()) }

// environ is the value of a variable as the CLI will see it.
func (o *Options) environ(name string) string {
	for _, entry := range slices.Backward(o.Environ()) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
