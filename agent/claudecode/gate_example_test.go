// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"fmt"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gate"
)

// BindGate makes Claude Code ask the engine before every tool call, whatever its own permissions say.
func ExampleBindGate() {
	readOnly := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.FromRisk(gate.RiskOptions{ReadOnly: true, AgentTools: true}))
	opts := &claude.Options{}
	if err := claudecode.BindGate(opts, gate.NewEngine(readOnly, nil)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(opts.PermissionMode, len(opts.Hooks))

	opts = &claude.Options{AllowedTools: []string{"Write"}}
	fmt.Println(claudecode.BindGate(opts, gate.NewEngine(readOnly, nil)))
	// Output:
	// default 1
	// claude: option AllowedTools: the CLI would approve these by itself; give the gate gate.AllowTools("Write") instead
}

// The mode of the CLI follows from permissions; a hook decides in any mode.
func ExampleMapPermissions() {
	native := claudecode.MapPermissions(&gate.Permissions{FileWrite: gate.LevelAllow})
	fmt.Println(native.Mode, native.Callback)
	native = claudecode.MapPermissions(&gate.Permissions{FileWrite: gate.LevelDeny})
	fmt.Println(native.Mode, native.Callback)
	// Output:
	// acceptEdits false
	// default true
}
