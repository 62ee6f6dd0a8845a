// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
)

// A cron is a set of minutes of the local time of a zone, as sets of bits.
type cron struct {
	minute, hour, day, month, weekday uint64
	eitherDay                         bool // a day fits if one of the two fields fits, not both
	everyHour                         bool // it follows the time that passes, not the local time, where the two differ
	zone                              *time.Location
}

var cronFields = [...]struct {
	name     string
	min, max int
	names    string // of three letters each, from min on
}{
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of month", 1, 31, ""},
	{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
	{"day of week", 0, 7, "sunmontuewedthufrisat"},
}

const cronAdvice = `use five fields: minute, hour, day of month, month, day of week; each is *, a number, a range such as 1-5, a list such as 1,15, or one of these with a step such as */10`

// parseCron reads the five fields of crontab(5). An empty zone is UTC.
func parseCron(spec, zone string) (*cron, error) {
	fail := func(err error) (*cron, error) {
		return nil, advice.Wrap(fmt.Errorf("the times %q: %w", spec, err), cronAdvice)
	}
	if zone == "Local" {
		return nil, advice.Wrap(errors.New("the time zone Local is another one on each machine"), "name the zone, such as Europe/Berlin")
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("the time zone %q: %w", zone, err),
			"use a name of the IANA database, such as Europe/Berlin; where the machine has no database, import time/tzdata")
	}
	fields := strings.Fields(spec)
	if len(fields) != len(cronFields) {
		return fail(fmt.Errorf("it has %d fields instead of %d", len(fields), len(cronFields)))
	}
	var sets [len(cronFields)]uint64
	for i, text := range fields {
		if sets[i], err = parseCronField(text, i); err != nil {
			return fail(fmt.Errorf("the %s %q: %w", cronFields[i].name, text, err))
		}
	}
	sets[4] = (sets[4] | sets[4]>>7) & 127 // 7 is Sunday, as 0 is
	c := &cron{
		minute: sets[0], hour: sets[1], day: sets[2], month: sets[3], weekday: sets[4], zone: location,
		eitherDay: fields[2][0] != '*' && fields[4][0] != '*', everyHour: fields[1][0] == '*',
	}
	if c.match(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return fail(errors.New("there is no such date"))
	}
	return c, nil
}

func parseCronField(text string, field int) (set uint64, err error) {
	f := &cronFields[field]
	number := func(s string) (int, error) {
		if at := strings.Index(f.names, strings.ToLower(s)); len(s) == 3 && at >= 0 && at%3 == 0 {
			return f.min + at/3, nil
		}
		n, err := strconv.ParseUint(s, 10, 8)
		if err != nil || len(s) > 2 || int(n) < f.min || int(n) > f.max {
			return 0, fmt.Errorf("%q is not between %d and %d", s, f.min, f.max)
		}
		return int(n), nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part, every, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.ParseUint(every, 10, 8)
			if err != nil || n == 0 || int(n) > f.max || len(every) > 2 {
				return 0, fmt.Errorf("the step %q is not between 1 and %d", every, f.max)
			}
			step = int(n)
		}
		low, high := f.min, f.max
		if first, last, isRange := strings.Cut(part, "-"); part != "*" {
			if low, err = number(first); err != nil {
				return 0, err
			}
			high = low
			if isRange {
				if high, err = number(last); err != nil {
					return 0, err
				}
			}
			if stepped && !isRange {
				return 0, errors.New("a step needs a range or *")
			}
			if high < low {
				return 0, fmt.Errorf("the range ends at %d before it begins", high)
			}
		}
		for n := low; n <= high; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// match is the first minute from a time on, both in the coordinates of UTC, or the zero time if none comes within 9 years: a
// 29 February may be 8 years away.
func (c *cron) match(t time.Time) time.Time {
	if late := t.Truncate(time.Minute); late.Before(t) {
		t = late.Add(time.Minute)
	}
	for end := t.AddDate(9, 0, 0); t.Before(end); {
		year, month, day := t.Date()
		switch {
		case c.month>>month&1 == 0:
			t = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.matchDay(t):
			t = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		case c.hour>>t.Hour()&1 == 0:
			t = time.Date(year, month, day, t.Hour()+1, 0, 0, 0, time.UTC)
		case c.minute>>t.Minute()&1 == 0:
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

func (c *cron) matchDay(t time.Time) bool {
	day, weekday := c.day>>t.Day()&1 != 0, c.weekday>>t.Weekday()&1 != 0
	if c.eitherDay {
		return day || weekday
	}
	return day && weekday
}

// next is the first tick after a time, or the zero time. Where the clocks go forward, minutes that are left out have their tick at
// the change; where they go back, a minute that comes twice has a tick the first time. An hour field that begins with * has
// ticks as the time passes instead: none for minutes that are left out, two for those that come twice.
func (c *cron) next(after time.Time) time.Time {
	at := after.Add(time.Nanosecond).In(c.zone)
	for range 128 { // changes of the clocks in 9 years
		start, end := at.ZoneBounds()
		if !end.IsZero() && !end.After(at) { // so it is on the last day of a leap year that the database leaves to a rule
			end = at.Add(24 * time.Hour)
		}
		local := localAt(at, at)
		if !start.IsZero() && !c.everyHour {
			before := localAt(start, start.Add(-time.Nanosecond)) // what the clocks showed at the change
			if at.Equal(start) && before.Before(local) {
				if left := c.match(before); !left.IsZero() && left.Before(local) {
					return start
				}
			}
			if local.Before(before) { // it comes the second time
				local = before
			}
		}
		local = c.match(local)
		if local.IsZero() {
			return local
		}
		tick := local.Add(-offsetOf(at)).In(c.zone)
		if end.IsZero() || tick.Before(end) {
			return tick
		}
		at = end
	}
	return time.Time{}
}

// localAt is what a clock shows at a time, with the offset of another one, in the coordinates of UTC.
func localAt(t, offset time.Time) time.Time { return t.UTC().Add(offsetOf(offset)) }

func offsetOf(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// latest is the last tick after one time and not after another, or the zero time.
func (c *cron) latest(after, now time.Time) (latest time.Time) {
	for back := 10 * time.Minute; ; back *= 8 { // the longer window has few ticks if the shorter one has none
		from := now.Add(-back)
		if from.Before(after) {
			from = after
		}
		for tick := c.next(from); !tick.IsZero() && !tick.After(now); tick = c.next(tick) {
			latest = tick
		}
		if !latest.IsZero() || !from.After(after) {
			return latest
		}
	}
}
