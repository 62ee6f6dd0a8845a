// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/tool"
)

// doing is a tool that does what fn does.
func doing(fn func(ctx context.Context) (tool.Result, error), opts ...tool.Option) *tool.Tool {
	return tool.Must("doing", "d", func(ctx context.Context, _ tool.None) (tool.Result, error) { return fn(ctx) }, opts...)
}

func gives(err error) func(context.Context) (tool.Result, error) {
	return func(context.Context) (tool.Result, error) { return tool.OK("unused"), err }
}

type nilSafe struct{ text string }

func (e *nilSafe) Error() string { return e.text } // panics for nil

func TestError_FailuresAreInTheResult(t *testing.T) {
	busy := &tool.Error{Code: "BUSY", Category: tool.CategoryTransient, Message: "Try again in a minute.", Retryable: true, RetryAfter: time.Minute, Details: 7, Err: io.EOF}
	type shown struct {
		Outcome   tool.Outcome
		Code      string
		Category  tool.Category
		Text      string
		Retryable bool
	}
	for _, tc := range []struct {
		name string
		fn   func(context.Context) (tool.Result, error)
		want shown
		is   error
	}{
		{"a plain error", gives(io.ErrUnexpectedEOF), shown{tool.Failed, "FAILED", "internal", "Error: unexpected EOF", false}, io.ErrUnexpectedEOF},
		{"a connection that was reset", gives(fmt.Errorf("read: %w", syscall.ECONNRESET)), shown{tool.Failed, "CONNECTION_FAILED", "transient", "Error: read: connection reset by peer", true}, syscall.ECONNRESET},
		{"a connection that was refused", gives(syscall.ECONNREFUSED), shown{tool.Failed, "CONNECTION_FAILED", "transient", "Error: connection refused", true}, syscall.ECONNREFUSED},
		{"a name server that is busy", gives(&net.DNSError{Err: "busy", Name: "x", IsTemporary: true}), shown{tool.Failed, "CONNECTION_FAILED", "transient", "Error: lookup x: busy", true}, nil},
		{"a deadline of a context of its own", gives(context.DeadlineExceeded), shown{tool.Failed, "TIMEOUT", "timeout", "The tool did not finish in time. Check what the tool did before you call it again.", true}, context.DeadlineExceeded},
		{"a deadline of a connection", gives(fmt.Errorf("read: %w", os.ErrDeadlineExceeded)), shown{tool.Failed, "TIMEOUT", "timeout", "Error: read: i/o timeout", true}, os.ErrDeadlineExceeded},
		{"a timeout of the system", gives(&net.OpError{Op: "dial", Err: syscall.ETIMEDOUT}), shown{tool.Failed, "TIMEOUT", "timeout", "Error: dial: connection timed out", true}, syscall.ETIMEDOUT},
		{"an error of ours", gives(busy), shown{tool.Failed, "BUSY", "transient", "Try again in a minute.", true}, io.EOF},
		{"a wrapped one", gives(fmt.Errorf("indexing: %w", busy)), shown{tool.Failed, "BUSY", "transient", "Try again in a minute.", true}, io.EOF},
		{"a joined one", gives(errors.Join(io.ErrClosedPipe, busy)), shown{tool.Failed, "BUSY", "transient", "Try again in a minute.", true}, io.EOF},
		{"a permission", gives(tool.Errorf(tool.CategoryPermission, "not yours")), shown{tool.Denied, "FAILED", "permission", "not yours", false}, nil},
		{"made by Errorf", gives(tool.Errorf(tool.CategoryTransient, "line: %w", io.EOF)), shown{tool.Failed, "FAILED", "transient", "line: EOF", true}, io.EOF},
		{"made by Errorf of two", gives(tool.Errorf(tool.CategoryNotFound, "%w and %w", io.EOF, io.ErrNoProgress)), shown{tool.Failed, "FAILED", "not_found", "EOF and multiple Read calls return no data or error", false}, io.ErrNoProgress},
		{"a failed result", func(context.Context) (tool.Result, error) { return tool.Fail("no"), nil }, shown{tool.Failed, "FAILED", "internal", "no", false}, nil},
		{"a result with an error alone", func(context.Context) (tool.Result, error) { return tool.Result{Err: busy}, nil }, shown{tool.Failed, "BUSY", "transient", "Try again in a minute.", true}, io.EOF},
		{"a success with an error", func(context.Context) (tool.Result, error) { return tool.Result{Outcome: tool.Success, Err: busy}, nil }, shown{tool.Failed, "BUSY", "transient", "Try again in a minute.", true}, io.EOF},
		{"a failed result without a reason", func(context.Context) (tool.Result, error) { return tool.Result{Outcome: tool.Failed}, nil }, shown{tool.Failed, "FAILED", "internal", `The call ended with "error", without a reason. Continue without its result.`, false}, nil},
		{"approval needed", func(context.Context) (tool.Result, error) {
			return tool.Result{Outcome: tool.NeedsApproval, Action: &tool.Action{Type: "approval", Message: "ask"}}, nil
		}, shown{tool.NeedsApproval, "NEEDS_APPROVAL", "permission", "ask", false}, nil},
		{"denied by the handler", func(context.Context) (tool.Result, error) {
			return tool.Result{Outcome: tool.Denied, Message: "no"}, nil
		}, shown{tool.Denied, "DENIED", "permission", "no", false}, nil},
		{"cancelled by the handler", func(context.Context) (tool.Result, error) { return tool.Result{Outcome: tool.Cancelled}, nil }, shown{tool.Cancelled, "CANCELLED", "cancelled", `The call ended with "cancelled", without a reason. Continue without its result.`, false}, nil},
		{"a panic", func(context.Context) (tool.Result, error) { panic("boom") }, shown{tool.Failed, "PANIC", "internal", "Error: the tool panicked: boom", false}, nil},
		{"a panic with an error", func(context.Context) (tool.Result, error) { panic(io.EOF) }, shown{tool.Failed, "PANIC", "internal", "Error: the tool panicked: EOF", false}, nil},
		{"a panic of the runtime", func(context.Context) (tool.Result, error) { return tool.OK([]int{}[len(busy.Code)]), nil }, shown{tool.Failed, "PANIC", "internal", "Error: the tool panicked: runtime error: index out of range [4] with length 0", false}, nil},
		{"its own timeout", gives(fmt.Errorf("get: %w", context.DeadlineExceeded)), shown{tool.Failed, "TIMEOUT", "timeout", "The tool did not finish in time. Check what the tool did before you call it again.", true}, context.DeadlineExceeded},
		{"an error that panics", gives((*nilSafe)(nil)), shown{tool.Failed, "FAILED", "internal", "Error: <nil>", false}, nil},
	} {
		for _, way := range []struct {
			name string
			ctx  func() (context.Context, context.CancelFunc)
		}{
			{"here", func() (context.Context, context.CancelFunc) { return context.Background(), func() {} }},
			{"on its own goroutine", func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }},
		} {
			t.Run(tc.name+"/"+way.name, func(t *testing.T) {
				ctx, cancel := way.ctx()
				defer cancel()
				r := doing(tc.fn).Run(ctx, tool.Call{})
				if r.Err == nil {
					t.Fatalf("got %+v, want an error", r)
				}
				got := shown{r.Outcome, r.Err.Code, r.Err.Category, r.Render(), r.Err.Retryable}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if tc.is != nil && !errors.Is(r.Err, tc.is) {
					t.Errorf("got cause %v, want %v", r.Err.Err, tc.is)
				}
			})
		}
	}
}

func TestError_TypedNilIsNotAnError(t *testing.T) {
	fn := func(context.Context) (tool.Result, error) {
		var err *tool.Error
		return tool.OK("fine"), err
	}
	bare := &tool.Tool{Name: "x", Handler: func(ctx context.Context, _ json.RawMessage) (tool.Result, error) { return fn(ctx) }}
	for _, made := range []*tool.Tool{doing(fn), bare} {
		if r := made.Run(t.Context(), tool.Call{}); !r.OK() || r.Render() != "fine" {
			t.Errorf("%s: got %q, want success", made.Name, r.Render())
		}
	}
}
