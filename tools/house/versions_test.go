// SPDX-License-Identifier: Apache-2.0

package house

import (
	"regexp"
	"slices"
	"testing"
)

var (
	pinnedConst = regexp.MustCompile(`PinnedVersion = "([0-9.]+)"`)
	oldestConst = regexp.MustCompile(`OldestTested = "([0-9.]+)"`)
	npmVersion  = regexp.MustCompile(`@anthropic-ai/claude-code@([0-9.]*[0-9])`)
	pageVersion = regexp.MustCompile(`\b2\.1\.[0-9]{3}\b`)
)

// The CLI's version is in the code, in the file that npm installs from, and in pages. They agree.
func TestVersions_OneVersionOfTheCLI(t *testing.T) {
	find := read(t, "claude/find.go")
	pinned, oldest := pinnedConst.FindStringSubmatch(find)[1], oldestConst.FindStringSubmatch(find)[1]
	install := read(t, "internal/cliinstall/npm/package.json")
	for name, want := range map[string]string{`"@anthropic-ai/claude-code": "`: pinned, `@anthropic-ai/claude-code@`: oldest} {
		if !regexp.MustCompile(regexp.QuoteMeta(name + want + `"`)).MatchString(install) {
			t.Errorf("package.json does not have %s%s", name, want)
		}
	}
	for _, page := range documents(t) {
		text := read(t, page)
		for _, m := range npmVersion.FindAllStringSubmatch(text, -1) {
			if m[1] != pinned {
				t.Errorf("%s asks to install %s, pinned is %s", page, m[1], pinned)
			}
		}
	}
	compatibility := pageVersion.FindAllString(read(t, "docs/compatibility.md"), -1)
	for _, want := range []string{pinned, oldest} {
		if !slices.Contains(compatibility, want) {
			t.Errorf("docs/compatibility.md does not name %s", want)
		}
	}
}
