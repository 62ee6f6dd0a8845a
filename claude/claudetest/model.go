// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/script"
)

// FakeKey is the API key of [Model.Env]. Only a scripted model accepts it.
const FakeKey = "fake-key-of-a-scripted-model"

// A Model is a scripted model for one test. Beside its own methods it has those of
// [script.Server]: Requests, LastRequest, ToolResult, SawText, WaitRequests and so on.
type Model struct {
	*script.Server
	t testing.TB
}

// NewModel serves the turns on loopback until the end of the test. The test fails if a request
// found no turn. For a script with further settings, see [NewScriptedModel].
func NewModel(t testing.TB, turns ...script.Turn) *Model {
	t.Helper()
	return NewScriptedModel(t, script.New(turns...))
}

// NewScriptedModel serves a script on loopback until the end of the test. The test fails if a
// request found no turn or, under [script.Script.Strict], broke the rules of the API.
func NewScriptedModel(t testing.TB, s script.Script) *Model {
	t.Helper()
	server, err := script.Start(s)
	if err != nil {
		t.Fatalf("claudetest: the scripted model cannot start: %s", advice.Text(err))
	}
	m := &Model{Server: server, t: t}
	t.Cleanup(m.finish)
	return m
}

// LoadModel serves a YAML script on loopback until the end of the test.
func LoadModel(t testing.TB, path string) *Model {
	t.Helper()
	s, err := script.Load(path)
	if err != nil {
		t.Fatalf("claudetest: the scripted model cannot be loaded: %s", advice.Text(err))
	}
	return NewScriptedModel(t, s)
}

// RequireAllUsed makes the test fail at its end if turns were left. It returns m.
func (m *Model) RequireAllUsed() *Model {
	m.t.Helper()
	m.t.Cleanup(func() {
		if unused := m.Unused(); len(unused) > 0 {
			m.t.Errorf("claudetest: turns of the scripted model were not used: %s", strings.Join(unused, "; "))
		}
	})
	return m
}

// BaseURL is the address to give a client as ANTHROPIC_BASE_URL.
func (m *Model) BaseURL() string { return m.URL() }

// Env are the variables that make a client send its requests to m.
func (m *Model) Env() map[string]string {
	return map[string]string{"ANTHROPIC_BASE_URL": m.BaseURL(), "ANTHROPIC_API_KEY": FakeKey}
}

func (m *Model) finish() {
	m.t.Helper()
	if err := m.Close(); err != nil {
		m.t.Errorf("claudetest: closing the scripted model: %v", err)
	}
	for _, f := range m.Failures() {
		m.t.Errorf("claudetest: %v", f)
	}
}
