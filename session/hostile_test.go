// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// open opens what a disk has, as a program does that is started again.
func openDisk(t testing.TB, d *disk) *session.Session {
	t.Helper()
	s, err := session.Open(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpen_EventThatDoesNotFitItsKindHidesNoOther(t *testing.T) {
	for _, raw := range []event.Extension{
		{Kind: event.KindText, Data: json.RawMessage(`7`)},
		{Kind: event.KindInit, Data: json.RawMessage(`[]`)},
		{Kind: "tool:invoked", Data: json.RawMessage(`{"durationMs":1e300}`)},
	} {
		d := newDisk()
		s := openDisk(t, d)
		sent := event.Event{Payload: raw, AgentID: "a1", Turn: 3, Time: time.UnixMilli(7)}
		dispatch(t, t.Context(), s, sent, added{1})
		d.forget = true
		s = openDisk(t, d)
		if n := session.Query[added](s).Len(); n != 1 {
			t.Errorf("%s: %d events of another type are left of 1", raw.Kind, n)
		}
		sent.Kind = raw.Kind
		got := slices.Collect(s.Events())
		if len(got) == 0 || !cmp.Equal(sent, got[0]) {
			t.Errorf("%s: got %+v, want %+v first", raw.Kind, got, sent)
		}
	}
}

func TestDispatch_RawEventOfAKnownKindIsDecodedAtOnce(t *testing.T) {
	d := newDisk()
	s := openDisk(t, d)
	dispatch(t, t.Context(), s, event.Extension{Kind: event.KindText, Data: json.RawMessage(`{"text":"hi"}`)})
	before := slices.Collect(session.Query[event.Text](s).All())
	d.forget = true
	after := slices.Collect(session.Query[event.Text](openDisk(t, d)).All())
	if !cmp.Equal(before, after) || len(after) != 1 {
		t.Errorf("the slice was %v and is %v, want one text", before, after)
	}
}

type price struct{ Amount big.Int } // whose JSON is made by a method of the pointer

type namedPrice price

func (namedPrice) EventKind() event.Kind { return "test:price" }

func TestCodec_PointerMethodsRoundTrip(t *testing.T) {
	d := newDisk()
	s := openDisk(t, d)
	dispatch(t, t.Context(), s, &price{*big.NewInt(42)}, &namedPrice{*big.NewInt(43)})
	d.forget = true
	s = openDisk(t, d)
	plain, _ := session.Query[price](s).Latest()
	named, _ := session.Query[namedPrice](s).Latest()
	if plain.Amount.Int64() != 42 || named.Amount.Int64() != 43 {
		t.Errorf("got %v and %v, want 42 and 43", &plain.Amount, &named.Amount)
	}
}

// A trap cannot be written or read, as its text says.
type trap struct{ Text string }

func (tr trap) MarshalJSON() ([]byte, error) {
	if tr.Text == "write" {
		panic("no JSON")
	}
	return json.Marshal(tr.Text)
}

func (tr *trap) UnmarshalJSON([]byte) error { panic("not read") }

func TestDispatch_PanicInMarshalJSONIsAnError(t *testing.T) {
	d := newDisk()
	s := openDisk(t, d)
	if _, err := s.Dispatch(t.Context(), trap{"write"}); err == nil || !strings.Contains(advice.Text(err), "no JSON") || s.Last() != 0 {
		t.Errorf("got %v in a log of %d, want the panic and no entry", err, s.Last())
	}
	dispatch(t, t.Context(), s, trap{"read"})
	d.forget = true
	s = openDisk(t, d)
	dispatch(t, t.Context(), s, trap{"again"})
	if got := slices.Collect(session.Query[trap](s).All()); !cmp.Equal(got, []trap{{"again"}}) {
		t.Errorf("got %v, want what could be had", got)
	}
}

func TestCheckpoint_LeavesOutStateThatPanics(t *testing.T) {
	for _, text := range []string{"write", "read"} {
		d := newDisk()
		for range 2 {
			s := openDisk(t, d)
			session.Append(s, func(added) trap { return trap{text} })
			dispatch(t, t.Context(), s, added{1})
			if got, want := int64(session.Query[trap](s).Len()), s.Last(); got != want {
				t.Errorf("%s: %d values of %d", text, got, want)
			}
			if err := s.Close(); err != nil || !d.shut.Load() {
				t.Errorf("%s: Close = %v, and the store is closed: %t", text, err, d.shut.Load())
			}
		}
	}
}

type rawState struct{ Data json.RawMessage }

func TestCheckpoint_NeverReplacesStateThatJSONChanges(t *testing.T) {
	d := newDisk()
	define := func(s *session.Session) {
		session.Append(s, func(e remark) string { return e.Text[:1] })
		session.Append(s, func(remark) rawState { return rawState{} })
	}
	for range 2 {
		s := openDisk(t, d)
		define(s)
		if s.Last() == 0 {
			dispatch(t, t.Context(), s, remark{"é"})
		}
		if got, _ := session.Query[string](s).Latest(); got != "é"[:1] {
			t.Errorf("got %q, want the first byte of é", got)
		}
		if got, _ := session.Query[rawState](s).Latest(); got.Data != nil {
			t.Errorf("got %q, want nil", got.Data)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAfter_NegativePositionWaitsForTheFirstEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var got []int64
		go func() {
			for entry := range s.After(ctx, -1) {
				got = append(got, entry.Pos)
			}
		}()
		synctest.Wait() // it never comes back if the reader asks again and again
		dispatch(t, t.Context(), s, added{1})
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !cmp.Equal(got, []int64{1}) {
			t.Errorf("got the entries %v, want 1", got)
		}
	})
}

// A refusing store has no room for checkpoints.
type refusing struct {
	*session.MemoryStore
	tries int
}

func (r *refusing) SaveCheckpoint(session.Checkpoint) error {
	r.tries++
	return errFull
}

func TestCheckpoint_FailedSaveIsNotRetriedOnEachDispatch(t *testing.T) {
	store := &refusing{MemoryStore: session.NewMemoryStore()}
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 4096 + 100 {
		dispatch(t, t.Context(), s, added{1})
	}
	if store.tries != 1 {
		t.Errorf("%d tries, want 1", store.tries)
	}
	if err := s.Close(); err != nil || store.tries != 2 {
		t.Errorf("Close = %v after %d tries, want one more", err, store.tries)
	}
}

func TestCheckpoint_WithImpossibleEntriesIsIgnored(t *testing.T) {
	for _, live := range []string{`[[1,9000000000000000000]]`, `[[0,1]]`, `[[2,2],[1,1]]`, `[[2,1]]`} {
		d := newDisk()
		s := openDisk(t, d)
		dispatch(t, t.Context(), s, added{1}, added{2})
		err := d.SaveCheckpoint(session.Checkpoint{Pos: 2, Data: fmt.Appendf(nil, `{"pos":2,"nextTx":0,"live":%s,"slices":{}}`, live)})
		if err != nil {
			t.Fatal(err)
		}
		if n := session.Query[added](openDisk(t, d)).Len(); n != 2 {
			t.Errorf("%s: %d values, want 2", live, n)
		}
	}
}

func TestOpenFile_UnknownSyncPolicyIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if _, err := session.OpenFile(path, &session.FileOptions{Sync: 7}); err == nil || !strings.Contains(advice.Text(err), "SyncPolicy(7)") {
		t.Errorf("got %v, want an error: nothing would ever be forced to the disk", err)
	}
}

type kindsSeen []string

func TestKind_LateRegistrationDecodesEarlierEvents(t *testing.T) {
	d := newDisk()
	dispatch(t, t.Context(), openDisk(t, d), added{1}, added{2})
	d.forget = true
	var got [3]kindsSeen
	for i, known := range []func(*session.Session){
		func(s *session.Session) { session.Query[added](s) },
		func(s *session.Session) { dispatch(t, t.Context(), s, added{3}) },
		func(s *session.Session) { session.Append(s, func(e added) int { return e.N }) },
	} {
		s := openDisk(t, d)
		session.Reduce(s, func(seen kindsSeen, e session.Entry) kindsSeen {
			return append(slices.Clip(seen), fmt.Sprintf("%T", e.Event.Payload))
		})
		raw, _ := session.Query[kindsSeen](s).Latest()
		if want := (kindsSeen{"event.Extension", "event.Extension"}); i == 0 && !cmp.Equal(raw, want) {
			t.Errorf("before the type is known: %v, want %v", raw, want)
		}
		known(s)
		got[i], _ = session.Query[kindsSeen](s).Latest()
		if slices.Contains(got[i], "event.Extension") || len(got[i]) < 2 {
			t.Errorf("case %d: %v, want no event that is unknown any more", i, got[i])
		}
	}
}

func TestOpen_RestoreToANegativePositionIsDamage(t *testing.T) {
	d := newDisk()
	dispatch(t, t.Context(), openDisk(t, d), added{1})
	line := `{"pos":2,"event":{"type":"session:restored","timestamp":1,"payload":{"to":-1}}}`
	if err := d.Append([]session.Record{{Pos: 2, Data: json.RawMessage(line)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Open(d, nil); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}
