// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/session"
)

// CheckInvariants reads the logs of runs and returns what is wrong with them:
//   - each run has ended, exactly once since its last retry, and its log has nothing after the end;
//   - records are numbered without gaps, and each is from the holder of the log;
//   - no call that was recorded as finished was executed again by a later attempt;
//   - none of them counts as under way for the limits.
//
// The calls of the tests' agents are unlike each other within one attempt. Unknown counts those of unknown outcome.
func CheckInvariants(ctx context.Context, f *Fleet, ids []string) (problems []string, unknown int, err error) {
	for _, id := range ids {
		found, open, err := checkRun(ctx, f, id)
		if err != nil {
			return nil, 0, err
		}
		for _, p := range found {
			problems = append(problems, id+": "+p)
		}
		unknown += open
	}
	a, err := f.admissions(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, id := range a.Running {
		if slices.Contains(ids, id) {
			problems = append(problems, id+": it still counts as under way")
		}
	}
	return problems, unknown, nil
}

func checkRun(ctx context.Context, f *Fleet, id string) (problems []string, unknown int, err error) {
	subject := f.name + ".log." + id
	last, err := f.last(ctx, subject)
	if err != nil {
		return nil, 0, err
	}
	if last.kind() != kindEnd {
		problems = append(problems, fmt.Sprintf("its last message is %q, not the end", last.kind()))
	}
	ended, records, holder := false, int64(0), ""
	calls := map[event.CallID]string{}    // keys of calls that were allowed
	allowed := map[string]int{}           // calls by key
	finished := map[string]bool{}         // keys
	asked := map[event.CallID]callAsked{} // the last of each id
	for m, err := range f.messages(ctx, subject, 1, last.seq) {
		if err != nil {
			return nil, 0, err
		}
		if ended && m.kind() != kindRetry {
			problems = append(problems, fmt.Sprintf("message %d, a %s, is after the end", m.seq, m.kind()))
		}
		switch m.kind() {
		case kindClaim:
			holder = m.header.Get(headerHolder)
		case kindEnd:
			ended = true
		case kindRetry:
			ended = false
		case kindRecords:
			if by := m.header.Get("Test-Holder"); by != "" && by != holder {
				problems = append(problems, fmt.Sprintf("message %d is from %s, the log belongs to %s", m.seq, by, holder))
			}
			for line := range bytes.Lines(m.body) {
				records++
				var entry struct {
					Pos   int64 `json:"pos"`
					Event struct {
						Type    event.Kind      `json:"type"`
						Payload json.RawMessage `json:"payload"`
					} `json:"event"`
				}
				if err := json.Unmarshal(line, &entry); err != nil {
					return nil, 0, err
				}
				if entry.Pos != records {
					problems = append(problems, fmt.Sprintf("record %d has the number %d", records, entry.Pos))
				}
				switch entry.Event.Type {
				case callAsked{}.EventKind():
					var a callAsked
					if json.Unmarshal(entry.Event.Payload, &a) == nil {
						asked[a.ID] = a
					}
				case event.KindDecision:
					var d event.Decision
					if json.Unmarshal(entry.Event.Payload, &d) != nil || d.Verdict != event.Allow || d.Tool == "StructuredOutput" {
						continue // an answer has no effect, and may be given again
					}
					key := asked[d.CallID].Key
					if finished[key] {
						problems = append(problems, fmt.Sprintf("the call %s was finished and is executed again as %s", key, d.CallID))
					}
					calls[d.CallID] = key
					allowed[key]++
				case session.ToolInvoked{}.EventKind():
					var t session.ToolInvoked
					if json.Unmarshal(entry.Event.Payload, &t) == nil && (t.Status == event.ToolSuccess || t.Status == event.ToolError) && calls[t.CallID] != "" {
						finished[calls[t.CallID]] = true
					}
				}
			}
		}
	}
	for key := range allowed {
		if !finished[key] {
			unknown++
		}
	}
	return problems, unknown, nil
}

// Each kind of violation is found. They are written past the rules of a log.
func TestCheckInvariants_FindsPlantedViolations(t *testing.T) {
	f, err := Open(t.Context(), &Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type planted = func(l *Log, pos int64)
	write := func(kind, holder string, lines ...string) planted {
		return func(l *Log, pos int64) {
			m := newMessage(l.subject, kind, l.tail)
			m.Header.Set(headerHolder, holder)
			m.Header.Set("Test-Holder", holder)
			for i, line := range lines {
				line = strings.ReplaceAll(line, "POS", fmt.Sprint(pos+int64(i)))
				m.Data = append(append(m.Data, line...), '\n')
			}
			last, err := f.last(t.Context(), l.subject)
			if err == nil {
				_, err = f.append(t.Context(), m, last.seq)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	ask := func(id string) string {
		return `{"pos":POS,"event":{"type":"fleet:call_asked","payload":{"toolUseId":"` + id + `","key":"Bash x"}}}`
	}
	allow := func(id string) string {
		return `{"pos":POS,"event":{"type":"` + string(event.KindDecision) + `","payload":{"toolUseId":"` + id + `","verdict":"allow"}}}`
	}
	done := func(id string) string {
		return `{"pos":POS,"event":{"type":"tool:invoked","payload":{"toolUseId":"` + id + `","toolName":"Bash","status":"success"}}}`
	}
	end := write(kindEnd, "")
	cases := []struct {
		name, want string
		messages   []planted
		unknown    int
	}{
		{"a good run", "", []planted{write(kindRecords, "w1", ask("1"), allow("1"), done("1")), end}, 0},
		{"a call of unknown outcome", "", []planted{write(kindRecords, "w1", ask("1"), allow("1")), end}, 1},
		{"no end", "not the end", []planted{write(kindRecords, "w1", ask("1"))}, 0},
		{"two ends", "is after the end", []planted{end, end}, 0},
		{"a claim after the end", "is after the end", []planted{end, write(kindClaim, "w2"), end}, 0},
		{"an end after a retry", "", []planted{end, write(kindRetry, ""), end}, 0},
		{"a finished call again", "executed again", []planted{write(kindRecords, "w1", ask("1"), allow("1"), done("1")), write(kindRecords, "w1", strings.Replace(ask("2"), "POS", "4", 1), strings.Replace(allow("2"), "POS", "5", 1)), end}, 0},
		{"a lost record", "has the number 3", []planted{write(kindRecords, "w1", strings.Replace(ask("1"), "POS", "3", 1)), end}, 0},
		{"another holder", "belongs to w1", []planted{write(kindRecords, "w0", ask("1")), end}, 0},
	}
	for _, c := range cases {
		l, err := f.OpenLog(t.Context(), "asks."+ident.NewUUID(), "w1")
		if err != nil {
			t.Fatal(err)
		}
		for _, plant := range c.messages {
			plant(l, 1)
		}
		problems, unknown, err := CheckInvariants(t.Context(), f, []string{l.id})
		if err != nil || unknown != c.unknown || (c.want == "") != (len(problems) == 0) ||
			c.want != "" && !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s: %d unknown, %v, %q, want %q", c.name, unknown, err, problems, c.want)
		}
	}
	leaks := func(a *admissions) bool {
		a.Running = append(a.Running, "asks.leaks")
		return true
	}
	if err := f.changeAdmissions(t.Context(), leaks); err != nil {
		t.Fatal(err)
	}
	problems, _, err := CheckInvariants(t.Context(), f, []string{"asks.leaks"})
	if err != nil || !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "under way") }) {
		t.Errorf("a run that counts for ever: %q, %v", problems, err)
	}
	if problems, _, _ := CheckInvariants(t.Context(), f, []string{"asks.lost"}); len(problems) == 0 {
		t.Error("a lost run has no problem")
	}
}
