// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
)

// A pagedServer answers with what it gets, and has a manifest unless its tools are many pages.
type pagedServer struct{ pages int }

func (pagedServer) Open(func(context.Context, json.RawMessage) error) (handle func(context.Context, json.RawMessage) (json.RawMessage, error), end func()) {
	return func(_ context.Context, msg json.RawMessage) (json.RawMessage, error) { return msg, nil }, func() {}
}

func (s pagedServer) Manifest() (initialize, tools json.RawMessage, err error) {
	if s.pages > 1 {
		return nil, nil, nil
	}
	return json.RawMessage(`{"a":1}`), json.RawMessage(`{"b":2}`), nil
}

func TestMountMCP_EntryHasTheOptions(t *testing.T) {
	policies := []claude.MCPToolPolicy{{Name: "greet"}}
	entry := claudecode.MountMCP(pagedServer{1}, &claudecode.MountOptions{Timeout: time.Minute, Tools: policies, Manifest: true})
	if entry.Timeout != time.Minute || len(entry.Tools) != 1 {
		t.Errorf("the entry is %+v", entry)
	}
	if m, err := entry.Manifest(); err != nil || string(m.InitializeResult) != `{"a":1}` || string(m.ToolsListResult) != `{"b":2}` {
		t.Errorf("the manifest is %+v, %v", m, err)
	}
	if got, err := entry.Session(nil).Handle(t.Context(), json.RawMessage(`1`)); err != nil || string(got) != `1` {
		t.Errorf("a message is answered with %s, %v", got, err)
	}
	if m, err := claudecode.MountMCP(pagedServer{2}, &claudecode.MountOptions{Manifest: true}).Manifest(); m != nil || err != nil {
		t.Errorf("the manifest of many pages is %+v, %v; want that the CLI asks", m, err)
	}
	if claudecode.MountMCP(pagedServer{1}, nil).Manifest != nil {
		t.Error("a manifest without the option")
	}
}
