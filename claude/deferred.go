// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/ident"
)

// A CLI that resumes a conversation in which a hook has deferred a call runs the call as soon as it has
// started: before the handshake, without the hooks of the handshake. With awaitInitialize it waits. The
// oldest tested CLI does not know the flag.
//
// So a conversation that this program writes to disk has no marks of deferred calls, and one with such a mark in the CLI's
// own files is refused. A program that passes the flag itself decides about the calls in its hooks.
const (
	awaitInitialize = "--await-initialize"
	// resumeInterrupted makes a resumed CLI continue a turn that was cut off, also before the handshake.
	resumeInterrupted = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"
	// disableCron keeps the CLI from sending scheduled prompts. The oldest tested CLI sends due ones before the handshake.
	disableCron = "CLAUDE_CODE_DISABLE_CRON"
)

func (o *Options) resumes() bool { return o.Continue || o.Resume != "" }

// awaitsInitialize reports whether these options have the CLI wait for the handshake.
func (o *Options) awaitsInitialize() bool {
	return o.PluginsInInitialize || slices.ContainsFunc(o.ExtraArgs, func(arg string) bool { return longFlag(arg) == awaitInitialize })
}

func (o *Options) startsByItself() bool {
	text, err := json.Marshal(o.environ(resumeInterrupted))
	return err == nil && !isOff(text)
}

// launchEnviron is the environment of the CLI. Unless the options set it, a schedule in the working directory is
// ignored: an agent may have written it, and its first prompt is sent before the hooks are registered.
func (o *Options) launchEnviron() []string {
	env := o.Environ()
	if o.environ(disableCron) == "" && hasSchedule(o.Dir) {
		env = append(env, disableCron+"=1")
	}
	return env
}

// hasSchedule reports whether a folder holds a schedule, or may come to hold one through a link.
func hasSchedule(dir string) bool {
	config := filepath.Join(dir, ".claude")
	info, err := os.Lstat(config)
	if err == nil && info.IsDir() {
		_, err = os.Lstat(filepath.Join(config, "scheduled_tasks.json"))
	}
	return !errors.Is(err, os.ErrNotExist)
}

// refuseDeferred refuses to resume a conversation in the CLI's own files that has a deferred call. Where
// the files cannot be seen from here, the CLI is to wait for the handshake.
func (c *Client) refuseDeferred(ctx context.Context) error {
	o := c.opts
	if o.Store != nil || !o.resumes() || o.awaitsInitialize() {
		return nil
	}
	if o.Spawner != nil || o.Resume != "" && !ident.ValidUUID(o.Resume) {
		c.awaits = true
		return nil
	}
	where := transcript.Options{Dir: o.configDir(), NoWorktrees: true, ProjectDirName: o.environ("CLAUDE_CODE_PROJECT_DIR_NAME")}
	if o.Continue {
		if where.Project = o.Dir; where.Project == "" {
			where.Project = "."
		}
	}
	calls, err := transcript.Deferred(ctx, o.Resume, where)
	c.awaits = err != nil
	if len(calls) == 0 {
		return ctx.Err()
	}
	option := "Resume"
	if o.Continue {
		option = "Continue"
	}
	return &OptionError{option, fmt.Sprintf("the conversation has a deferred call (%s), which the CLI would run before it has its hooks; "+
		"import it into a Store, where such calls are given up, or pass ExtraArgs %s so that a PreToolUse hook decides", strings.Join(calls, ", "), awaitInitialize)}
}
