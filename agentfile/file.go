// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"encoding/json"
	"path/filepath"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

// A File is an agent. Make one with [Parse] or [Load]. The fields are those of the format; its [Schema] describes each.
type File struct {
	Version     int    `json:"version"`
	Namespace   string `json:"namespace"`
	Key         string `json:"key"`
	Name        string `json:"name"`
	Description string `json:"description"`

	Model  string `json:"model"`
	Effort string `json:"effort"`
	System System `json:"system"`

	Args     map[string]Arg `json:"args"`
	Sections []Section      `json:"sections"`
	Skills   []string       `json:"skills"`
	Output   Output         `json:"output"`

	Tools      Tools             `json:"tools"`
	Servers    map[string]Server `json:"servers"`
	Policy     Policy            `json:"policy"`
	Limits     Limits            `json:"limits"`
	Mounts     []Mount           `json:"mounts"`
	Isolation  Isolation         `json:"isolation"`
	Completion Completion        `json:"completion"`
	Feedback   []Feedback        `json:"feedback"`

	// Roots are more folders for mounts, skills and schemas. The format has no such key: a file cannot give itself access.
	Roots []string `json:"-"`

	path string // of the file
	tree *tree
}

// Path is the path of the file.
func (f *File) Path() string { return f.path }

// Dir is the folder of the file, to which its paths are relative.
func (f *File) Dir() string { return filepath.Dir(f.path) }

// System changes the system prompt of the agent.
type System struct {
	Append  string `json:"append"`
	Replace string `json:"replace"`
}

// A Section is one of [prompt.Section].
type Section struct {
	Key        string                     `json:"key"`
	Title      string                     `json:"title"`
	Text       string                     `json:"text"`
	Summary    string                     `json:"summary"`
	Visibility prompt.Visibility          `json:"visibility"`
	When       map[string]json.RawMessage `json:"when"`
	Skills     []string                   `json:"skills"`
	Children   []Section                  `json:"children"`
}

// Output is the form of the answer. The zero value is plain text.
type Output struct {
	Schema json.RawMessage `json:"schema"`
	File   string          `json:"file"`
}

// UnmarshalJSON also takes the word "text".
func (o *Output) UnmarshalJSON(raw []byte) error {
	if string(raw) == `"text"` {
		*o = Output{}
		return nil
	}
	type plain Output
	return json.Unmarshal(raw, (*plain)(o))
}

// Tools are the tools of the agent that there are. Nil means all of them. Unknown are names that the lists and rules of the
// file may have although no tool has them.
type Tools struct {
	Allow   []string `json:"allow"`
	Deny    []string `json:"deny"`
	Unknown []string `json:"unknown"`
}

// A Server is an MCP server: a program that is started where the agent works, or one that is reached by HTTP.
type Server struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Timeout Duration          `json:"timeout"`
}

// A Policy sets which calls are allowed.
type Policy struct {
	Mode            gate.Mode           `json:"mode"`
	FileWrite       gate.Level          `json:"fileWrite"`
	ShellExecute    gate.Level          `json:"shellExecute"`
	NetworkAccess   gate.Level          `json:"networkAccess"`
	Allow           []string            `json:"allow"`
	Ask             []string            `json:"ask"`
	Deny            []string            `json:"deny"`
	ReadOnly        bool                `json:"readOnly"`
	ReadBeforeWrite bool                `json:"readBeforeWrite"`
	RequireBefore   map[string][]string `json:"requireBefore"`
}

// Limits bound a run. Zero means no limit.
type Limits struct {
	Time     Duration `json:"time"`
	Turns    int      `json:"turns"`
	USD      float64  `json:"usd"`
	Tokens   int64    `json:"tokens"`
	ToolTime Duration `json:"toolTime"`
}

// A Mount is a file or folder whose copy the agent works on.
type Mount struct {
	Path     string   `json:"path"`
	As       string   `json:"as"`
	Include  []string `json:"include"`
	Exclude  []string `json:"exclude"`
	MaxBytes *Bytes   `json:"maxBytes"`
	ReadOnly bool     `json:"readOnly"`
}

// Isolation is the isolation of the agent. A nil level means that the file names no level.
type Isolation struct {
	Level   *isolation.Level `json:"level"`
	Network Network          `json:"network"`
}

// Network is what tools may reach. The zero value is nothing.
type Network struct {
	Domains   []string `json:"domains"`
	Localhost bool     `json:"localhost"`
}

// Completion defines when the task is complete.
type Completion struct {
	Files   []string `json:"files"`
	Command []string `json:"command"`
	Rounds  int      `json:"rounds"`
}

// Feedback is a text that the agent gets while it works, with its trigger.
type Feedback struct {
	Text          string   `json:"text"`
	Severity      string   `json:"severity"`
	Deadline      Duration `json:"deadline"`
	EveryCalls    int      `json:"everyCalls"`
	Every         Duration `json:"every"`
	OnFileCreated string   `json:"onFileCreated"`
}
