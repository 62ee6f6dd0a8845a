// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
)

// The parts of the output of a [Probe]'s script.
const (
	partFile        = "file"
	partWrite       = "write"
	partLoopback    = "loopback"
	partProcesses   = "processes"
	partEnvironment = "environment"
	partFiles       = "files"
	partMemory      = "memory"
	partStatus      = "status"
	partInterfaces  = "interfaces"
	partEnd         = "end"
)

// read divides the output of the script. An incomplete output is an error.
func (p *planted) read(output string) (map[string]string, error) {
	parts := map[string]string{}
	for _, piece := range strings.Split(output, "\n"+p.mark+" ") {
		name, text, _ := strings.Cut(piece, "\n")
		parts[name] = text
	}
	if _, ended := parts[partEnd]; !ended {
		return nil, advice.Wrap(errors.New("the script did not come to its end"), "try again when the machine is less busy")
	}
	return parts, nil
}

func (p *planted) judge(seen map[string]string) []Attempt {
	status := statusOf(seen[partStatus])
	_, err := os.Stat(p.written)
	written := err == nil
	return []Attempt{
		attempt("read a file of the host", !strings.Contains(seen[partFile], p.key), "it is not there", "one outside of the workspace was read"),
		attempt("write outside of the workspace", !written, "nothing came of it", "the file is there"),
		attempt("reach a server of the host", p.reached.Load() == 0, "loopback is the cell's own", "a server on loopback was reached"),
		attempt("see a process of the host", !strings.Contains(seen[partProcesses], p.mark+"-process"), "it is not in /proc", "its command line is in /proc"),
		p.secret("read the key in the environment", seen[partEnvironment], "the environment"),
		p.secret("read the key in files", seen[partFiles], "the workspace and the home"),
		p.secret("read the key in /proc", seen[partMemory], "the environment of processes"),
		rootless(status),
		powerless(status),
		attempt("gain privileges", status["NoNewPrivs"] == "1", "no_new_privs is set", "no_new_privs is not set"),
		attempt("make every system call", status["Seccomp"] == "2", "a seccomp filter is on", "no seccomp filter is on"),
		interfaces(seen[partInterfaces]),
	}
}

// attempt has another detail when it did not hold.
func attempt(name string, held bool, detail, otherwise string) Attempt {
	if !held {
		detail = otherwise
	}
	return Attempt{Name: name, Blocked: held, Detail: detail}
}

// secret looks for the key in what was seen.
func (p *planted) secret(name, seen, where string) Attempt {
	return attempt(name, !strings.Contains(seen, p.key), "it is not in "+where, "it is in "+where)
}

func rootless(status map[string]string) Attempt {
	const name = "be root"
	uids := strings.Fields(status["Uid"])
	if len(uids) == 0 {
		return Attempt{Name: name, Detail: "the user is not known"}
	}
	return attempt(name, !slices.Contains(uids, "0"), "the user is "+uids[0], "the user is root")
}

func powerless(status map[string]string) Attempt {
	var has []string
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if value := status[set]; strings.Trim(value, "0") != "" || value == "" {
			has = append(has, set+" "+value)
		}
	}
	return attempt("have capabilities", len(has) == 0, "no capabilities", strings.Join(has, ", "))
}

// interfaces are those of the network, of which only loopback may be there.
func interfaces(seen string) Attempt {
	var names []string
	for line := range strings.Lines(seen) {
		if name, _, is := strings.Cut(line, ":"); is {
			names = append(names, strings.TrimSpace(name))
		}
	}
	held := len(names) == 1 && names[0] == "lo"
	return attempt("have a network of the host", held, "only lo is there", "there is "+cmp.Or(strings.Join(names, ", "), "what is not known"))
}

func statusOf(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}
