// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
)

var errAdapterClosed = advice.Wrap(errors.New("claudecode: the adapter is closed"), "make another one with New")

// waiting are runs that have started and wait for their request.
type waiting struct {
	mu     sync.Mutex
	closed bool
	runs   []*run
	left   error // why the cell of the last such run could not be removed
}

// Warm starts a CLI in its cell, which waits for a request: the next Run or Open with the same one begins with
// it, many times faster than with another. It is used once; each call prepares one more. Until then it keeps
// some 150 MB of memory. [Adapter.Close] ends those that were not used.
//
// A request is the same if all its fields are but Prompt and RunID: what they point to is the same thing, not
// an equal one, and there is no function among them. So a CLI only serves the caller it was
// prepared for. A Runner makes a Host of its own for requests with Permissions: such a run never uses a warm CLI.
// A warm CLI has read the environment, and opened the workspace, when Warm was called. A conversation that is
// resumed cannot be prepared, since it may go on elsewhere until then.
func (a *Adapter) Warm(ctx context.Context, req agent.Request) error {
	req = frozen(req)
	if !same(reflect.ValueOf(req), reflect.ValueOf(req)) {
		return advice.Wrap(errors.New("claudecode: Warm: request is not comparable"), "remove Transcript, make Host a pointer")
	}
	if req.Resume != "" || a.base.Continue || a.base.Resume != "" && !req.Fresh {
		return advice.Wrap(refusal("Resume", "a conversation that goes on cannot be prepared"), "open it when it shall go on")
	}
	if err := a.waiting.open(); err != nil {
		return err
	}
	r, err := a.launch(ctx, req)
	if err != nil {
		return err
	}
	err = r.exercise(ctx)
	if err == nil {
		err = a.waiting.put(r)
	}
	if err != nil {
		_ = r.Close() // the first error is more useful
	}
	return err
}

// WarmUp implements [agent.Warmer]. It excludes prompts, and does nothing after the first
// prompt: later requests of the agent, also in the background, are meant for the model.
func (r *run) WarmUp(ctx context.Context) error {
	if err := r.occupy(); err != nil {
		return err
	}
	defer r.busy.Unlock()
	if r.init != nil || r.pending {
		return nil
	}
	return r.exercise(ctx)
}

// exerciseTime bounds an exercise, which takes some 100 milliseconds.
const exerciseTime = 10 * time.Second

// exercise has the CLI do once what it does before and while it asks the model, which is slow the first time. It is asked
// beside the conversation, which stays empty, and does not reach the model. CLIs that cannot do it are slower.
func (r *run) exercise(ctx context.Context) error {
	if r.cell == nil {
		return nil
	}
	end, ok := r.cell.WarmUp()
	defer end()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, exerciseTime)
	defer cancel()
	client := r.conversation.client.Load()
	_, err := client.ContextUsage(ctx, "")
	for range 2 {
		if !refusedOnly(err) {
			break
		}
		_, err = client.Request(ctx, "side_question", map[string]string{"question": "Are you there?"})
	}
	if !refusedOnly(err) {
		return fmt.Errorf("claudecode: the CLI does not get ready: %w", err)
	}
	return nil
}

// refusedOnly reports whether a request did nothing worse than not to be known to the CLI.
func refusedOnly(err error) bool {
	return err == nil || has[*claude.ControlError](err)
}

// Close ends the CLIs that wait for a request. From then on nothing can be run. It does not affect
// runs that have begun, nor the adapters that [Adapter.In] has made. It may be called twice.
//
// Its error also has the last cleanup that failed after a [Adapter.Run], whose done event came before.
func (a *Adapter) Close() error {
	runs, left := a.waiting.close()
	errs := []error{left}
	for _, r := range runs {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// open is an error after the end.
func (w *waiting) open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errAdapterClosed
	}
	return nil
}

func (w *waiting) put(r *run) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errAdapterClosed
	}
	w.runs = append(w.runs, r)
	return nil
}

// failed keeps why the cell of a run could not be removed.
func (w *waiting) failed(cleanup error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = cleanup
}

func (w *waiting) close() (runs []*run, left error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs, left = w.runs, w.left
	w.closed, w.runs, w.left = true, nil, nil
	return runs, left
}

// take returns a run that was prepared for a request, or nil, and those that have ended while they waited.
func (w *waiting) take(ctx context.Context, req agent.Request) (found *run, ended []*run, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, nil, errAdapterClosed
	}
	w.runs = slices.DeleteFunc(w.runs, func(r *run) bool {
		switch {
		case !r.isReady():
			ended = append(ended, r)
		case found == nil && sameRequest(r.asked, req) && r.calls.Serves(ctx):
			found = r
		default:
			return false
		}
		return true
	})
	return found, ended, nil
}

// isReady reports whether the CLI of a run without a prompt is still there.
func (r *run) isReady() bool {
	r.busy.Lock()
	defer r.busy.Unlock()
	return r.settle(context.Background(), 0)
}

// sameRequest reports whether two requests differ in nothing that matters to a CLI that has started.
func sameRequest(a, b agent.Request) bool {
	a.Prompt, a.RunID = b.Prompt, b.RunID
	return same(reflect.ValueOf(a), reflect.ValueOf(b))
}

// same is equality that follows no pointer. Functions are never the same: they are not comparable.
func same(a, b reflect.Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case reflect.Func:
		return a.IsNil() && b.IsNil()
	case reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return a.Elem().Kind() == reflect.Pointer && a.Elem().Type() == b.Elem().Type() && same(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			if other := b.MapIndex(key); !other.IsValid() || !same(a.MapIndex(key), other) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

// frozen is the request with lists and maps of its own.
func frozen(req agent.Request) agent.Request {
	return owned(reflect.ValueOf(req)).Interface().(agent.Request)
}

func owned(v reflect.Value) reflect.Value {
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil() {
		return v
	}
	switch v.Kind() {
	case reflect.Slice:
		own := reflect.MakeSlice(v.Type(), 0, v.Len())
		for i := range v.Len() {
			own = reflect.Append(own, owned(v.Index(i)))
		}
		return own
	case reflect.Map:
		own := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			own.SetMapIndex(key, owned(v.MapIndex(key)))
		}
		return own
	case reflect.Struct:
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		for i := range v.NumField() {
			if own.Field(i).CanSet() { // unexported fields are not changed
				own.Field(i).Set(owned(v.Field(i)))
			}
		}
		return own
	}
	return v
}
