// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/tool"
)

// ProjectFile is the name of the file in a folder that narrows the runs in it; see [LoadProject].
const ProjectFile = ".drover.yaml"

// maxProject is the largest project file, in bytes.
const maxProject = 64 << 10

// A Project is what a folder asks of every run in it. Its file is not trusted: the author of the folder is its author. It
// can choose the model, lower limits, and take away tools and calls. It can give nothing.
type Project struct {
	Version int           `json:"version"`
	Model   string        `json:"model"`
	Effort  string        `json:"effort"`
	Limits  Limits        `json:"limits"`
	Tools   ProjectTools  `json:"tools"`
	Policy  ProjectPolicy `json:"policy"`

	path string
}

// ProjectTools take tools away. A run keeps those of Only; nil means all.
type ProjectTools struct {
	Only    []string `json:"only"`
	Deny    []string `json:"deny"`
	Unknown []string `json:"unknown"`
}

// A ProjectPolicy denies calls.
type ProjectPolicy struct {
	Deny     []string `json:"deny"`
	ReadOnly bool     `json:"readOnly"`
}

//go:embed project.json
var projectText []byte

// ProjectSchema returns the JSON Schema of project files: project.json of this package.
func ProjectSchema() json.RawMessage { return slices.Clone(projectText) }

const (
	wouldAllow   = "which could allow calls"
	wouldShow    = "which would choose files or folders"
	wouldReach   = "which would change the isolation or the network of a run"
	wouldRun     = "which could start a program"
	wouldAsk     = "which would speak to the model"
	wouldConnect = "which would choose an endpoint or credentials"
)

var projectFormat = newFormat(projectText, map[string]string{
	"allow": wouldAllow, "ask": wouldAllow, "permissions": wouldAllow, "tools.allow": wouldAllow + "; tools.only keeps some of the tools of a run",
	"policy.allow": wouldAllow, "policy.ask": wouldAllow, "policy.mode": wouldAllow, "policy.fileWrite": wouldAllow,
	"policy.shellExecute": wouldAllow, "policy.networkAccess": wouldAllow, "policy.requireBefore": wouldAllow, "policy.readBeforeWrite": wouldAllow,
	"mounts": wouldShow, "skills": wouldShow, "writable": wouldShow, "readable": wouldShow, "paths": wouldShow, "record": wouldShow, "state": wouldShow,
	"isolation": wouldReach, "network": wouldReach, "hosts": wouldReach, "domains": wouldReach,
	"servers": wouldRun, "completion": wouldRun, "command": wouldRun, "commands": wouldRun, "hooks": wouldRun,
	"sections": wouldAsk, "args": wouldAsk, "system": wouldAsk, "output": wouldAsk, "feedback": wouldAsk, "prompt": wouldAsk,
	"endpoint": wouldConnect, "credentials": wouldConnect, "env": wouldConnect, "environment": wouldConnect, "auth": wouldConnect,
})

// LoadProject reads the project file of a folder. It returns nil without such a file. A link is refused, also one that leads to a
// file in the folder.
func LoadProject(dir string) (*Project, error) {
	data, err := readProject(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, advice.Wrap(fmt.Errorf("agentfile: the project file: %w", err), "remove it, or make it a regular file that can be read")
	}
	return parseProject(data, filepath.Join(dir, ProjectFile))
}

func readProject(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	listed, err := root.Lstat(ProjectFile)
	if err != nil {
		return nil, err
	}
	if listed.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "open", Path: ProjectFile, Err: errors.New("it is a link")}
	}
	file, err := plainfile.OpenIn(root, ProjectFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil || !os.SameFile(listed, opened) { // a link has taken its place
		return nil, errors.Join(err, &fs.PathError{Op: "open", Path: ProjectFile, Err: errors.New("it changed while it was opened")})
	}
	return plainfile.ReadAll(file, maxProject)
}

// parseProject reads a project file as strictly as [Parse] reads an agent. name is the path of its file.
func parseProject(data []byte, name string) (*Project, error) {
	body, problem := document(data)
	if problem != nil {
		problem.File = name
		return nil, problem
	}
	t, found := grow(name, body)
	p := &Project{path: name}
	if projectFormat.decode(t, found, p); len(found.all) == 0 {
		p.check(found)
	}
	if err := found.join(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Project) check(found *problems) {
	if strings.HasPrefix(strings.ToLower(p.Model), "arn:") { // what the model is asked would go there
		found.add("/model", "an ARN may name a resource of another account", "name a model; a flag or an agent file can name a resource")
	}
	known := tool.KnownNames{Catalogue: catalogue.Tools(), Also: p.Tools.Unknown, Option: "tools.unknown"}
	for pointer, rules := range map[string][]string{"/tools/only": p.Tools.Only, "/tools/deny": p.Tools.Deny, "/policy/deny": p.Policy.Deny} {
		for i, rule := range rules {
			options := gate.RuleOptions{Deny: []string{rule}}
			if pointer == "/tools/only" {
				options = gate.RuleOptions{Allow: []string{rule}}
			}
			checkRule(found, at(pointer, i), options)
			if err := known.Check(rule); err != nil {
				found.fail(at(pointer, i), err)
			}
		}
	}
}

// Path is the path of the file.
func (p *Project) Path() string { return p.path }

// Policies deny what the project takes away. servers are the MCP servers whose tools the run has besides those of
// Tools.Only: those of the prompt.
func (p *Project) Policies(servers ...string) []gate.Policy {
	var all []gate.Policy
	if p.Tools.Only != nil {
		all = append(all, gate.AllowTools(slices.Concat(p.Tools.Only, servers)...))
	}
	if deny := slices.Concat(p.Tools.Deny, p.Policy.Deny); len(deny) > 0 {
		all = append(all, gate.DenyTools(deny...))
	}
	if p.Policy.ReadOnly {
		all = append(all, gate.FromRisk(gate.RiskOptions{ReadOnly: true, AgentTools: true}))
	}
	return all
}

// String lists all that the file sets, in one line for people.
func (p *Project) String() string {
	var set []string
	add := func(is bool, format string, args ...any) {
		if is {
			set = append(set, fmt.Sprintf(format, args...))
		}
	}
	add(p.Model != "", "model %s", p.Model)
	add(p.Effort != "", "effort %s", p.Effort)
	add(p.Limits.Time > 0, "at most %s", time.Duration(p.Limits.Time))
	add(p.Limits.Turns > 0, "at most %d turns", p.Limits.Turns)
	add(p.Limits.USD > 0, "at most $%g", p.Limits.USD)
	add(p.Limits.Tokens > 0, "at most %d tokens", p.Limits.Tokens)
	add(p.Tools.Only != nil, "only the tools %s", strings.Join(p.Tools.Only, ", "))
	add(len(p.Tools.Deny) > 0, "not the tools %s", strings.Join(p.Tools.Deny, ", "))
	add(len(p.Policy.Deny) > 0, "no %s", strings.Join(p.Policy.Deny, ", "))
	add(p.Policy.ReadOnly, "no changes")
	if len(set) == 0 {
		return "nothing"
	}
	return safetext.Line(strings.Join(set, "; "))
}
