// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"

	"github.com/drover-agents/drover/isolation"
)

// The CLI's own sandbox works inside of a cell that is asked for it: commands can then neither reach the
// gateway nor change the home, nor speak for the CLI.
func TestCLISandbox_WorksInACell(t *testing.T) {
	h := newTarget(t)
	attempts := []attempt{
		bash("work", "echo made > made; cat made", `made`),
		bash("the gateway", attacker("gateway", "GET", "/v1/models")+"; "+attacker("dial", "tcp", "127.0.0.2:47800"), `(?s)refused: .*refused: .*connection refused`),
		bash("the home", "touch $HOME/x; touch $HOME/.claude/settings.json; echo x >> $HOME/.claude/settings.json", `(?s)(Read-only|ermission denied|No such file)`),
		bash("the key of the run", "env | grep -c ^ANTHROPIC_API_KEY=; echo counted", `(?m)^0\ncounted`),
		bash("the CLI's memory", "for p in /proc/[0-9]*; do (exec 3<>$p/mem) 2>/dev/null && readlink $p/exe; done; true", ``, h.Path),
		bash("the CLI's voice", "for p in /proc/[0-9]*; do [ \"$(readlink $p/exe)\" = "+h.Path+" ] && echo '{}' > $p/fd/1 && echo spoken; done; true", ``, "spoken"),
		bash("read a file of the host", "cat "+h.file, hidden),
		bash("the host's server", attacker("dial", "tcp", h.servers["tcp"].address, "abstract", h.servers["abstract"].address), `(?s)(refused: .*){2}`),
		bash("system calls", "echo x > /proc/sys/kernel/core_pattern; mknod disk b 8 0; unshare -Ur mount -o remount,rw /usr && touch /usr/x", `(?s)`+forbidden),
	}
	model := h.agent(t, turnsOf(attempts, 1)...)
	in := h.isolation()
	in.Sandbox = &isolation.Sandbox{Nested: true}
	h.check(t, attempts, model, h.run(t, in, nil))
}
