// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

const (
	childCLI = "FLEET_TEST_CLI" // its path, folder and environment
	childDie = "FLEET_TEST_DIE" // where the process kills itself
)

// A machine is where the real CLI runs: a home and temporary folders of its own.
type machine struct {
	Path string
	Env  map[string]string
}

func newMachine(t *testing.T, cli *claudetest.RealCLI, model *claudetest.Model, name string) machine {
	t.Helper()
	m := machine{cli.Path, cli.Env(model.BaseURL())}
	for variable, folder := range map[string]string{"HOME": "home", "CLAUDE_CONFIG_DIR": "config", "TMPDIR": "tmp", "CLAUDE_CODE_TMPDIR": "tmp"} {
		m.Env[variable] = filepath.Join(cli.Root, name, folder)
		if err := os.MkdirAll(m.Env[variable], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// die kills this process as a machine does that loses power, if it is to die here.
func die(where string) {
	if os.Getenv(childDie) != where {
		return
	}
	self, _ := os.FindProcess(os.Getpid())
	_ = self.Kill()
	select {}
}

// mortal is feedback that kills the process when the record of a call is kept, before the agent gets the result.
type mortal struct{}

func (mortal) Name() string { return "mortal" }

func (mortal) Provide(_ context.Context, s *session.Session) (session.Feedback, error) {
	last, _ := session.Query[session.ToolInvoked](s).Latest()
	var b bill
	_ = json.Unmarshal(last.Params, &b)
	die("after " + b.What)
	return session.Feedback{}, nil
}

type bill struct {
	What string `json:"what"`
}

// payer is a worker of an agent that pays, which is to write into the file of effects.
func payer(f *fleet.Fleet, m machine, effects string) fleet.Worker {
	pay := tool.Must("pay", "Pays.", func(_ context.Context, b bill) (string, error) {
		file, err := os.OpenFile(effects, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return "", err
		}
		defer file.Close()
		fmt.Fprintln(file, b.What)
		die("in " + b.What)
		return "receipt of " + b.What, nil
	})
	adapter := claudecode.New(&claude.Options{CLIPath: m.Path, Env: claude.ExactEnv(m.Env), SettingSources: []string{}, StrictMCP: true})
	return fleet.Worker{Fleet: f, Lease: time.Second, Concurrency: 2, Attempts: 50, Backoff: quick, Agents: []fleet.Agent{fleet.Handle("asks", fleet.Handler[question, question]{
		Adapter: adapter,
		Prepare: func(_ context.Context, q question, _ *session.Session) (*prompt.Prompt[question], *drover.Options, error) {
			p, err := prompt.NewPrompt[question]("fleet", "pay", prompt.Markdown("task", "Task", q.Text).With(pay))
			return p, &drover.Options{Feedback: []guard.FeedbackRule{{Provider: mortal{}, Trigger: guard.FeedbackTrigger{EveryCalls: 1}}}}, err
		},
	})}}
}

// runPayer is a worker as a process of its own.
func runPayer(f *fleet.Fleet) {
	var m machine
	if err := json.Unmarshal([]byte(os.Getenv(childCLI)), &m); err != nil {
		panic(err)
	}
	w := payer(f, m, os.Getenv(childEffects))
	fmt.Println(w.Run(context.Background()))
}

// Two workers die by kill -9 and the third one, each with folders of its own, has the answer. The real CLI goes on from
// the last step each time: the model reads what it has done, once, and is not asked again about a step that it has finished.
func TestWorker_RealCLIGoesOnElsewhereFromItsLastStep(t *testing.T) {
	cli := claudetest.CLI(t)
	// The kit of the CLI looks for goroutines left behind. So the server is one of this test, and the name of this file makes
	// the test the first one, before the shared servers run.
	pay := func(id, what string) script.Block {
		return script.ToolCall{ID: "toolu_" + id, Name: "mcp__drover__pay", Input: script.Input{"what": what}}
	}
	model := claudetest.NewScriptedModel(t, script.Script{Strict: true, Turns: []script.Turn{
		script.Structured(question{"All is paid."}).When(script.HasToolResult("toolu_5")).Always(),
		// A call of a later step that is like one that was finished: it runs.
		script.Reply(pay("5", "rent"), pay("6", "gas"), script.ToolCall{ID: "toolu_7", Name: "Bash", Input: script.Input{"command": "cat note"}}).When(script.SawText("outcome of this call is unknown")).Always(),
		script.Reply(pay("4", "water")).When(script.HasToolResult("toolu_2")).Always(),
		script.Reply(script.ThinkingBlock{Thinking: "And two more."}, pay("2", "food"), pay("3", "gas")).When(script.HasToolResult("toolu_1")).Always(),
		script.Reply(pay("1", "rent"), script.ToolCall{ID: "toolu_0", Name: "Bash", Input: script.Input{"command": "echo rent is paid > note"}}).Always(),
	}})
	dir, effects := t.TempDir(), filepath.Join(t.TempDir(), "effects")
	open := func() *fleet.Fleet {
		f, err := fleet.Open(t.Context(), &fleet.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	f := open()
	id := submit(t, f, "Pay the bills.", "").ID()
	_ = f.Close()
	for _, where := range []string{"after food", "in water"} {
		m := newMachine(t, cli, model, strings.ReplaceAll(where, " ", "-"))
		raw, _ := json.Marshal(m)
		worker := exec.Command(os.Args[0])
		worker.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + m.Env["HOME"], "TMPDIR=" + m.Env["TMPDIR"], "XDG_STATE_HOME=" + m.Env["HOME"],
			childRole + "=pay", childDir + "=" + dir, childEffects + "=" + effects, childDie + "=" + where, childCLI + "=" + string(raw),
		}
		out, err := worker.CombinedOutput()
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the worker that is to die %s ended with %v: %s", where, err, out)
		}
	}
	f = open()
	work(t, payer(f, newMachine(t, cli, model, "last"), effects))
	r, err := f.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	result := wait(t, r)
	if string(result.Output) != `{"text":"All is paid."}` || result.Attempts != 3 {
		t.Errorf("the run ended with %+v and the answer %s", result, result.Output)
	}
	paid, err := os.ReadFile(effects)
	if want := "rent\nfood\nwater\nrent\ngas\n"; string(paid) != want || err != nil {
		t.Errorf("paid were %q, %v, want %q", paid, err, want)
	}
	want := []string{"", "1 receipt of rent;0 (Bash completed with no output);"}
	want = append(want, want[1]+"2 receipt of food;3 This call was not made: you were interrupted before it began. Make it again if it is still needed.;")
	want = append(want, want[2]+"4 The outcome of this call is unknown: it was under way at the interruption, and may have taken effect. "+
		"Check whether it did. Call it once more only if it did not.;")
	want = append(want, want[3]+"5 receipt of rent;6 receipt of gas;7 rent is paid;")
	var got []string
	for _, q := range model.Requests() {
		got = append(got, resultsIn(q))
		if n := strings.Count(textIn(q), "Pay the bills."); n != 1 {
			t.Errorf("a request has the prompt %d times, want once", n)
		}
		if strings.Contains(q.SystemText(), "interrupted") {
			t.Error("the system prompt has changed")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the model was asked with the results\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if problems, unknown, err := fleet.CheckInvariants(t.Context(), f, []string{id}); err != nil || unknown != 1 {
		t.Errorf("CheckInvariants = %q, %d unknown, %v", problems, unknown, err)
	}
}

// Workers with the real CLI are killed at random moments. Each run has its answer, no bill is paid twice, and as many are not paid as
// have an unknown outcome at most.
func TestChaos_RealCLIKilledAtRandom(t *testing.T) {
	if !testkit.Soak() {
		t.Skip("only in a soak: it takes minutes")
	}
	const runs, bills, kills = 20, 5, 40
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	cli := claudetest.CLI(t)
	model := claudetest.NewScriptedModel(t, script.Script{Strict: true, Turns: []script.Turn{script.Func(func(r *script.Request) script.Turn {
		_, task, _ := strings.Cut(textIn(r), "Pay for ")
		task, _, _ = strings.Cut(task, ".")
		next := 0
		for _, m := range r.Messages {
			for _, p := range m.Content {
				switch text := p.Content.Text(); {
				case p.Type != "tool_result":
				case strings.Contains(text, "Structured output"): // the worker has died before it had the answer
				case strings.Contains(text, "receipt"):
					next++
				case strings.Contains(text, "outcome of this call is unknown"):
					next++
				case strings.Contains(text, "was not made"):
				default:
					return script.Fail(400, "strange result: "+text)
				}
			}
		}
		if next >= bills {
			return script.Structured(question{"All is paid."})
		}
		return script.Reply(script.ThinkingBlock{Thinking: "hm"}, script.ToolCall{
			ID: "toolu_" + ident.NewUUID()[:12], Name: "mcp__drover__pay",
			Input: script.Input{"what": fmt.Sprintf("%s-%d", task, next)},
		})
	}).Always()}})
	dir, effects := t.TempDir(), filepath.Join(t.TempDir(), "effects")
	f, err := fleet.Open(t.Context(), &fleet.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range runs {
		ids = append(ids, submit(t, f, fmt.Sprintf("Pay for run%02d.", i), "").ID())
	}
	_ = f.Close()
	for i := range kills {
		m := newMachine(t, cli, model, fmt.Sprint("m", i))
		raw, _ := json.Marshal(m)
		worker := exec.Command(os.Args[0])
		worker.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + m.Env["HOME"], "TMPDIR=" + m.Env["TMPDIR"], "XDG_STATE_HOME=" + m.Env["HOME"],
			childRole + "=pay", childDir + "=" + dir, childEffects + "=" + effects, childCLI + "=" + string(raw),
		}
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(1500+random.IntN(3000)) * time.Millisecond)
		_ = worker.Process.Kill()
		_ = worker.Wait()
	}
	f, err = fleet.Open(t.Context(), &fleet.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := payer(f, newMachine(t, cli, model, "last"), effects)
	stop := work(t, w)
	for _, id := range ids {
		r, err := f.Run(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		result, err := r.Wait(t.Context())
		if err != nil || result.State != fleet.Succeeded {
			t.Errorf("%s ended with %+v, %v", id, result, err)
		}
	}
	stop()
	problems, open, err := fleet.CheckInvariants(t.Context(), f, ids)
	if err != nil || len(problems) > 0 {
		t.Errorf("CheckInvariants = %q, %v", problems, err)
	}
	text, err := os.ReadFile(effects)
	if err != nil {
		t.Fatal(err)
	}
	paid := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if paid[line]++; paid[line] == 2 {
			t.Errorf("%q was paid twice", line)
		}
	}
	if missing := runs*bills - len(paid); missing > open {
		t.Errorf("%d bills were not paid, and %d calls have an unknown outcome", missing, open)
	}
	t.Logf("%d bills paid, %d calls of unknown outcome, the model was asked %d times, at least %d", len(paid), open, len(model.Requests()), runs*(bills+1))
}

// resultsIn are the results of calls in a request.
func resultsIn(r *script.Request) string {
	var all strings.Builder
	for _, m := range r.Messages {
		for _, p := range m.Content {
			if p.Type == "tool_result" {
				fmt.Fprintf(&all, "%s %s;", strings.TrimPrefix(p.ToolUseID, "toolu_"), p.Content.Text())
			}
		}
	}
	return all.String()
}

func textIn(r *script.Request) string {
	var all []string
	for _, m := range r.Messages {
		all = append(all, m.Content.Text())
	}
	return strings.Join(all, "\n")
}
