// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"os"
	"os/exec"
	"testing"
)

// Run as an ordinary program the script finds all that was planted, so that each attempt can fail.
func TestProbeScript_FindsPlantedTargets(t *testing.T) {
	shell, err := probeShell()
	if err != nil {
		t.Skip(err)
	}
	p, err := plant(t.Context(), shell)
	if err != nil {
		t.Fatal(err)
	}
	defer p.remove()
	home := t.TempDir()
	if err := os.WriteFile(home+"/settings.json", []byte(p.key), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), shell, "-c", p.script(home))
	cmd.Dir, cmd.Env = p.work, []string{"PATH=/usr/bin:/bin", "LEAKED=" + p.key}
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen, err := p.read(string(output))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.judge(seen) {
		switch a.Name {
		case "be root", "have capabilities", "gain privileges", "make every system call", "have a network of the host":
			continue // these are as they are for this test
		}
		if a.Blocked {
			t.Errorf("%s: held (%s), want it found: nothing is in the way", a.Name, a.Detail)
		}
	}
}

// The status in /proc is judged by its fields; one that is missing shows nothing.
func TestProbeScript_JudgesTheStatusOfAProcess(t *testing.T) {
	good := "Uid:\t1000\t1000\t1000\t1000\nNoNewPrivs:\t1\nSeccomp:\t2\nCapInh:\t0000\nCapPrm:\t0000\nCapEff:\t0000\nCapBnd:\t0000\nCapAmb:\t0000\n"
	bad := "Uid:\t1000\t0\t1000\t1000\nNoNewPrivs:\t0\nSeccomp:\t0\nCapInh:\t0000\nCapPrm:\t0000\nCapEff:\t00ff\nCapBnd:\t0000\nCapAmb:\t0000\n"
	lo, eth := "Inter-|\n face |\n    lo: 0 0\n", "Inter-|\n face |\n    lo: 0 0\n  eth0: 1 1\n"
	for name, c := range map[string]struct {
		status, interfaces string
		held               bool
	}{
		"good": {good, lo, true}, "bad": {bad, eth, false}, "nothing": {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &planted{key: "the-key", mark: "the-mark", written: t.TempDir() + "/none"}
			for _, a := range p.judge(map[string]string{partStatus: c.status, partInterfaces: c.interfaces})[7:] {
				if a.Blocked != c.held {
					t.Errorf("%s: held %v (%s), want %v", a.Name, a.Blocked, a.Detail, c.held)
				}
			}
		})
	}
}

// A script that was cut off has shown nothing.
func TestProbeScript_CutOffIsAnError(t *testing.T) {
	p := &planted{mark: "the-mark"}
	if _, err := p.read("\nthe-mark file\n\nthe-mark write\n"); err == nil {
		t.Error("got no error, want one")
	}
}
