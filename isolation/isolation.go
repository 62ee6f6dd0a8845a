// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/launch"
)

// An Isolation configures how an agent is isolated and what of the machine it may use. The zero value is safe to use.
type Isolation struct {
	// Network is what tools may reach. Nil means nothing.
	Network *NetworkPolicy
	// Sandbox is how the agent is isolated. Nil means the zero Sandbox, which is on.
	Sandbox *Sandbox
	// Env are variables for the agent, laid over all others. Variables that the isolation depends on or
	// that carry credentials are refused, with the name of the field to use instead.
	Env map[string]string
	// IncludeHostEnv adds the host's variables that neither have a sensitive name nor look like a secret.
	IncludeHostEnv bool
	// APIKey is the credential for the model; it overrides those of the host, and Bedrock is off then.
	APIKey string
	// AWSConfigPath is the folder with the AWS files. Empty means ~/.aws of the host.
	AWSConfigPath string
	// Auth is the authentication with the model without APIKey. Zero means that of the host's agent, without a stored login.
	Auth Auth
	// Upstream answers model calls instead of the one that Auth finds: a scripted model, a recording.
	Upstream gateway.Upstream
	// Limits are what the run may use of the machine.
	Limits Limits
	// Trackers count what the model costs, and end the run when a budget is spent.
	Trackers []*guard.Tracker
	// Weakest is the weakest level that the run accepts. Zero means LevelCell: without a cell the run does not start.
	Weakest Level
	// Strongest is the strongest level that the run uses, even if the machine offers a stronger one.
	// Zero means LevelCell. Weakest must not be stronger.
	Strongest Level
	// TempDir is where homes are made. Empty means [os.TempDir].
	TempDir string
	// HomePrefix begins their names. Empty means [HomePrefix]. A recording of requests that name a home with another prefix
	// does not replay.
	HomePrefix string
	// Populate puts skills and files into the home before the program starts. Nil leaves it as made.
	Populate func(*Home) error
	// Started is called with each process of the program. Nil means that it is not called.
	Started func(launch.Process)
	// Gateway passes the model calls. Runs of one gateway share its queue and back off together. Nil means [gateway.Shared].
	Gateway *gateway.Gateway
	// Host is the machine: its variables and the folder of its user. Zero means this process.
	Host Host
}

// Validate returns everything that cannot be enforced at this level on this operating system (a GOOS), for any program.
func (i *Isolation) Validate(level Level, goos string) error {
	var weaker error
	if level > i.Weakest {
		weaker = &RefusedError{
			Field: "Weakest", Reason: fmt.Sprintf("level %s is not available; only %s is", i.Weakest, level),
			Level: level, GOOS: goos, Next: "see drover doctor for what is missing, or accept less by setting Isolation.Weakest",
		}
	}
	return errors.Join(
		weaker,
		i.Network.Validate(level, goos),
		i.Sandbox.Validate(level, goos),
		Program{}.ValidateEnv(i.Env),
	)
}

// Format keeps the key and the values of Env out of everything that is printed.
func (i Isolation) Format(f fmt.State, verb rune) {
	type plain Isolation // without this method
	shown := plain(i)
	if shown.APIKey != "" {
		shown.APIKey = "[hidden]"
	}
	shown.Env = make(map[string]string, len(i.Env))
	for name := range i.Env {
		shown.Env[name] = "[hidden]"
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), shown)
}
