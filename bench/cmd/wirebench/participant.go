// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"

	"github.com/drover-agents/drover/bench/internal/rig"
)

// A participant is one client and what was measured of it.
type participant struct {
	name    string
	command []string
	// scenarios are those that apply; nil means all.
	scenarios []rig.Scenario
	// lazy clients do not look at text.
	lazy bool
	// goPeer and npmPeer name the folder under bench/peers, for those that are not ours.
	goPeer, npmPeer string
	// absent is why the client could not be built.
	absent error

	results map[rig.Scenario]*result
}

// Names of the participants that targets speak of.
const (
	droverTyped = "Drover typed"
	droverLazy  = "Drover lazy"
	typeScript  = "TypeScript 0.3.325"
)

func participants(w *workshop) []*participant {
	bin := func(name string) string { return filepath.Join(w.dir, name) }
	streams := []rig.Scenario{rig.Text, rig.Mixed, rig.Big}
	all := []*participant{
		{name: droverTyped, command: []string{bin("droverclient"), "typed"}},
		{name: droverLazy, command: []string{bin("droverclient"), "lazy"}, scenarios: streams, lazy: true},
		{name: typeScript, command: []string{"node", filepath.Join(w.root, "bench", "peers", "typescript", "client.mjs")}, npmPeer: "typescript"},
		{name: "severity1 0.6.22", command: []string{bin("severity1")}, goPeer: "severity1"},
		{name: "roasbeef 1.1.0", command: []string{bin("roasbeef")}, goPeer: "roasbeef"},
		{name: "limit: encoding/json", command: []string{bin("limitclient"), "typed"}},
		{name: "limit: peek", command: []string{bin("limitclient"), "peek"}, scenarios: streams, lazy: true},
	}
	for _, p := range all {
		p.results = map[rig.Scenario]*result{}
	}
	return all
}

func (p *participant) takes(s rig.Scenario) bool {
	return p.scenarios == nil || slices.Contains(p.scenarios, s)
}
