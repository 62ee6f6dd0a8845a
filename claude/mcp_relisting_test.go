// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// deafBridge is a client that lists tools when the test does.
func deafBridge(t testing.TB, s *ToolServer) *mcpBridge {
	b := newMCPBridge(t, map[string]*MCPInProcess{"s": s.Server()})
	b.deaf = true
	return b
}

func text(name string) Tool {
	return MustTool(name, "", func(context.Context, struct{}) (ToolResult, error) { return TextResult(name), nil })
}

// adding adds a tool on a goroutine of its own.
func adding(t testing.TB, s *ToolServer, name string) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Add(text(name)); err != nil {
			t.Errorf("adding %s: %v", name, err)
		}
	}()
	synctest.Wait()
	return ended
}

func isClosed(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestToolServer_ChangeWaitsForEveryListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustToolServer(t)
		one, two := deafBridge(t, s), deafBridge(t, s)
		early := two.mux.begin(t.Context(), "s", json.RawMessage(listTools))
		early.run()
		done := adding(t, s, "fresh")
		one.ask("s", listTools)
		one.ask("s", listTools)
		early.answered()
		if isClosed(done) {
			t.Fatal("it did not wait for the second client, whose listing was made before the change")
		}
		late := two.mux.begin(t.Context(), "s", json.RawMessage(listTools))
		if got := string(late.run()); !strings.Contains(got, "fresh") {
			t.Errorf("the listing is %s, want it to have the new tool", got)
		}
		if isClosed(done) {
			t.Fatal("it did not wait until the listing was on its way")
		}
		if late.answered(); !isClosed(done) {
			t.Error("it still waits although both have listed")
		}
	})
}

// The oldest CLI acknowledges a change and does nothing.
func TestToolServer_ClientThatNeverListsDelaysOneChangeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustToolServer(t)
		b := deafBridge(t, s)
		took := func(name string) time.Duration {
			begun := time.Now()
			<-adding(t, s, name)
			return time.Since(begun)
		}
		if first, second := took("a"), took("b"); first != relistTimeout || second != 0 {
			t.Errorf("the changes took %s and %s, want %s and nothing", first, second, relistTimeout)
		}
		if s.Listed() {
			t.Error("the client is reported to have listed the tools")
		}
		b.ask("s", listTools) // it listens again
		if !s.Listed() {
			t.Error("the client is reported not to have listed the tools")
		}
		if third := took("c"); third != relistTimeout {
			t.Errorf("after a listing a change took %s, want %s", third, relistTimeout)
		}
	})
}

// Handlers change the tools of their own server, at the same time, while the client that called them
// lists them.
func TestToolServer_HandlersMayChangeTheirOwnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *ToolServer
		grow := MustTool("grow", "", func(_ context.Context, in struct{ Name string }) (ToolResult, error) {
			return TextResult("grown"), s.Add(text(in.Name))
		})
		s = mustToolServer(t, grow)
		b := deafBridge(t, s)
		var calls sync.WaitGroup
		for _, name := range []string{"left", "right"} {
			calls.Go(func() {
				if got := b.ask("s", rpcCall(`"`+name+`"`, "grow", `{"Name":"`+name+`"}`)); !strings.Contains(got, "grown") {
					t.Errorf("the call gave %s", got)
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		if got := b.ask("s", listTools); !strings.Contains(got, "left") || !strings.Contains(got, "right") {
			t.Errorf("the listing is %s, want both new tools", got)
		}
		if calls.Wait(); time.Since(begun) != 0 {
			t.Error("one listing that has both tools did not do for both changes")
		}
	})
}

func TestToolServer_LeavingClientEndsTheWaitForItsListing(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, *mcpBridge){
		"it closes": func(t *testing.T, b *mcpBridge) {
			if err := b.mux.close(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"the server is taken from it": func(_ *testing.T, b *mcpBridge) { b.mux.remove("s") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *ToolServer
				s = mustToolServer(t, MustTool("grow", "", func(context.Context, struct{}) (ToolResult, error) {
					return TextResult("grown"), s.Add(text("fresh"))
				}))
				b := deafBridge(t, s)
				begun := time.Now()
				go b.ask("s", rpcCall("1", "grow", "{}"))
				synctest.Wait()
				leave(t, b)
				synctest.Wait()
				if len(b.mux.calls) != 0 || time.Since(begun) != 0 {
					t.Errorf("%d calls still run after %s, want none at once", len(b.mux.calls), time.Since(begun))
				}
			})
		})
	}
}

// A client may close while it is notified.
func TestToolServer_ClosingClientIsNotNotified(t *testing.T) {
	s := mustToolServer(t)
	mux := newMCPMux(map[string]*MCPInProcess{"s": s.Server()}, nil)
	mux.attach(func(ctx context.Context, _ string, _ json.RawMessage) error {
		_ = mux.close(ctx)
		return ErrClosed
	})
	if err := s.Add(text("fresh")); err != nil {
		t.Errorf("the change failed: %v", err)
	}
}
