// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"sync"

	"github.com/drover-agents/drover/tool"
)

// An inputReading is what policies have read of a call and its input, kept so that one policy need not read it again.
type inputReading struct {
	haveNative bool
	native     *tool.Native

	haveFields bool
	in         input

	havePaths bool
	home      string
	at        callPaths

	haveDir bool
	normal  string // Facts.Dir as rules have it

	haveScript bool
	run        script

	folding *foldBuffers
}

// foldBuffers are where paths are written in lower case.
type foldBuffers struct{ root, file [foldSize]byte }

func (r *inputReading) foldBuffers() *foldBuffers {
	if r.folding == nil {
		r.folding = new(foldBuffers)
	}
	return r.folding
}

func (c *Call) known() *inputReading {
	if c.read == nil {
		c.read = new(inputReading)
	}
	return c.read
}

// notNative is the entry of tools that are not the agent's own.
var notNative tool.Native

// native returns what the catalogue has under the name of the tool. A tool of a server may have the same name.
func (c *Call) native() *tool.Native {
	r := c.known()
	if !r.haveNative {
		r.haveNative, r.native = true, &notNative
		if n, ok := c.agent.Native(c.Tool); ok {
			r.native = n
		}
	}
	return r.native
}

// inputFields returns how the input of the call is read.
func (c *Call) inputFields() *tool.Fields {
	if n := c.native(); n != &notNative {
		return &n.Fields
	}
	return c.agent.Fields(c.Tool)
}

func (c *Call) fields() *input {
	r := c.known()
	if !r.haveFields {
		r.haveFields, r.in = true, input{}
		r.in.read(c.Input, c.inputFields())
	}
	return &r.in
}

func (c *Call) paths(f *Facts, home string) *callPaths {
	r := c.known()
	if !r.havePaths || r.home != home {
		r.havePaths, r.home, r.at = true, home, callPaths{}
		r.at.find(c, f, home)
	}
	return &r.at
}

// dir returns the working directory as rules have it.
func (c *Call) dir(f *Facts) string {
	r := c.known()
	if !r.haveDir {
		r.haveDir = true
		r.normal, _ = normalPath(f.Dir, "", isWindows(f.Dir))
	}
	return r.normal
}

// workspace returns the directory to which writable paths belong, as rules have it.
func (c *Call) workspace(f *Facts) string {
	if f.Workspace == "" {
		return c.dir(f)
	}
	normal, _ := normalPath(f.Workspace, "", isWindows(f.Workspace))
	return normal
}

func (c *Call) script() *script {
	r := c.known()
	if !r.haveScript {
		r.haveScript, r.run = true, readScript(c)
	}
	return &r.run
}

// A judgement is a call and the state of its decision. Policies get pointers into it, so it is on the
// heap. It is pooled, so that a decision allocates nothing.
type judgement struct {
	call      Call
	facts     Facts
	otherwise *Otherwise // the rule that holds if all policies abstain
	knownOnly bool       // and the tool is in the catalogue
	reading   inputReading
	folding   foldBuffers
}

var judgements = sync.Pool{New: func() any { return new(judgement) }}

func (j *judgement) open(c *Call, f *Facts) {
	j.call = *c
	j.facts = *f
	j.call.read, j.reading.folding = &j.reading, &j.folding
}

// close forgets the call, but for the buffers: they hold no references.
func (j *judgement) close() {
	j.call = Call{} // one by one: an assignment of several copies each of them twice
	j.facts = Facts{}
	j.reading = inputReading{}
	j.otherwise, j.knownOnly = nil, false
	judgements.Put(j)
}

// rewrite gives the call another input. What was read of the old one is forgotten.
func (c *Call) rewrite(input []byte) {
	c.Input = input
	r := c.known()
	*r = inputReading{folding: r.folding}
}
