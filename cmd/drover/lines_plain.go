// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/drover-agents/drover/event"
)

// plain writes lines for people, for pipes and files.
type plain struct {
	out  io.Writer
	opts displayOptions
}

func newPlain(out io.Writer, opts displayOptions) *plain { return &plain{out, opts} }

func (p *plain) show(e event.Event) { fmt.Fprintln(p.out, e.Kind) }

func (p *plain) stopping() { fmt.Fprintln(p.out, "stopping ...") }

func (*plain) close() {}
