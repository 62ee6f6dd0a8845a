// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustParse(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestCron_Ticks(t *testing.T) {
	cases := []struct{ name, spec, zone, after, want string }{
		{"each minute", "* * * * *", "", "2026-11-19T10:00:30Z", "2026-11-19T10:01:00Z 2026-11-19T10:02:00Z"},
		{"a tick is not its own next", "0 10 * * *", "", "2026-11-19T10:00:00Z", "2026-11-20T10:00:00Z"},
		{"steps and ranges", "*/20 9-10 * * 1-5", "", "2026-11-20T10:20:00Z", "2026-11-20T10:40:00Z 2026-11-23T09:00:00Z 2026-11-23T09:20:00Z"},
		{"lists and names", "0 0 1,15 Jan,jul *", "", "2026-11-19T00:00:00Z", "2027-01-01T00:00:00Z 2027-01-15T00:00:00Z 2027-07-01T00:00:00Z"},
		{"a step in a range", "1-10/4 0 * * *", "", "2026-11-19T00:00:00Z", "2026-11-19T00:01:00Z 2026-11-19T00:05:00Z 2026-11-19T00:09:00Z"},
		{"seven is Sunday", "0 0 * * 6-7", "", "2026-11-19T00:00:00Z", "2026-11-21T00:00:00Z 2026-11-22T00:00:00Z 2026-11-28T00:00:00Z"},
		{"either day", "0 12 13 * fri", "", "2026-12-01T00:00:00Z", "2026-12-04T12:00:00Z 2026-12-11T12:00:00Z 2026-12-13T12:00:00Z 2026-12-18T12:00:00Z"},
		{"both days, as one begins with a star", "0 12 */2 * mon", "", "2026-11-01T00:00:00Z", "2026-11-09T12:00:00Z 2026-11-23T12:00:00Z"},
		{"a leap day eight years away", "0 0 29 2 *", "", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"a zone", "30 6 * * *", "Asia/Kolkata", "2026-11-19T00:00:00Z", "2026-11-19T06:30:00+05:30"},
		{"forward: a minute that is left out", "30 2 * * *", "Europe/Berlin", "2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"forward: minutes that are left out have one tick", "*/10 2 * * *", "Europe/Berlin", "2026-03-28T02:50:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"forward: the minute after", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T03:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"forward: each hour", "30 * * * *", "Europe/Berlin", "2026-03-29T00:30:00+01:00", "2026-03-29T01:30:00+01:00 2026-03-29T03:30:00+02:00"},
		{"back: a minute that comes twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"back: from the second one", "30 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00"},
		{"back: each hour", "30 * * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-25T03:30:00+01:00"},
		{"a leap day far away", "0 0 29 2 *", "Europe/Berlin", "2040-02-29T00:00:00+01:00", "2044-02-29T00:00:00+01:00"},
		{"the last day of a leap year far away", "0 */12 31 12 *", "Europe/Berlin", "2040-12-31T00:00:00+01:00", "2040-12-31T12:00:00+01:00 2041-12-31T00:00:00+01:00"},
		{"a change of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T02:15:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"a change at midnight", "30 0 * * *", "Africa/Cairo", "2026-04-23T00:30:00+02:00", "2026-04-24T01:00:00+03:00 2026-04-25T00:30:00+03:00"},
		{"a day that is left out", "0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00 2011-12-31T12:00:00+14:00"},
	}
	for _, c := range cases {
		cron, err := parseCron(c.spec, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		at := mustParse(t, c.after)
		for want := range strings.FieldsSeq(c.want) {
			at = cron.next(at)
			if got := at.Format(time.RFC3339); got != want {
				t.Errorf("%s: %q has the tick %s, want %s", c.name, c.spec, got, want)
			}
		}
	}
}

func TestCron_RefusesWhatIsNotOne(t *testing.T) {
	for _, spec := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "-1 * * * *", "+1 * * * *", "1- * * * *", "5-1 * * * *",
		"*/0 * * * *", "*/-1 * * * *", "5/10 * * * *", "*/60 * * * *", "1,,2 * * * *", "** * * * *", "*-5 * * * *", "1.5 * * * *", "001 * * * *", "@daily", "? * * * *",
		"* * * ja *", "* * * anf *", "mon * * * *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "０ * * * *",
	} {
		if _, err := parseCron(spec, ""); err == nil {
			t.Errorf("parseCron(%q) = nil, want an error", spec)
		}
	}
	for _, zone := range []string{"Local", "Europe/Nowhere", "../etc/passwd"} {
		if _, err := parseCron("* * * * *", zone); err == nil {
			t.Errorf("parseCron with the zone %q = nil, want an error", zone)
		}
	}
}

// reference finds ticks by reading the local time at each minute.
func (c *cron) reference(after, until time.Time) (ticks []time.Time) {
	fits := func(local time.Time) bool {
		return c.minute>>local.Minute()&1 != 0 && c.hour>>local.Hour()&1 != 0 && c.month>>local.Month()&1 != 0 && c.matchDay(local)
	}
	localOf := func(at time.Time) time.Time { return localAt(at, at.In(c.zone)) }
	const minutes = 26 * 60 // so that a change before is known
	begin := after.Add(-minutes * time.Minute).Truncate(time.Minute)
	shown := map[time.Time]bool{}
	for at := begin; at.Before(until); at = at.Add(time.Minute) {
		local := localOf(at)
		tick := fits(local) && (c.everyHour || !shown[local])
		for left := localOf(at.Add(-time.Minute)).Add(time.Minute); left.Before(local) && !c.everyHour; left = left.Add(time.Minute) {
			tick = tick || fits(left)
		}
		shown[local] = true
		if tick && at.After(after) {
			ticks = append(ticks, at)
		}
	}
	return ticks
}

// The ticks are those that a reader of a local clock finds, around each change of the clocks.
func TestCron_FollowsTheLocalTime(t *testing.T) {
	changes := []struct{ zone, at string }{
		{"UTC", "2028-02-28T12:00:00Z"},
		{"Europe/Berlin", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25T01:00:00Z"},
		{"America/St_Johns", "2026-03-08T05:30:00Z"},
		{"America/St_Johns", "2026-11-01T04:30:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
		{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
		{"Africa/Cairo", "2026-04-23T22:00:00Z"},
		{"Africa/Cairo", "2026-10-29T21:00:00Z"},
		{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
		{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	}
	field := func(t *rapid.T, name string, low, high int) string {
		a, b := rapid.IntRange(low, high).Draw(t, name), rapid.IntRange(low, high).Draw(t, name+" end")
		switch rapid.IntRange(0, 4).Draw(t, name+" form") {
		case 0:
			return fmt.Sprint(a)
		case 1:
			return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		case 2:
			return fmt.Sprintf("%d,%d", a, b)
		case 3:
			return fmt.Sprintf("*/%d", max(a, 1))
		}
		return "*"
	}
	rapid.Check(t, func(t *rapid.T) {
		change := rapid.SampledFrom(changes).Draw(t, "change")
		spec := strings.Join([]string{
			field(t, "minute", 0, 59), field(t, "hour", 0, 4), field(t, "day", 1, 31), "*", field(t, "weekday", 0, 7),
		}, " ")
		c, err := parseCron(spec, change.zone)
		if err != nil {
			t.Fatalf("parseCron(%q): %v", spec, err)
		}
		at, _ := time.Parse(time.RFC3339, change.at)
		after := at.Add(time.Duration(rapid.IntRange(-1500*60, 200*60).Draw(t, "seconds")) * time.Second)
		until := at.Add(30 * time.Hour)
		want := c.reference(after, until)
		got := after
		for _, tick := range want {
			if got = c.next(got); !got.Equal(tick) {
				t.Fatalf("%q in %s has the tick %s, want %s", spec, change.zone, got, tick.In(c.zone))
			}
		}
		if got = c.next(got); got.Before(until) {
			t.Fatalf("%q in %s has the tick %s, want none before %s", spec, change.zone, got, until)
		}
		latest := c.latest(after, until.Add(-time.Minute))
		if len(want) == 0 && !latest.IsZero() || len(want) > 0 && !latest.Equal(want[len(want)-1]) {
			t.Fatalf("%q in %s has the latest tick %s, want that of %v", spec, change.zone, latest, want)
		}
	})
}

func FuzzParseCron(f *testing.F) {
	for _, spec := range []string{"* * * * *", "*/5 0-6,12 1,15 jan-mar mon", "0 0 29 2 *", "0 0 30 2 *", "5-1 * * * *", "0 0 * * 7"} {
		f.Add(spec, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, spec, zone string) {
		c, err := parseCron(spec, zone)
		if err != nil {
			return
		}
		at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
		for range 5 {
			next := c.next(at)
			if next.IsZero() || !next.After(at) {
				t.Fatalf("%q in %q: the tick after %s is %s", spec, zone, at, next)
			}
			if last := c.latest(at, next); !last.Equal(next) {
				t.Fatalf("%q in %q: the latest tick up to %s is %s", spec, zone, next, last)
			}
			at = next
		}
	})
}
