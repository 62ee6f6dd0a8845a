// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"path/filepath"
	"sync/atomic"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/session"
)

// FactsOptions are the sources of [Facts]. A source that is left out limits nothing.
type FactsOptions struct {
	// Session knows the tools that succeeded, the files read, the last [session.ToolPermissions] and [session.Workspace].
	Session *session.Session
	// Tracker knows what is left of the budget, and has its deadline.
	Tracker *Tracker
	// Deadline is another one; the one that comes first holds.
	Deadline Deadline
	// Clock gives the time of decisions. Nil means the clock of the deadline.
	Clock Clock
	// Target finds the file that a call names, where this program sees other files than the agent does.
	// Relative paths belong to dir. Nil means [gate.FindTarget].
	Target func(c gate.Call, dir string) gate.Target
}

// Facts makes a function for [gate.EngineOptions] that gives what is known at the moment of a call. It
// is safe for concurrent use and copies nothing of the session.
//
// It counts the calls that it is asked about, on top of those that the session has when it is made, so
// that a limit on their number holds for calls at the same time and for the runs of a session one after
// the other. Engines that work on one session at the same time must share one function for that.
//
// Where the store of the session cannot be read, and so the blocked tools are unknown, none is allowed.
//
// A call that names no working directory is taken to be in the [session.Workspace]: the gate then judges
// where its relative paths lead. Inputs are left as they are, since the agent resolves them alike.
func Facts(o FactsOptions) func(ctx context.Context, c gate.Call) gate.Facts {
	f := &facts{FactsOptions: o}
	f.Deadline = f.Deadline.Earlier(f.Tracker.Budget().Deadline)
	if f.Clock == nil {
		f.Clock = f.Deadline.clock
	}
	if f.Target == nil {
		f.Target = gate.FindTarget
	}
	if f.Session != nil {
		f.earlier = session.Query[session.ToolInvoked](f.Session).Len()
	}
	return f.about
}

type facts struct {
	FactsOptions
	earlier     int          // calls of the session before the first
	asked       atomic.Int64 // calls since then
	permissions atomic.Pointer[permissionSets]
}

func (f *facts) about(_ context.Context, c gate.Call) gate.Facts {
	known := gate.Facts{
		Now: f.Clock.now(), Deadline: f.Deadline.at, Remaining: f.Tracker.Remaining(),
		Calls: f.number(c), Dir: c.Dir,
	}
	if f.Session != nil {
		f.addSession(&known)
	}
	known.Target = f.Target(c, known.Dir)
	return known
}

// number is how many calls came before this one. An engine keeps the number of a call that it asks about again.
func (f *facts) number(c gate.Call) int {
	if c.Again {
		return f.earlier + int(f.asked.Load())
	}
	return f.earlier + int(f.asked.Add(1)) - 1
}

func (f *facts) addSession(known *gate.Facts) {
	policy, _ := session.Query[session.PolicyState](f.Session).Latest()
	known.Invoked, known.ReadPaths = policy.Invoked(), policy.ReadPaths()
	permissions := session.Query[session.ToolPermissions](f.Session)
	if last, ok := permissions.Latest(); ok {
		sets := f.setsOf(last)
		known.Blocked, known.Allowed = sets.blocked, sets.allowed
	} else if permissions.Err() != nil {
		known.Allowed = map[string]bool{}
	}
	if workspace, ok := session.Query[session.Workspace](f.Session).Latest(); ok && filepath.IsAbs(workspace.Root) {
		known.Dir = cmp.Or(known.Dir, workspace.Root)
	}
}

type permissionSets struct {
	of               session.ToolPermissions
	blocked, allowed map[string]bool
}

// setsOf makes sets of the permissions, once for each that is dispatched.
func (f *facts) setsOf(p session.ToolPermissions) *permissionSets {
	if made := f.permissions.Load(); made != nil && sameList(made.of.Blocked, p.Blocked) && sameList(made.of.Allowed, p.Allowed) {
		return made
	}
	made := &permissionSets{p, setOf(p.Blocked), setOf(p.Allowed)}
	f.permissions.Store(made)
	return made
}

// sameList reports whether two lists are one in memory. Nothing that was dispatched changes.
func sameList(a, b []string) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// setOf is nil for an empty list.
func setOf(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
