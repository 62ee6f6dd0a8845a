// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The page names every flag, check, state and field, so that nothing is added without being promised.
func TestDocs_NameEveryFlagCheckStateAndField(t *testing.T) {
	data, err := os.ReadFile("../../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	rows := []string{"--json", "--offline", "--timeout"}
	for _, exam := range new(machine).exams() {
		rows = append(rows, exam.name)
	}
	for _, kind := range []reflect.Type{reflect.TypeFor[Report](), reflect.TypeFor[Check]()} {
		for field := range kind.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			rows = append(rows, name)
		}
	}
	for _, row := range rows {
		if !strings.Contains(page, "\n| `"+row) {
			t.Errorf("docs/doctor.md has no row for %s", row)
		}
	}
	for _, state := range []State{stateOK, stateWarning, stateSkipped, stateMissing, stateBroken} {
		if !strings.Contains(page, "`"+string(state)+"`") {
			t.Errorf("docs/doctor.md does not name the state %s", state)
		}
	}
	for part := range strongSandbox().parts() {
		if !strings.Contains(page, "`"+part+"`") {
			t.Errorf("docs/doctor.md does not name the part %s", part)
		}
	}
}
