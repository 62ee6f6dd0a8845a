// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/plainjson"
)

// A Limit bounds an agent, or all agents of a fleet together, on all workers. A field that is zero limits nothing.
type Limit struct {
	// DollarsPerDay and TokensPerDay bound what the attempts consume that begin on one day in UTC. Tokens are input and output.
	DollarsPerDay float64 `json:"dollarsPerDay,omitzero"`
	TokensPerDay  int64   `json:"tokensPerDay,omitzero"`
	// DollarsPerAttempt and TokensPerAttempt are reserved for an attempt before it begins, and are its budget. Zero means a
	// tenth of the day.
	DollarsPerAttempt float64 `json:"dollarsPerAttempt,omitzero"`
	TokensPerAttempt  int64   `json:"tokensPerAttempt,omitzero"`
	// Runs is how many runs are under way at once. Those that began without any limit do not count.
	Runs int `json:"runs,omitzero"`
}

func (l Limit) validate() error {
	for field, v := range map[string]float64{
		"DollarsPerDay": l.DollarsPerDay, "DollarsPerAttempt": l.DollarsPerAttempt, "Runs": float64(l.Runs),
		"TokensPerDay": float64(l.TokensPerDay), "TokensPerAttempt": float64(l.TokensPerAttempt),
	} {
		if !(v >= 0 && v <= 1e18) || v > 1e9 && strings.HasPrefix(field, "Dollars") {
			return fmt.Errorf("the field %s of the limit is %v", field, v)
		}
	}
	if l.DollarsPerAttempt > l.DollarsPerDay || l.TokensPerAttempt > l.TokensPerDay {
		return advice.Wrap(errors.New("an attempt needs more than a day has"), "set Limit.DollarsPerDay or TokensPerDay, or less per attempt")
	}
	return nil
}

// An amount is what was consumed.
type amount struct {
	Nanos  int64 `json:"nanodollars,omitzero"`
	Tokens int64 `json:"tokens,omitzero"`
}

func (a amount) plus(b amount, sign int64) amount {
	return amount{a.Nanos + sign*b.Nanos, a.Tokens + sign*b.Tokens}
}

func (a amount) dollars() float64 { return float64(a.Nanos) / 1e9 }

func nanos(dollars float64) int64 { return int64(math.Round(dollars * 1e9)) }

// day and attempt are the limits of a day, and what an attempt reserves of it.
func (l Limit) day() amount { return amount{nanos(l.DollarsPerDay), l.TokensPerDay} }

func (l Limit) attempt() amount {
	a, d := amount{nanos(l.DollarsPerAttempt), l.TokensPerAttempt}, l.day()
	if a.Nanos == 0 && d.Nanos > 0 {
		a.Nanos = max(d.Nanos/10, 1)
	}
	if a.Tokens == 0 && d.Tokens > 0 {
		a.Tokens = max(d.Tokens/10, 1)
	}
	return a
}

// Spending is what attempts have consumed that began on one day, and what is reserved for those under way. An attempt whose
// worker has died keeps its reservation.
type Spending struct {
	Dollars, ReservedDollars float64
	Tokens, ReservedTokens   int64
}

// admissions are what workers share about limits. They are one message, so that an attempt is admitted by all limits or by none.
type admissions struct {
	Days    map[string]map[string]*spending `json:"days"`    // by day and scope
	Running []string                        `json:"running"` // ids of runs
	seq     uint64
}

type spending struct {
	Spent    amount `json:"spent"`
	Reserved amount `json:"reserved"`
}

// keptDays is how many days of spending are kept.
const keptDays = 8

// An admission is that of one attempt.
type admission struct {
	day      string
	reserved amount
	counted  bool // the run was under way already: its worker has died, or has it still
}

func (f *Fleet) limitsSubject() string     { return f.name + ".limits" }
func (f *Fleet) admissionsSubject() string { return f.name + ".admissions" }

// SetLimit keeps the limit of an agent, or of the whole fleet if agent is empty. The zero value removes it. It holds for attempts that
// begin afterwards.
func (f *Fleet) SetLimit(ctx context.Context, agent string, l Limit) error {
	fail := func(err error) error { return fmt.Errorf("fleet: setting the limit of %q: %w", agent, err) }
	if agent != "" && !validToken(agent) {
		return fail(advice.Wrap(errors.New("it cannot be the name of an agent"), "use up to 64 letters, digits, - and _"))
	}
	if err := l.validate(); err != nil {
		return fail(err)
	}
	for {
		limits, seq, err := f.limits(ctx)
		if err != nil {
			return fail(err)
		}
		if l == (Limit{}) {
			delete(limits, agent)
		} else {
			limits[agent] = l
		}
		m := nats.NewMsg(f.limitsSubject())
		if m.Data, err = plainjson.Marshal(limits); err == nil {
			_, err = f.append(ctx, m, seq)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, errBehind) {
			return fail(err)
		}
	}
}

