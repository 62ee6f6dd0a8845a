// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
)

// provider is a FeedbackProvider made of a function.
type provider struct {
	name    string
	provide func() (session.Feedback, error)
}

func (p provider) Name() string { return p.name }
func (p provider) Provide(context.Context, *session.Session) (session.Feedback, error) {
	return p.provide()
}

// namedRule returns a rule whose provider gives its own name.
func namedRule(name string, trigger guard.FeedbackTrigger) guard.FeedbackRule {
	return guard.FeedbackRule{Provider: guard.StaticFeedback{As: name, Text: name}, Trigger: trigger}
}

func newFeedback(t testing.TB, s *session.Session, opts *guard.FeedbackOptions, rules ...guard.FeedbackRule) *guard.Feedbacker {
	t.Helper()
	f, err := guard.NewFeedback(s, opts, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// given lists who has given feedback, in order.
func given(s *session.Session) []string {
	var names []string
	for f := range session.Query[session.Feedback](s).All() {
		names = append(names, f.Provider+"@"+string(f.CallID))
	}
	return names
}

func TestFeedback_FollowsItsTrigger(t *testing.T) {
	cases := []struct {
		name    string
		trigger guard.FeedbackTrigger
		want    []int // the calls, one second apart, after which it is given
	}{
		{"every call", guard.FeedbackTrigger{EveryCalls: 1}, []int{1, 2, 3, 4, 5, 6, 7}},
		{"every third call", guard.FeedbackTrigger{EveryCalls: 3}, []int{3, 6}},
		{"every three seconds, and at the first chance", guard.FeedbackTrigger{Every: 3 * time.Second}, []int{1, 4, 7}},
		{"once, when the file is there", guard.FeedbackTrigger{OnFileCreated: "made-after-4"}, []int{5}},
		{"any condition suffices", guard.FeedbackTrigger{EveryCalls: 3, OnFileCreated: "made-after-4"}, []int{3, 5, 6}},
		// The file's own condition held together with the other at call 5: it does not hold again at 6.
		{"conditions that hold together count once", guard.FeedbackTrigger{EveryCalls: 5, OnFileCreated: "made-after-4"}, []int{5}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, s := t.TempDir(), session.New(nil)
				f := newFeedback(t, s, &guard.FeedbackOptions{Files: guard.Dir(dir)}, namedRule("x", c.trigger))
				var got []int
				for call := 1; call <= 7; call++ {
					text, err := f.AfterCall(t.Context(), "toolu")
					if err != nil {
						t.Fatal(err)
					}
					if text != "" {
						got = append(got, call)
					}
					if call == 4 {
						touch(t, filepath.Join(dir, "made-after-4"))
					}
					time.Sleep(time.Second)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("calls with feedback (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func touch(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFeedback_EveryTriggeredProviderIsRecorded(t *testing.T) {
	s := session.New(nil)
	always := guard.FeedbackTrigger{EveryCalls: 1}
	broken := provider{"broken", func() (session.Feedback, error) { return session.Feedback{}, errors.New("no idea") }}
	panics := provider{"panics", func() (session.Feedback, error) { panic("lost") }}
	silent := provider{"silent", func() (session.Feedback, error) { return session.Feedback{}, nil }}
	f := newFeedback(t, s, nil,
		guard.FeedbackRule{Provider: broken, Trigger: always}, namedRule("one", always),
		guard.FeedbackRule{Provider: panics, Trigger: always}, guard.FeedbackRule{Provider: silent, Trigger: always}, namedRule("two", always))
	text, err := f.AfterCall(t.Context(), "toolu_7")
	if want := "<feedback provider='one'>\none\n</feedback>\n\n<feedback provider='two'>\ntwo\n</feedback>"; text != want {
		t.Errorf("the agent receives\n%s\nwant\n%s", text, want)
	}
	for _, want := range []string{`"broken": no idea`, `"panics": panic: lost`} {
		if err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("the error is %v, want it to have %s", err, want)
		}
	}
	if want := []string{"one@toolu_7", "two@toolu_7"}; !slices.Equal(given(s), want) {
		t.Errorf("the session has %v, want %v", given(s), want)
	}
}

func TestFeedback_SurvivesARollbackOfTheCall(t *testing.T) {
	s := session.New(nil)
	f := newFeedback(t, s, nil, namedRule("x", guard.FeedbackTrigger{EveryCalls: 1}))
	ctx, tx := s.Begin(t.Context(), "toolu_1")
	if _, err := f.AfterCall(ctx, "toolu_1"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback("it failed"); err != nil {
		t.Fatal(err)
	}
	if got := given(s); len(got) != 1 {
		t.Errorf("the session has %v, want what the agent received", got)
	}
}

func TestFeedback_InvalidRulesAreErrors(t *testing.T) {
	cases := []struct {
		name  string
		rules []guard.FeedbackRule
		want  string
	}{
		{"no provider", []guard.FeedbackRule{{}}, "no provider"},
		{"no trigger", []guard.FeedbackRule{namedRule("x", guard.FeedbackTrigger{})}, "would never be given"},
		{"negative", []guard.FeedbackRule{namedRule("x", guard.FeedbackTrigger{EveryCalls: -1})}, "negative"},
		{"nowhere to look", []guard.FeedbackRule{namedRule("x", guard.FeedbackTrigger{OnFileCreated: "f"})}, "set FeedbackOptions.Files"},
		{"one name twice", []guard.FeedbackRule{namedRule("x", guard.FeedbackTrigger{EveryCalls: 1}), namedRule("x", guard.FeedbackTrigger{EveryCalls: 2})}, `called "x"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, err := guard.NewFeedback(session.New(nil), nil, c.rules...)
			if f != nil || err == nil || !strings.Contains(advice.Text(err), c.want) {
				t.Errorf("it made %v with the error %v, want none and %q", f, err, c.want)
			}
		})
	}
}

// slowFiles answers when the test sends the answer.
type slowFiles chan bool

func (f slowFiles) Exists(context.Context, string) (bool, error) { return <-f, nil }

func TestFeedback_FileCheckDoesNotBlockOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, files := session.New(nil), make(slowFiles)
		f := newFeedback(t, s, &guard.FeedbackOptions{Files: files}, namedRule("file", guard.FeedbackTrigger{OnFileCreated: "x"}))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := f.AfterCall(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // both look
		files <- true
		files <- true
		wg.Wait()
		if got := given(s); len(got) != 1 {
			t.Errorf("the session has %v, want it once", got)
		}
	})
}

func TestFeedback_EveryCallCountsOnce(t *testing.T) {
	s := session.New(nil)
	f := newFeedback(t, s, nil, namedRule("x", guard.FeedbackTrigger{EveryCalls: 10}))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if _, err := f.AfterCall(t.Context(), ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := len(given(s)); got != 80 {
		t.Errorf("feedback was given %d times over 800 calls, want 80", got)
	}
}

func TestDeadlineFeedback_ReportsTheTimeLeft(t *testing.T) {
	cases := []struct {
		name     string
		deadline time.Duration
		low      time.Duration
		want     string
		severity string
	}{
		{"plenty", 10 * time.Minute, 0, "10m0s are left for this task.", guard.SeverityInfo},
		{"little", 2 * time.Minute, 0, "Only 2m0s are left for this task.", guard.SeverityWarning},
		{"the caller sets what is little", 10 * time.Minute, time.Hour, "Only 10m0s are left for this task.", guard.SeverityWarning},
		{"none", time.Nanosecond, 0, "The time for this task is over.", guard.SeverityWarning},
		{"no deadline gives nothing", 0, 0, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := guard.DeadlineFeedback{Low: c.low}
				if c.deadline != 0 {
					p.Deadline = guard.FromNow(c.deadline)
				}
				time.Sleep(time.Nanosecond)
				got, err := p.Provide(t.Context(), nil)
				if err != nil || got.Summary != c.want || got.Severity != c.severity {
					t.Errorf("feedback is %q, %q, %v; want %q, %q", got.Summary, got.Severity, err, c.want, c.severity)
				}
			})
		})
	}
}

func TestFeedback_TextForTheModel(t *testing.T) {
	got := guard.RenderFeedback(session.Feedback{
		Provider: "Joe's <linter>", Summary: "Two files do not compile.",
		Observations: []string{"a.go:3: missing return", "b.go:7: unused x"}, Suggestions: []string{"Run go vet."},
	})
	want := `<feedback provider='Joe&#39;s &lt;linter&gt;'>
Two files do not compile.

- a.go:3: missing return
- b.go:7: unused x

-> Run go vet.
</feedback>`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func ExampleNewFeedback() {
	s := session.New(nil)
	reminder := guard.StaticFeedback{As: "Scope", Text: "Change nothing outside of src."}
	f, err := guard.NewFeedback(s, nil, guard.FeedbackRule{Provider: reminder, Trigger: guard.FeedbackTrigger{EveryCalls: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []string{"toolu_1", "toolu_2"} {
		text, _ := f.AfterCall(context.Background(), event.CallID(call))
		fmt.Printf("after %s: %q\n", call, text)
	}
	// Output:
	// after toolu_1: ""
	// after toolu_2: "<feedback provider='Scope'>\nChange nothing outside of src.\n</feedback>"
}

// What a call costs must not depend on how many there were.
func BenchmarkFeedbackAfterCalls(b *testing.B) {
	for _, before := range []int{100, 5000} {
		b.Run(fmt.Sprint(before), func(b *testing.B) {
			s := session.New(nil)
			never := guard.FeedbackTrigger{EveryCalls: 1 << 40}
			f := newFeedback(b, s, nil, namedRule("a", never), namedRule("b", never), namedRule("c", never))
			for range before {
				_, _ = f.AfterCall(b.Context(), "toolu")
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = f.AfterCall(b.Context(), "toolu")
			}
		})
	}
}
