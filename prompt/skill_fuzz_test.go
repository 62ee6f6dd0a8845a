// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/drover-agents/drover/prompt"
)

var goodName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Whatever the file holds, it is a good skill or a list of what is wrong with it, never a panic. What
// loads keeps the rules, and its mounted copy is the same skill.
func FuzzLoadSkill(f *testing.F) {
	for _, seed := range []string{
		matter("name: it", "description: d"),
		"\ufeff" + strings.ReplaceAll(matter("description: d", "metadata: {a: b}"), "\n", "\r\n"),
		matter("description: |", "  block", "  of text", "unknown: [1, {a: *b}]"),
		matter("description: d", "? - - a", ": {[}"),
		matter("description: !!str 1", "<<: *x", "name: &a it"),
		matter("description: a --- b"),
		"---\n---\n", "---", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := prompt.LoadSkillFS(fstest.MapFS{"it/SKILL.md": {Data: data}}, "it")
		if err != nil {
			if invalid, ok := errors.AsType[*prompt.InvalidSkillError](err); !ok || len(invalid.Violations) == 0 {
				t.Fatalf("error %v, want one with violations", err)
			}
			return
		}
		checkRules(t, s)
		dir, err := os.MkdirTemp("", "drover-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		checkRoundTrip(t, s, dir)
	})
}

func checkRules(t *testing.T, s *prompt.Skill) {
	t.Helper()
	m := s.FrontMatter()
	if s.Name() != "it" || m.Name != "" && m.Name != "it" || !goodName.MatchString(s.Name()) {
		t.Errorf("name %q, front matter %q", s.Name(), m.Name)
	}
	if n := utf8.RuneCountInString(m.Description); n > 1024 || strings.TrimSpace(m.Description) == "" {
		t.Errorf("description of %d characters", n)
	}
	if n := utf8.RuneCountInString(m.Compatibility); n > 500 {
		t.Errorf("compatibility of %d characters", n)
	}
}
