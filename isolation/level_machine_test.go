// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

// A fake machine: it has all that goos allows, unless change removes it.
func aMachine(goos string, change func(*machine)) machine {
	m := machine{
		goos: goos, landlock: 7, cell: func(context.Context) error { return nil },
		helper: func() error { return nil }, find: func(string) error { return nil },
	}
	if goos != "linux" {
		m.landlock = 0
		m.cell = func(context.Context) error { return jail.UnsupportedOn(goos, "arm64") }
		m.helper = func() error { return jail.UnsupportedOn(goos, "arm64") }
	}
	if change != nil {
		change(&m)
	}
	return m
}

func noJail(reason, fix string) func(context.Context) error {
	return func(context.Context) error { return &jail.UnsupportedError{Reason: reason, Fix: fix} }
}

func noBubblewrap(m *machine) {
	m.cell = noJail("bubblewrap was not found", "install the package bubblewrap (0.8 or newer)")
	m.find = func(program string) error {
		if program == "bwrap" {
			return errors.New("not found")
		}
		return nil
	}
}

func noNamespaces(m *machine) {
	m.cell = noJail("No permissions to create new namespace", "allow user namespaces")
}

// The machines of the tests, and the strongest level of each.
var machines = []struct {
	name string
	machine
	best Level
}{
	{"linux", aMachine("linux", nil), LevelCell},
	{"linux_no_bubblewrap", aMachine("linux", noBubblewrap), LevelLandlock},
	{"linux_no_namespaces", aMachine("linux", noNamespaces), LevelLandlock},
	{"linux_no_bubblewrap_root", aMachine("linux", func(m *machine) { noBubblewrap(m); m.root = true }), LevelHost},
	{"linux_no_namespaces_root", aMachine("linux", func(m *machine) { noNamespaces(m); m.root = true }), LevelSandbox},
	{"linux_no_bubblewrap_old_kernel", aMachine("linux", func(m *machine) { noBubblewrap(m); m.landlock = 3 }), LevelHost},
	{"linux_no_bubblewrap_no_landlock", aMachine("linux", func(m *machine) { noBubblewrap(m); m.landlock = 0 }), LevelHost},
	{"macos", aMachine("darwin", nil), LevelSandbox},
	{"windows", aMachine("windows", nil), LevelHost},
}

// By default a run wants a cell. Without one it does not start, and the error says what is missing and how to
// accept less.
func TestDecideLevel_NoCellIsRefusedByDefault(t *testing.T) {
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			level, _, err := (&Isolation{}).decideLevel(t.Context(), m.machine)
			if m.best == LevelCell {
				if level != LevelCell || err != nil {
					t.Errorf("got %s, %v, want a cell", level, err)
				}
				return
			}
			weak, ok := errors.AsType[*WeakError](err)
			if !ok || weak.Asked != LevelCell || weak.Best != m.best {
				t.Fatalf("got %v, want that only %s can be had", err, m.best)
			}
			for _, word := range []string{"Isolation.Weakest", "--isolation " + m.best.String(), "\n  next: "} {
				if !strings.Contains(advice.Text(err), word) {
					t.Errorf("%v\nwant %q in it", err, word)
				}
			}
			checkWords(t, filepath.Join("testdata", "weak", m.name+".txt"), advice.Text(err)+"\n")
		})
	}
}

// A run gets a weaker level only if it accepts that level, and never a weaker one than necessary.
func TestDecideLevel_WeakerLevelOnlyIfAccepted(t *testing.T) {
	for _, m := range machines {
		for weakest := LevelCell; weakest <= LevelHost; weakest++ {
			for strongest := LevelCell; strongest <= weakest; strongest++ {
				i := &Isolation{Weakest: weakest, Strongest: strongest}
				level, _, err := i.decideLevel(t.Context(), m.machine)
				name := fmt.Sprintf("%s from %s to %s", m.name, strongest, weakest)
				_, refused := errors.AsType[*WeakError](err)
				switch {
				case refused != (err != nil):
					t.Errorf("%s: got %v, want a WeakError or none", name, err)
				case err == nil && (level > weakest || level < strongest || m.has(t.Context(), level) != nil):
					t.Errorf("%s: got %s, which is not what was asked for, or not there", name, level)
				case err == nil && level > max(m.best, strongest) && m.has(t.Context(), max(m.best, strongest)) == nil:
					t.Errorf("%s: got %s, want a stronger level", name, level)
				case refused && m.best >= strongest && m.best <= weakest:
					t.Errorf("%s: refused, want %s", name, m.best)
				}
			}
		}
	}
}

func TestDecideLevel_ContradictingLevelsAreRefused(t *testing.T) {
	for name, i := range map[string]*Isolation{
		"Strongest is weaker than Weakest": {Strongest: LevelSandbox},
		"Sandbox.Disabled":                 {Sandbox: &Sandbox{Disabled: true}, Weakest: LevelSandbox},
	} {
		if level, _, err := i.decideLevel(t.Context(), aMachine("linux", nil)); err == nil || !strings.Contains(advice.Text(err), "Isolation.Weakest") {
			t.Errorf("%s: got %s, %v, want an error that says what to set", name, level, err)
		}
	}
}

func TestDecideLevel_RootGetsNoLandlock(t *testing.T) {
	root := aMachine("linux", func(m *machine) { m.root = true })
	_, _, err := (&Isolation{Strongest: LevelLandlock, Weakest: LevelLandlock}).decideLevel(t.Context(), root)
	if err == nil || !strings.Contains(advice.Text(err), "run as an ordinary user") {
		t.Errorf("got %v, want that root cannot have it", err)
	}
}

func TestBest_HasALevelAndReasons(t *testing.T) {
	level, reasons := Best(t.Context())
	if !level.valid() || len(reasons) != int(level) {
		t.Errorf("got %s and %d reasons, want one for each stronger level", level, len(reasons))
	}
}

// checkWords compares with a file; -update writes it.
func checkWords(t *testing.T, path, got string) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// At the level sandbox only an agent with its own sandbox is isolated; other programs need Weakest: LevelHost.
func TestDecideLevel_ProgramWithoutASandboxIsNotIsolated(t *testing.T) {
	mac := aMachine("darwin", nil)
	for _, test := range []struct {
		weakest    Level
		ownSandbox bool
		want       Level
		refused    bool
	}{
		{LevelSandbox, true, LevelSandbox, false},
		{LevelHost, true, LevelSandbox, false},
		{LevelSandbox, false, 0, true},
		{LevelHost, false, LevelHost, false},
	} {
		c := &Cell{isolation: Isolation{Weakest: test.weakest}}
		level, err := c.decideLevel(t.Context(), mac, test.ownSandbox)
		_, refused := errors.AsType[*RefusedError](err)
		if refused != test.refused || err == nil && level != test.want {
			t.Errorf("%+v: got %s, %v", test, level, err)
		}
	}
	nested := &Isolation{Sandbox: &Sandbox{Nested: true}}
	if err := (Program{}).check(LevelCell, nested); err == nil || !strings.Contains(advice.Text(err), "Sandbox.Nested") {
		t.Errorf("nested: got %v, want a refusal", err)
	}
	if err := (Program{OwnSandbox: true}).check(LevelCell, nested); err != nil {
		t.Errorf("nested, with a sandbox: %v", err)
	}
}