// Limits are those of agents by their names. That of the whole fleet has the empty name.
func (f *Fleet) Limits(ctx context.Context) (map[string]Limit, error) {
	limits, _, err := f.limits(ctx)
	if err != nil {
		return nil, fmt.Errorf("fleet: reading the limits: %w", err)
	}
	return limits, nil
}

func (f *Fleet) limits(ctx context.Context) (limits map[string]Limit, seq uint64, err error) {
	limits = map[string]Limit{}
	m, err := f.last(ctx, f.limitsSubject())
	if err == nil && m.seq != 0 {
		err = json.Unmarshal(m.body, &limits)
	}
	return limits, m.seq, err
}

// Spent is what the attempts of an agent have consumed that began on a day in UTC, or those of the whole fleet if agent is empty. It is
// counted while there is a limit, and kept for some days.
func (f *Fleet) Spent(ctx context.Context, agent string, day time.Time) (Spending, error) {
	a, err := f.admissions(ctx)
	if err != nil {
		return Spending{}, fmt.Errorf("fleet: reading what was spent: %w", err)
	}
	s := a.Days[dayOf(day)][agent]
	if s == nil {
		return Spending{}, nil
	}
	return Spending{s.Spent.dollars(), s.Reserved.dollars(), s.Spent.Tokens, s.Reserved.Tokens}, nil
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (f *Fleet) admissions(ctx context.Context) (*admissions, error) {
	a := &admissions{Days: map[string]map[string]*spending{}}
	m, err := f.last(ctx, f.admissionsSubject())
	if err == nil && m.seq != 0 {
		a.seq, err = m.seq, json.Unmarshal(m.body, a)
	}
	return a, err
}

// changeAdmissions changes them as one step. Change returns whether it did.
func (f *Fleet) changeAdmissions(ctx context.Context, change func(a *admissions) bool) error {
	for {
		a, err := f.admissions(ctx)
		if err != nil || !change(a) {
			return err
		}
		m := nats.NewMsg(f.admissionsSubject())
		if m.Data, err = plainjson.Marshal(a); err == nil {
			_, err = f.append(ctx, m, a.seq)
		}
		if !errors.Is(err, errBehind) {
			return err
		}
	}
}

// scopes are those that count an attempt of an agent.
func scopes(agent string) []string { return []string{"", agent} }

// asks is what an attempt of an agent reserves.
func asks(limits map[string]Limit, agent string) (ask amount) {
	least := func(a, b int64) int64 {
		if a == 0 || b == 0 {
			return max(a, b)
		}
		return min(a, b)
	}
	for _, scope := range scopes(agent) {
		one := limits[scope].attempt()
		ask = amount{least(ask.Nanos, one.Nanos), least(ask.Tokens, one.Tokens)}
	}
	return ask
}

// refusal is why an attempt of an agent cannot begin now, or empty. Full means that it may if it is one of a run that counts already.
func (a *admissions) refusal(limits map[string]Limit, agent, day string) (reason string, full bool) {
	ask := asks(limits, agent)
	for _, scope := range scopes(agent) {
		l, d, of := limits[scope], limits[scope].day(), "agent "+scope
		if scope == "" {
			of = "the fleet"
		}
		var s spending
		if kept := a.Days[day][scope]; kept != nil {
			s = *kept
		}
		used := s.Spent.plus(s.Reserved, 1)
		if d.Nanos > 0 && used.Nanos+ask.Nanos > d.Nanos {
			return fmt.Sprintf("the limit of %s: $%.4g of $%.4g on %s are spent or reserved, and an attempt reserves $%.4g", of, used.dollars(), d.dollars(), day, ask.dollars()), false
		}
		if d.Tokens > 0 && used.Tokens+ask.Tokens > d.Tokens {
			return fmt.Sprintf("the limit of %s: %d of %d tokens on %s are spent or reserved, and an attempt reserves %d", of, used.Tokens, d.Tokens, day, ask.Tokens), false
		}
		if n := a.running(scope); l.Runs > 0 && n >= l.Runs {
			reason, full = fmt.Sprintf("the limit of %s: %d of %d runs are under way", of, n, l.Runs), true
		}
	}
	return reason, full
}

func (a *admissions) running(scope string) (n int) {
	for _, id := range a.Running {
		if scope == "" || strings.HasPrefix(id, scope+".") {
			n++
		}
	}
	return n
}

// admit counts an attempt of a run before it begins. Nil without a reason means that there is no limit.
func (f *Fleet) admit(ctx context.Context, r *Run) (adm *admission, reason string, err error) {
	limits, err := f.Limits(ctx)
	if err != nil || !limited(limits, r.agent) {
		return nil, "", err
	}
	adm = &admission{day: dayOf(f.now()), reserved: asks(limits, r.agent)}
	err = f.changeAdmissions(ctx, func(a *admissions) bool {
		var full bool
		adm.counted = slices.Contains(a.Running, r.id)
		if reason, full = a.refusal(limits, r.agent, adm.day); full && adm.counted {
			reason = ""
		}
		if reason != "" {
			return false
		}
		if !adm.counted {
			a.Running = append(a.Running, r.id)
		}
		a.count(adm.day, r.agent, amount{}, adm.reserved)
		return true
	})
	if err != nil || reason != "" {
		return nil, reason, err
	}
	return adm, "", nil
}

func limited(limits map[string]Limit, agent string) bool {
	return limits[""] != (Limit{}) || limits[agent] != (Limit{})
}

func (a *admissions) count(day, agent string, spent, reserved amount) {
	if a.Days[day] == nil {
		if len(a.Days) >= keptDays {
			delete(a.Days, slices.Min(slices.Collect(maps.Keys(a.Days))))
		}
		a.Days[day] = map[string]*spending{}
	}
	for _, scope := range scopes(agent) {
		s := a.Days[day][scope]
		if s == nil {
			s = &spending{}
			a.Days[day][scope] = s
		}
		s.Spent, s.Reserved = s.Spent.plus(spent, 1), s.Reserved.plus(reserved, 1)
	}
}

// settle counts what an attempt has consumed instead of what it reserved. Unless another worker has the run, it is not under way any more.
func (f *Fleet) settle(r *Run, adm *admission, used guard.Usage, elsewhere bool) error {
	if adm == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(f.ctx, appendTimeout)
	defer cancel()
	return f.changeAdmissions(ctx, func(a *admissions) bool {
		if a.Days[adm.day] != nil {
			a.count(adm.day, r.agent, amount{nanos(used.CostUSD), used.TotalTokens()}, amount{}.plus(adm.reserved, -1))
		}
		if !elsewhere {
			a.Running = slices.DeleteFunc(a.Running, func(id string) bool { return id == r.id })
		}
		return true
	})
}

// awaitRoom waits until the limits admit an attempt of an agent. It is false when ctx has ended. If the runs under way are too many, it
// returns now and then all the same: the next request may be that of a run whose worker has died, which counts already.
func (f *Fleet) awaitRoom(ctx context.Context, agent string, changed <-chan struct{}, now time.Duration) bool {
	began := time.Now()
	for ctx.Err() == nil {
		reason, full, err := f.refusal(ctx, agent)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("the limits cannot be read; trying again", "agent", agent, "error", err)
		} else if reason == "" || full && time.Since(began) > now {
			return true
		}
		select {
		case <-ctx.Done():
		case <-changed: // it is not kept yet
			pause(ctx, settleLimits)
		case <-time.After(min(f.check, now)):
		}
	}
	return false
}

