// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A schedule in the working directory is not obeyed, unless the environment says so.
func TestLaunch_ScheduleNotObeyed(t *testing.T) {
	const file = ".claude/scheduled_tasks.json"
	link := func(to, from string) func(string) error {
		return func(dir string) error { return os.Symlink(to, filepath.Join(dir, from)) }
	}
	folder := func(dir string) error { return os.Mkdir(filepath.Join(dir, ".claude"), 0o700) }
	schedule := func(dir string) error { return os.WriteFile(filepath.Join(dir, file), []byte("{}"), 0o600) }
	for name, x := range map[string]struct {
		make []func(dir string) error
		env  map[string]string
		want string
	}{
		"nothing":                      {nil, nil, ""},
		"a folder without a schedule":  {[]func(string) error{folder}, nil, ""},
		"a schedule":                   {[]func(string) error{folder, schedule}, nil, "1"},
		"a link in place of a file":    {[]func(string) error{folder, link("elsewhere", file)}, nil, "1"},
		"a link in place of a folder":  {[]func(string) error{link("elsewhere", ".claude")}, nil, "1"},
		"a schedule that is asked for": {[]func(string) error{folder, schedule}, map[string]string{disableCron: "0"}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, do := range x.make {
				if err := do(dir); err != nil {
					t.Skipf("no link can be made here: %v; run it where links are allowed", err)
				}
			}
			o := Options{Dir: dir, Env: ExactEnv(x.env)}
			env := o.launchEnviron()
			if got := slices.Contains(env, disableCron+"="+x.want); got != (x.want != "") || len(env) != len(o.Environ()) && x.want != "1" {
				t.Errorf("the environment is %q, want %s=%s", env, disableCron, x.want)
			}
		})
	}
}
