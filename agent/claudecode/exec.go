// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"errors"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
)

var _ agent.Executor = (*Adapter)(nil)

// Exec implements [agent.Executor]: a second cell over the same folder; see [isolation.Isolation.Exec]. Files
// that the command writes there stay. It is not a call of the agent, so it has no checkpoint.
//
// It is refused where a Spawner of the caller isolates the CLI: the protection of that Spawner is unknown.
func (a *Adapter) Exec(ctx context.Context, req agent.Request, argv []string) (guard.Executed, error) {
	if a.isolation == nil && a.base.Spawner != nil {
		return guard.Executed{}, advice.Wrap(errors.New("claudecode: a command cannot be run in the isolation of a Spawner"), "give the evaluation a function of its own that runs commands")
	}
	dir, err := workDir(req)
	if err != nil {
		return guard.Executed{}, err
	}
	o := a.base
	o.Dir = cmp.Or(dir, o.Dir)
	return a.isolation.Exec(ctx, isolation.ExecOptions{Argv: argv, Program: claudecell.Program(&o)})
}