// settleLimits is how long workers wait for a change of the limits to be kept.
const settleLimits = 2 * settle

func (f *Fleet) refusal(ctx context.Context, agent string) (reason string, full bool, err error) {
	limits, err := f.Limits(ctx)
	if err != nil || !limited(limits, agent) {
		return "", false, err
	}
	a, err := f.admissions(ctx)
	if err != nil {
		return "", false, err
	}
	reason, full = a.refusal(limits, agent, dayOf(f.now()))
	return reason, full, nil
}

// Waiting is why a run that is queued cannot begin now: its time has not come, or a limit is reached. It is empty for other runs, and for
// those that wait for a worker or for the next attempt.
func (r *Run) Waiting(ctx context.Context) (string, error) {
	state, err := r.State(ctx)
	if err != nil || state != Queued {
		return "", err
	}
	at, err := r.NotBefore(ctx)
	if err != nil {
		return "", err
	}
	if at.After(r.f.now()) {
		return "not before " + at.Format(time.RFC3339), nil
	}
	reason, _, err := r.f.refusal(ctx, r.agent)
	if err != nil {
		return "", fmt.Errorf("fleet: the run %s: %w", r.id, err)
	}
	return reason, nil
}

// bound makes an evaluation end at what its attempt has reserved, and counts what it consumes.
func (t *task) bound(o *drover.Options) error {
	if t.admission == nil || t.admission.reserved == (amount{}) {
		return nil
	}
	if o.Tracker.Spent() != nil {
		return nil // the evaluation ends before it begins
	}
	if o.Tracker != nil {
		return permanentError{advice.Wrap(errors.New("an agent with a limit per day cannot have a Tracker of its own"), "set Options.Budget in Handler.Prepare")}
	}
	var b guard.Budget
	if o.Budget != nil {
		b = *o.Budget
		if err := b.Validate(); err != nil {
			return permanentError{err}
		}
	}
	if most := t.admission.reserved.dollars(); most > 0 && (b.MaxCostUSD == 0 || b.MaxCostUSD > most) {
		b.MaxCostUSD = most
	}
	if most := t.admission.reserved.Tokens; most > 0 && (b.MaxTotalTokens == 0 || b.MaxTotalTokens > most) {
		b.MaxTotalTokens = most
	}
	t.tracker = guard.NewTracker(b)
	o.Tracker = t.tracker
	return nil
}
