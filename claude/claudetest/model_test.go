// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func askModel(t *testing.T, m *claudetest.Model, text string) int {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":%q}]}`, text)
	resp, err := http.Post(m.BaseURL()+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestModel_ReportsFailuresAtTheEndOfTheTest(t *testing.T) {
	tests := []struct {
		name  string
		asked int
		all   bool
		want  string // part of the only failure
	}{
		{"all answered and used", 2, true, ""},
		{"left over but not required", 1, false, ""},
		{"left over", 1, true, "not used: turn 2"},
		{"too many", 3, true, `no turn for request 3: model m, 1 messages, last user text "question 3"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			ft := &fakeTest{TB: t}
			m := claudetest.NewModel(ft, script.Text("a"), script.Text("b"))
			if tt.all {
				m.RequireAllUsed()
			}
			for i := range tt.asked {
				askModel(t, m, fmt.Sprint("question ", i+1))
			}
			ft.end()
			if tt.want == "" && len(ft.errors) > 0 {
				t.Errorf("got %v, want no failure", ft.errors)
			}
			if tt.want != "" && (len(ft.errors) != 1 || !strings.Contains(ft.errors[0], tt.want)) {
				t.Errorf("got %v, want one failure with %q", ft.errors, tt.want)
			}
		})
	}
}

func TestModel_Env(t *testing.T) {
	m := claudetest.NewModel(t)
	want := map[string]string{"ANTHROPIC_BASE_URL": m.URL(), "ANTHROPIC_API_KEY": claudetest.FakeKey}
	if diff := cmp.Diff(want, m.Env()); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(m.BaseURL(), "http://127.0.0.1:") {
		t.Errorf("got %s, want a loopback address", m.BaseURL())
	}
}

func TestLoadModel_ReadsTheExample(t *testing.T) {
	m := claudetest.LoadModel(t, "../script/testdata/example.yaml")
	if got := len(m.Unused()); got != 6 {
		t.Errorf("got %d turns, want 6", got)
	}
}
