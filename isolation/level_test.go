// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

func TestLevel_ParseReversesString(t *testing.T) {
	for i, name := range isolation.LevelNames() {
		level := isolation.Level(i)
		if got := level.String(); got != name {
			t.Errorf("Level(%d) = %q, want %q", i, got, name)
		}
		text, err := json.Marshal(map[string]isolation.Level{"level": level})
		if want := `{"level":"` + name + `"}`; string(text) != want || err != nil {
			t.Errorf("JSON = %s, %v, want %s", text, err, want)
		}
		var back map[string]isolation.Level
		if err := json.Unmarshal(text, &back); err != nil || back["level"] != level {
			t.Errorf("%s reads as %v, %v", text, back, err)
		}
	}
}

func TestLevel_ZeroIsTheStrongest(t *testing.T) {
	var zero isolation.Level
	if zero != isolation.LevelCell || isolation.LevelCell >= isolation.LevelLandlock || isolation.LevelLandlock >= isolation.LevelSandbox || isolation.LevelSandbox >= isolation.LevelHost {
		t.Error("levels are not in order of their strength")
	}
}

func TestLevel_UnknownIsRefused(t *testing.T) {
	_, err := isolation.ParseLevel("bunker")
	if err == nil || !strings.Contains(advice.Text(err), "cell, landlock, sandbox, host") {
		t.Errorf("got %v, want an error that names the levels", err)
	}
	var level isolation.Level
	if err := level.UnmarshalText([]byte("Cell")); err == nil {
		t.Error("names are not compared exactly")
	}
	if text, err := isolation.Level(9).MarshalText(); err == nil {
		t.Errorf("Level(9) is written as %s", text)
	}
}
