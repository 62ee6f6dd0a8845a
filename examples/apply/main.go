// SPDX-License-Identifier: Apache-2.0

// Command apply lets an agent work on a few notes with tools of its own. It changes nothing until the user sets --apply, and
// deletes nothing until the user sets --dangerous. The agent's own permissions do not matter.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/tool"
)

func main() {
	apply := flag.Bool("apply", false, "allow tools that change notes")
	dangerous := flag.Bool("dangerous", false, "allow tools that delete notes")
	flag.Parse()
	store := &notes{text: map[string]string{"milk": "two bottles"}}
	if err := run(context.Background(), os.Stdout, &claude.Options{}, store, *apply, *dangerous); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts *claude.Options, store *notes, apply, dangerous bool) error {
	registry, err := store.tools()
	if err != nil {
		return err
	}
	server, err := claudecode.NewSDKServer(registry, nil)
	if err != nil {
		return err
	}
	defer server.Close()
	rules, err := gate.New(gate.KnowsAgent(catalogue.Tools()), gate.FromRisk(gate.RiskOptions{
		Registry:      registry,
		Server:        "notes",
		DenyMutation:  !apply,
		DenyDangerous: !dangerous,
	}))
	if err != nil {
		return err
	}
	engine := gate.NewEngine(rules, nil)
	registry.DecideBy(engine) // calls from this program obey too
	opts.MCPServers = map[string]claude.MCPServer{"notes": server.Server()}
	if err := claudecode.BindGate(opts, engine); err != nil {
		return err
	}
	cell, err := claudecell.Open(ctx, nil, opts, isolation.OpenOptions{Judged: true})
	if err != nil {
		return err
	}
	defer cell.Close()
	for m, err := range claude.Query(ctx, "Tidy up my notes.", opts) {
		if err != nil {
			return err
		}
		if text, ok := m.(*claude.AssistantMessage); ok {
			fmt.Fprintln(out, text.Text())
		}
	}
	return nil
}

// notes are what the tools work on.
type notes struct {
	mu   sync.Mutex
	text map[string]string
}

type note struct {
	Name string `json:"name" doc:"name of the note" minLength:"1"`
}

type written struct {
	note
	Text string `json:"text" doc:"the whole text of the note" maxLength:"1000"`
}

func (n *notes) tools() (*tool.Registry, error) {
	read, err := tool.New("read-note", "Reads a note.", func(_ context.Context, p note) (string, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		text, ok := n.text[p.Name]
		if !ok {
			return "", tool.Errorf(tool.CategoryNotFound, "There is no note %q.", p.Name)
		}
		return text, nil
	}, tool.ReadOnly, tool.WithAlwaysLoad())
	if err != nil {
		return nil, err
	}
	write, err := tool.New("write-note", "Writes a note.", func(_ context.Context, p written) (string, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.text[p.Name] = p.Text
		return "written", nil
	}, tool.Mutates, tool.WithAlwaysLoad())
	if err != nil {
		return nil, err
	}
	remove, err := tool.New("delete-note", "Deletes a note.", func(_ context.Context, p note) (string, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.text, p.Name)
		return "deleted", nil
	}, tool.Mutates, tool.Dangerous, tool.WithAlwaysLoad())
	if err != nil {
		return nil, err
	}
	return tool.NewRegistry(nil, read, write, remove)
}
