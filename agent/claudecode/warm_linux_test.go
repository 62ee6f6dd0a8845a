// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/isolation"
)

// holdVariable makes the test program one that holds a warm CLI, and prints that it is ready. It has a hold.
const holdVariable = "DROVER_TEST_HOLD"

// A hold is where a warm CLI is held.
type hold struct {
	CLI, Dir, Temp string
	Env            map[string]string
}

func init() {
	var h hold
	if text := os.Getenv(holdVariable); text != "" && json.Unmarshal([]byte(text), &h) == nil {
		fmt.Println(h.wait())
		time.Sleep(time.Minute)
		os.Exit(1)
	}
}

func (h hold) wait() string {
	a := claudecode.New(&claude.Options{CLIPath: h.CLI, Dir: h.Dir, Env: claude.ExactEnv(h.Env)}).In(&isolation.Isolation{TempDir: h.Temp})
	if err := a.Warm(context.Background(), agent.Request{}); err != nil {
		return err.Error()
	}
	return "ready"
}

// The death of the program ends what waits in it. The next one removes what is left on disk.
func TestWarm_KillingTheProgramEndsTheWaitingCLI(t *testing.T) {
	cli, model := claudetest.CLI(t), claudetest.NewModel(t)
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := hold{CLI: cli.Path, Dir: cli.Work, Temp: temp, Env: cli.Env(model.URL())}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(inTime(t), path)
	program.Env = append(os.Environ(), holdVariable+"="+string(text))
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	homes, _ := filepath.Glob(filepath.Join(temp, isolation.HomePrefix+"*"))
	if strings.TrimSpace(line) != "ready" || len(homes) == 0 {
		t.Errorf("the program printed %q and has the homes %q", line, homes)
	}
	_ = program.Process.Kill()
	_ = program.Wait() // it was killed
	if left := processesWith(t, temp); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if _, err := isolation.SweepHomes(temp, ""); err != nil {
		t.Error(err)
	}
	if homes, _ := filepath.Glob(filepath.Join(temp, isolation.HomePrefix+"*")); len(homes) > 0 {
		t.Errorf("homes are left: %q", homes)
	}
}
