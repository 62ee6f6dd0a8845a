// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/session"
)

// helperVariable makes this test program a helper process: a task and a folder.
const helperVariable = "DROVER_INDEX_TEST_HELPER"

func TestMain(m *testing.M) {
	if task, dir, ok := strings.Cut(os.Getenv(helperVariable), " "); ok {
		if err := help(task, dir); err != nil {
			fmt.Println("error:", advice.Text(err))
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// help does a task in the helper process, and prints a line when it is done, or is about to wait to be killed.
func help(task, dir string) error {
	ctx := context.Background()
	store, err := record.Open(dir)
	if err != nil {
		return err
	}
	switch task {
	case "run": // is killed in the middle of a run
		ready := func(*agenttest.Run) { fmt.Println("ready") }
		return evaluate(ctx, store, agenttest.New(agenttest.Emit(event.Text{Content: "Wait."}), ready, agenttest.Block()), "Wait for the end.")
	}
	if task == "unprivileged" {
		if err := dropPrivileges(); err != nil {
			return err
		}
	}
	ix, err := Open(ctx, store)
	if err != nil {
		return err
	}
	if task == "die" { // is killed in the middle of a sync
		ix.beforeCommit = func() { fmt.Println("ready"); select {} }
	}
	if err := ix.Sync(ctx); err != nil {
		return err
	}
	rows, err := ix.Runs(ctx, Filter{})
	fmt.Printf("runs %d notices %+v\n", len(rows), ix.Notices())
	return errors.Join(err, ix.Close())
}

// startHelper starts a helper process, and returns it and its first line.
func startHelper(t *testing.T, task, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+task+" "+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(line)
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// evaluate records a run of a script.
func evaluate(ctx context.Context, store *record.Store, a *agenttest.Adapter, text string) error {
	p, err := prompt.FromText[string](text)
	if err != nil {
		return err
	}
	a.Tools = agenttest.Tools()
	_, err = drover.Evaluate(ctx, a, p, &drover.Options{
		Session:  session.New(nil),
		Settings: agent.Settings{Model: "big", Permissions: &gate.Permissions{Mode: gate.ModeAllow}},
		Recorder: record.NewRecorder(store, &record.RecorderOptions{Name: "reviewer", Folder: "/work/shop", Versions: map[string]string{"drover": "1.2.3"}}),
	})
	return err
}

func openStore(t testing.TB) *record.Store {
	t.Helper()
	s, err := record.Open(filepath.Join(t.TempDir(), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openIndex(t testing.TB, store *record.Store) *Index {
	t.Helper()
	ix, err := Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return ix
}

func synced(t testing.TB, store *record.Store) *Index {
	t.Helper()
	ix := openIndex(t, store)
	sync1(t, ix)
	return ix
}

func sync1(t testing.TB, ix *Index) {
	t.Helper()
	if err := ix.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// richRun has rows in every table.
func richRun() *agenttest.Adapter {
	write := event.ToolCall{ID: "toolu_1", Name: "inscribe", Input: json.RawMessage(`{"at":"/work/shop/price.txt","text":"3"}`)}
	long := event.ToolCall{ID: "toolu_2", Name: "inscribe", Input: json.RawMessage(`{"at":"/work/shop/price.txt","text":"` + strings.Repeat("x", 100_000) + `"}`)}
	called := gateway.ModelCall{
		Operation: "messages", Model: "claude-big", Status: 200, CostUSD: 0.25,
		Tokens: gateway.Tokens{Input: 100, CacheRead: 1000, CacheWrite5m: 10, CacheWrite1h: 1, Output: 7},
	}
	small := gateway.ModelCall{Operation: "messages", Model: "claude-small", Status: 200, CostUSD: 0.5, Tokens: gateway.Tokens{Input: 3, Output: 2}}
	counting := gateway.ModelCall{Operation: "count_tokens", Model: "claude-big", Status: 200}
	return agenttest.New(
		agenttest.Emit(event.Init{Model: "claude-big", Capabilities: map[string]json.RawMessage{"claudeCodeVersion": json.RawMessage(`"2.1.325"`)}}),
		agenttest.Emit(event.Extension{Kind: isolation.KindProtection, Data: json.RawMessage(`{"level":"cell"}`)}, counting, called, called, small),
		agenttest.UseTool(write, "done"), agenttest.UseTool(long, strings.Repeat("é", 100_000)),
		agenttest.Emit(event.Error{Code: "RETRY", Message: "the upstream is busy", Recoverable: true}, event.Text{Content: "The price is 3."}),
		agenttest.Done("token-1"),
	)
}

func mustRun(t testing.TB, store *record.Store, a *agenttest.Adapter, text string) {
	t.Helper()
	if err := evaluate(t.Context(), store, a, text); err != nil {
		t.Fatal(err)
	}
}

func quickRun(t testing.TB, store *record.Store) {
	t.Helper()
	mustRun(t, store, agenttest.New(agenttest.Emit(event.Text{Content: "Yes."}), agenttest.Done("")), "Is it?")
}

// startRun begins a run that ends when it is told to.
func startRun(t *testing.T, store *record.Store) (end func()) {
	t.Helper()
	began, proceed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		wait := func(*agenttest.Run) { close(began); <-proceed }
		ended <- evaluate(context.Background(), store, agenttest.New(agenttest.Emit(event.Text{Content: "I begin."}), wait, agenttest.Done("")), "Take your time.")
	}()
	<-began
	end = sync.OnceFunc(func() {
		close(proceed)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

// dump has all rows of all tables.
func dump(t testing.TB, ix *Index) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range tables {
		err := ix.ask(t.Context(), "dumping", func(db *database) error {
			all[table.Name] = nil
			return each(t.Context(), db, "SELECT * FROM "+table.Name+" ORDER BY "+table.key, nil, func(rows *sql.Rows) error {
				values, to := make([]any, len(table.Columns)), make([]any, len(table.Columns))
				for i := range values {
					to[i] = &values[i]
				}
				if err := rows.Scan(to...); err != nil {
					return err
				}
				text, err := json.Marshal(values)
				all[table.Name] = append(all[table.Name], string(text))
				return err
			})
		})
		if err != nil {
			t.Fatalf("%s: %v", table.Name, err)
		}
	}
	return all
}

func cell(t testing.TB, ix *Index, query string) any {
	t.Helper()
	a, err := ix.SQL(t.Context(), query, Limits{})
	if err != nil || len(a.Rows) != 1 {
		t.Fatalf("%s: %v, %v", query, a.Rows, err)
	}
	return a.Rows[0][0]
}

// removeIndex makes the store one without an index.
func removeIndex(t *testing.T, store *record.Store) {
	t.Helper()
	for _, end := range append([]string{""}, besides...) {
		if err := os.Remove(filepath.Join(store.Dir(), databaseFile+end)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// An index that followed each change is the same as one that is built at once.
func TestSync_GrownIndexIsTheSameAsARebuiltOne(t *testing.T) {
	store := openStore(t)
	grown := synced(t, store)
	mustRun(t, store, richRun(), "Set the price.")
	sync1(t, grown)
	quickRun(t, store)
	failing := agenttest.New(agenttest.Fail(errors.New("the agent broke")))
	if err := evaluate(t.Context(), store, failing, "Fail."); err == nil {
		t.Fatal("the run did not fail")
	}
	sync1(t, grown)
	end := startRun(t, store)
	startRun(t, store) // is running to the end of the test
	lost, line := startHelper(t, "run", store.Dir())
	if line != "ready" {
		t.Fatal(line)
	}
	sync1(t, grown)
	if got := cell(t, grown, "SELECT count(*) FROM runs WHERE state = 'running'"); got != int64(3) {
		t.Errorf("%v runs are running, want 3", got)
	}
	end()
	kill(t, lost)
	last, err := grown.Prefix(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	removed := last[len(last)-2] // the second that began
	if err := store.Remove(removed.Run); err != nil {
		t.Fatal(err)
	}
	sync1(t, grown)
	got := dump(t, grown)
	for name, rows := range got {
		if len(rows) == 0 || strings.Contains(strings.Join(rows, "\n"), removed.Run) {
			t.Errorf("%s has %d rows, want some, and none of the removed run", name, len(rows))
		}
	}
	var states []string
	for _, row := range must(grown.Runs(t.Context(), Filter{})) {
		states = append(states, string(row.State))
	}
	if slices.Sort(states); !slices.Equal(states, []string{"ended", "ended", "ended", "lost", "running"}) {
		t.Errorf("the states are %q", states)
	}
	t.Run("by Rebuild", func(t *testing.T) {
		if err := grown.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, dump(t, grown)); diff != "" {
			t.Errorf("(-grown +rebuilt):\n%s", diff)
		}
	})
	t.Run("from nothing", func(t *testing.T) {
		removeIndex(t, store)
		if diff := cmp.Diff(got, dump(t, synced(t, store))); diff != "" {
			t.Errorf("(-grown +rebuilt):\n%s", diff)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestSync_RowsOfARun(t *testing.T) {
	store := openStore(t)
	mustRun(t, store, richRun(), "## 1. Task (task)\n\nSet the price.\n### 1.1. Sum\nTo "+strings.Repeat("three ", 50))
	ix := synced(t, store)
	for query, want := range map[string]any{
		"SELECT words FROM runs":                                                         "Set the price. To " + strings.Repeat("three ", 30) + "t…",
		"SELECT length(words) FROM runs":                                                 int64(maxWords),
		"SELECT model FROM runs":                                                         "claude-big",
		"SELECT agent_version FROM runs":                                                 "2.1.325",
		"SELECT drover_version FROM runs":                                                "1.2.3",
		"SELECT isolation FROM runs":                                                     "cell",
		"SELECT cost_usd FROM runs":                                                      1.0,
		"SELECT input_tokens FROM runs":                                                  int64(2*1111 + 3),
		"SELECT output_tokens FROM runs":                                                 int64(16),
		"SELECT resume_token FROM runs":                                                  "token-1",
		"SELECT name || folder FROM runs":                                                "reviewer/work/shop",
		"SELECT state || status FROM runs":                                               "endedsuccess",
		"SELECT began < ended FROM runs":                                                 int64(1),
		"SELECT length(began) FROM runs":                                                 int64(len(timeForm)),
		"SELECT group_concat(model) FROM (SELECT model FROM tokens ORDER BY model)":      "claude-big,claude-small",
		"SELECT calls FROM tokens WHERE model = 'claude-big'":                            int64(2),
		"SELECT cache_read FROM tokens WHERE model = 'claude-big'":                       int64(2000),
		"SELECT cache_write FROM tokens WHERE model = 'claude-big'":                      int64(22),
		"SELECT path FROM files":                                                         "/work/shop/price.txt",
		"SELECT calls FROM files":                                                        int64(2),
		"SELECT code || recoverable FROM errors":                                         "RETRY1",
		"SELECT verdict FROM calls WHERE call = 'toolu_1'":                               "allow",
		"SELECT status || output FROM calls WHERE call = 'toolu_1'":                      "successdone",
		"SELECT input ->> 'at' FROM calls WHERE call = 'toolu_2'":                        "/work/shop/price.txt",
		"SELECT count(*) FROM decisions WHERE verdict = 'allow'":                         int64(2),
		"SELECT min(json_array_length(chain) > 0) FROM decisions":                        int64(1),
		"SELECT sum(json_valid(payload)) = count(*) FROM events":                         int64(1),
		"SELECT max(length(payload)) < 70000 FROM events":                                int64(1),
		"SELECT output LIKE '%é… [cut: 200000 bytes]' FROM calls WHERE call = 'toolu_2'": int64(1),
		"SELECT count(*) = max(pos) FROM events":                                         int64(1),
		"SELECT count(*) FROM events JOIN runs USING (run) WHERE events.kind = 'text'":   int64(1),
	} {
		if got := cell(t, ix, query); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

// What the gateway did not count is what the agent reports.
func TestSync_TokensOfTheEnd(t *testing.T) {
	count := func(n int64) event.TokenCount {
		return event.TokenCount{Input: event.InputTokens{Total: 10 * n, Uncached: new(9 * n), CacheRead: new(n), CacheWrite: new(int64(0))}, Output: event.OutputTokens{Total: n}}
	}
	records := []event.TokenRecord{
		{Model: "a", Requests: 2, Tokens: count(1), Cost: &event.Cost{USD: 0.25}}, {Model: "b", Tokens: count(2), Cost: &event.Cost{USD: 0.5}},
	}
	for name, c := range map[string]struct {
		usage event.Usage
		want  string
		cost  any
	}{
		"by model":       {event.Usage{Tokens: must(event.NewTokens(event.CoverageComplete, records...)), Cost: &event.Cost{USD: 0.75}}, `[["a",10,1,1,0,0.25,2],["b",20,2,2,0,0.5,null]]`, 0.75},
		"totals only":    {event.Usage{Tokens: &event.Tokens{Coverage: event.CoveragePartial, Totals: count(3)}}, `[["big",30,3,3,0,null,null]]`, nil},
		"cost only":      {event.Usage{Cost: &event.Cost{USD: 0.5}}, `[["big",0,0,0,0,0.5,null]]`, 0.5},
		"nothing at all": {event.Usage{}, `null`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			mustRun(t, store, agenttest.New(agenttest.Emit(event.Done{Status: event.DoneSuccess, Usage: c.usage})), "Count.")
			ix := synced(t, store)
			a, err := ix.SQL(t.Context(), "SELECT model, input, output, cache_read, cache_write, cost_usd, calls FROM tokens ORDER BY model", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(a.Rows); string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if got := cell(t, ix, "SELECT cost_usd FROM runs"); got != c.cost {
				t.Errorf("the cost is %v, want %v", got, c.cost)
			}
		})
	}
}

// A run in progress is read again when its log has grown, though the journal has nothing new.
func TestSync_RunInProgressIsFollowed(t *testing.T) {
	store := openStore(t)
	began, proceed, wrote, finish := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	first := func(*agenttest.Run) { close(began); <-proceed }
	second := func(*agenttest.Run) { close(wrote); <-finish }
	script := agenttest.New(agenttest.Emit(event.Text{Content: "One."}), first, agenttest.Emit(event.Text{Content: "Two."}), second, agenttest.Done(""))
	go func() { ended <- evaluate(context.Background(), store, script, "Count to two.") }()
	goOn := sync.OnceFunc(func() { close(proceed) })
	t.Cleanup(func() {
		goOn()
		close(finish)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-began
	ix := openIndex(t, store)
	texts := func() any {
		sync1(t, ix)
		return cell(t, ix, "SELECT count(*) FROM events WHERE kind = 'text'")
	}
	waitFor(t, "the first text", func() bool { return texts() == int64(1) })
	goOn()
	<-wrote
	waitFor(t, "the second text", func() bool { return texts() == int64(2) })
}

// waitFor waits for something that another goroutine does.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// A run that cannot be read is in the list, and is tried again.
func TestSync_UnreadableRun(t *testing.T) {
	store := openStore(t)
	quickRun(t, store)
	ix := synced(t, store)
	row := must(ix.Last(t.Context()))
	path := filepath.Join(row.Path, "run.json")
	good := must(os.ReadFile(path))
	for _, text := range [][]byte{[]byte(`{"droverRun":99,"id":"x"}`), good} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, good) { // a line in the journal has it read again
			journal := filepath.Join(store.Dir(), "journal")
			if err := os.WriteFile(journal, append(must(os.ReadFile(journal)), "\nend "+row.Run+"\n"...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		sync1(t, ix)
		if n := cell(t, ix, "SELECT count(*) FROM events"); (n == int64(0)) == bytes.Equal(text, good) {
			t.Errorf("with %.20s there are %v events", text, n)
		}
		got := must(ix.Last(t.Context()))
		if bytes.Equal(text, good) != (got.State == record.Ended) || (got.State == Unreadable) != strings.Contains(got.Error, "format 99") {
			t.Errorf("with %.20s the run is %s: %s", text, got.State, got.Error)
		}
	}
}

// Another journal than the one that was read, or another folder, means other runs.
func TestSync_AnotherJournal(t *testing.T) {
	for name, text := range map[string]func([]byte) []byte{
		"shorter":         func([]byte) []byte { return nil },
		"as long or more": func(old []byte) []byte { return bytes.Repeat([]byte("\n"), len(old)+10) },
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			quickRun(t, store)
			ix := synced(t, store)
			row := must(ix.Last(t.Context()))
			if err := os.RemoveAll(row.Path); err != nil {
				t.Fatal(err)
			}
			journal := filepath.Join(store.Dir(), "journal")
			if err := os.WriteFile(journal, text(must(os.ReadFile(journal))), 0o600); err != nil {
				t.Fatal(err)
			}
			sync1(t, ix)
			if rows := must(ix.Runs(t.Context(), Filter{})); len(rows) != 0 {
				t.Errorf("the index has %d runs, want 0", len(rows))
			}
		})
	}
	t.Run("moved store", func(t *testing.T) {
		store := openStore(t)
		quickRun(t, store)
		if err := synced(t, store).Close(); err != nil {
			t.Fatal(err)
		}
		moved := filepath.Join(t.TempDir(), "a b?c%20#d")
		if err := os.Rename(store.Dir(), moved); err != nil {
			t.Fatal(err)
		}
		ix := synced(t, must(record.Open(moved)))
		if row := must(ix.Last(t.Context())); !strings.HasPrefix(row.Path, moved) {
			t.Errorf("the path is %s, want one in %s", row.Path, moved)
		}
	})
}

func TestOpen_FileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other rights")
	}
	store := openStore(t)
	quickRun(t, store)
	synced(t, store)
	for _, name := range []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm", lockFile} {
		if info := must(os.Stat(filepath.Join(store.Dir(), name))); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, want 0600", name, info.Mode())
		}
	}
}

// Ten users sync at the same time as runs are added, some of them other processes. In the end all have all runs once.
func TestSync_ManyAtOnce(t *testing.T) {
	store := openStore(t)
	mustRun(t, store, richRun(), "Set the price.")
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if i < 3 {
				cmd, line := startHelper(t, "sync", store.Dir())
				if err := cmd.Wait(); err != nil || !strings.HasSuffix(line, "notices []") {
					t.Errorf("the process printed %q: %v", line, err)
				}
				return
			}
			ix, err := Open(t.Context(), store)
			if err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				err = errors.Join(err, ix.Sync(t.Context()))
				_, asked := ix.Runs(t.Context(), Filter{})
				err = errors.Join(err, asked)
			}
			if err = errors.Join(err, ix.Close()); err != nil || len(ix.Notices()) > 0 {
				t.Errorf("%v, notices %+v", err, ix.Notices())
			}
		})
	}
	for range 5 {
		quickRun(t, store)
	}
	wg.Wait()
	ix := synced(t, store)
	got := dump(t, ix)
	if len(got["runs"]) != 6 {
		t.Errorf("the index has %d runs, want 6", len(got["runs"]))
	}
	if err := ix.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, dump(t, ix)); diff != "" {
		t.Errorf("(-grown +rebuilt):\n%s", diff)
	}
}

func TestSync_KilledProcessLeavesAWorkingIndex(t *testing.T) {
	for name, before := range map[string]bool{"first build": false, "later sync": true} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			quickRun(t, store)
			if before {
				if err := synced(t, store).Close(); err != nil {
					t.Fatal(err)
				}
			}
			mustRun(t, store, richRun(), "Set the price.")
			cmd, line := startHelper(t, "die", store.Dir())
			if line != "ready" {
				t.Fatal(line)
			}
			kill(t, cmd)
			ix := synced(t, store)
			if rows := must(ix.Runs(t.Context(), Filter{})); len(rows) != 2 || len(ix.Notices()) > 0 {
				t.Errorf("the index has %d runs, want 2; notices %+v", len(rows), ix.Notices())
			}
		})
	}
}

// damages are what can happen to a file, and what it is found to be then.
var damages = map[string]struct {
	change func(*rand.Rand, []byte) []byte
	kind   NoticeKind
}{
	"random bytes":      {func(r *rand.Rand, b []byte) []byte { return randomize(r, b) }, DamagedIndex},
	"random header":     {func(r *rand.Rand, b []byte) []byte { randomize(r, b[:100]); return b }, DamagedIndex},
	"random schema":     {func(r *rand.Rand, b []byte) []byte { randomize(r, b[100:4096]); return b }, DamagedIndex},
	"random pages":      {func(r *rand.Rand, b []byte) []byte { randomize(r, b[4096:]); return b }, DamagedIndex},
	"half of it":        {func(_ *rand.Rand, b []byte) []byte { return b[:len(b)/2] }, DamagedIndex},
	"a piece of a page": {func(_ *rand.Rand, b []byte) []byte { return b[:99] }, DamagedIndex},
	"empty":             {func(*rand.Rand, []byte) []byte { return nil }, DamagedIndex},
	"a text":            {func(*rand.Rand, []byte) []byte { return []byte(strings.Repeat("no database\n", 1000)) }, DamagedIndex},
	"zeros":             {func(_ *rand.Rand, b []byte) []byte { return make([]byte, len(b)) }, DamagedIndex},
	"another database":  {func(_ *rand.Rand, b []byte) []byte { copy(b[68:], "\x00\x00\x00\x01"); return b }, DamagedIndex},
	"older version":     {func(_ *rand.Rand, b []byte) []byte { copy(b[60:], "\xff\xff\xff\xff"); return b }, OlderIndex},
}

func randomize(r *rand.Rand, b []byte) []byte {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestOpen_DamagedOrOlderIndexIsBuiltAgain(t *testing.T) {
	store := openStore(t)
	mustRun(t, store, richRun(), "Set the price.")
	quickRun(t, store)
	ix := synced(t, store)
	want := dump(t, ix)
	if err := ix.Close(); err != nil { // it has the write-ahead log in the file
		t.Fatal(err)
	}
	path := filepath.Join(store.Dir(), databaseFile)
	good := must(os.ReadFile(path))
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			removeIndex(t, store)
			bad := damage.change(rand.New(rand.NewPCG(1, 2)), bytes.Clone(good))
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+"-wal", []byte("of the damaged one"), 0o600); err != nil {
				t.Fatal(err)
			}
			ix := synced(t, store)
			if diff := cmp.Diff(want, dump(t, ix)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if notices := ix.Notices(); len(notices) != 1 || notices[0].Kind != damage.kind || !strings.Contains(notices[0].Text, path) {
				t.Errorf("the notices are %+v, want one of kind %s", notices, damage.kind)
			}
			if again := synced(t, store); len(again.Notices()) != 0 || len(must(again.Runs(t.Context(), Filter{}))) != 2 {
				t.Error("the index that was built is not in the file")
			}
		})
	}
}

// The file is damaged or replaced while it is open.
func TestIndex_FileChangesWhileItIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		kinds  []NoticeKind
	}{
		"damaged": {func(t *testing.T, path string) {
			// A write-ahead log that is empty means that the next read is of the file.
			b := must(os.ReadFile(path))
			randomize(rand.New(rand.NewPCG(1, 2)), b[4096:])
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path+"-wal", 0); err != nil {
				t.Fatal(err)
			}
		}, []NoticeKind{DamagedIndex}},
		"removed": {func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("Windows removes no open file")
			}
			store := openStore(t)
			mustRun(t, store, richRun(), "Set the price.")
			ix := synced(t, store)
			quickRun(t, store)
			c.change(t, filepath.Join(store.Dir(), databaseFile))
			sync1(t, ix)
			if rows := must(ix.Runs(t.Context(), Filter{})); len(rows) != 2 {
				t.Errorf("the index has %d runs, want 2", len(rows))
			}
			var kinds []NoticeKind
			for _, n := range ix.Notices() {
				kinds = append(kinds, n.Kind)
			}
			if !slices.Equal(kinds, c.kinds) {
				t.Errorf("the notices are %q, want %q", kinds, c.kinds)
			}
			if ix.db.replaced() {
				t.Error("the index is not that of the file")
			}
			if other := synced(t, store); len(must(other.Runs(t.Context(), Filter{}))) != 2 || len(other.Notices()) != 0 {
				t.Error("another user finds another index")
			}
		})
	}
}

func TestOpen_NewerIndexIsNotTouched(t *testing.T) {
	store := openStore(t)
	quickRun(t, store)
	if err := synced(t, store).Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(store.Dir(), databaseFile)
	text := must(os.ReadFile(path))
	copy(text[60:], "\x00\x00\x00\x63")
	files := map[string][]byte{path: text, path + "-wal": []byte("what the newer version wrote")}
	for name, text := range files {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Open(t.Context(), store)
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "version 99") || !strings.Contains(advice.Of(err), "newer version") {
		t.Errorf("Open: %v, advice %q", err, advice.Of(err))
	}
	for name, text := range files {
		if got := must(os.ReadFile(name)); !bytes.Equal(got, text) {
			t.Errorf("%s has changed", name)
		}
	}
	if _, err := os.Stat(path + "-shm"); err == nil {
		t.Error("a file was added to the newer index")
	}
}

// A folder that takes no file has an index all the same, in memory.
func TestOpen_InMemory(t *testing.T) {
	t.Run("read-only folder", func(t *testing.T) {
		store := openStore(t)
		quickRun(t, store)
		for _, dir := range []string{filepath.Dir(filepath.Dir(store.Dir())), filepath.Dir(store.Dir())} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		giveAway(t, store.Dir())
		if err := os.Chmod(store.Dir(), 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(store.Dir(), 0o755) })
		cmd, line := startHelper(t, "unprivileged", store.Dir())
		if err := cmd.Wait(); err != nil || !strings.HasPrefix(line, "runs 1 notices [{Kind:memory") {
			t.Errorf("the process printed %q: %v", line, err)
		}
	})
	for _, name := range []string{"index.db", "index.db-wal", "index.lock"} {
		t.Run("link "+name, func(t *testing.T) {
			store, target := openStore(t), filepath.Join(t.TempDir(), "target")
			quickRun(t, store)
			if err := errors.Join(os.WriteFile(target, []byte("mine"), 0o600), os.Symlink(target, filepath.Join(store.Dir(), name))); err != nil {
				t.Skipf("no link can be made: %v", err)
			}
			ix := synced(t, store)
			if rows, notices := must(ix.Runs(t.Context(), Filter{})), ix.Notices(); len(rows) != 1 || name != "index.db-wal" && (len(notices) != 1 || notices[0].Kind != InMemory) { // a new index removes an old log
				t.Errorf("%d runs, the notices are %+v", len(rows), notices)
			}
			if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
				t.Errorf("the target is %q, %v", text, err)
			}
		})
	}
	t.Run("no room", func(t *testing.T) {
		store := openStore(t)
		mustRun(t, store, richRun(), "Set the price.")
		ix := openIndex(t, store)
		if _, err := ix.db.write.ExecContext(t.Context(), "PRAGMA max_page_count = 40"); err != nil { // SQLite's own error of a full disk
			t.Fatal(err)
		}
		sync1(t, ix)
		if rows := must(ix.Runs(t.Context(), Filter{})); len(rows) != 1 {
			t.Errorf("the index has %d runs, want 1", len(rows))
		}
		notices := ix.Notices()
		if len(notices) != 1 || notices[0].Kind != InMemory || !strings.Contains(notices[0].Advice, store.Dir()) {
			t.Errorf("the notices are %+v", notices)
		}
		quickRun(t, store)
		sync1(t, ix)
		if got := cell(t, ix, "SELECT count(*) FROM runs"); got != int64(2) {
			t.Errorf("SQL finds %v runs, want 2", got)
		}
		if _, err := ix.SQL(t.Context(), "SELECT * FROM _state", Limits{}); !errors.Is(err, ErrRefused) {
			t.Errorf("a query of an index in memory is not guarded: %v", err)
		}
	})
}

// A caller that does not wait any longer gets the error of its context, also while another process writes.
func TestSync_EndsWithItsContext(t *testing.T) {
	store := openStore(t)
	quickRun(t, store)
	writer, waiting := openIndex(t, store), openIndex(t, store)
	held, release := make(chan struct{}), make(chan struct{})
	writer.beforeCommit = func() { close(held); <-release }
	done := make(chan error)
	go func() { done <- writer.Sync(context.Background()) }()
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := waiting.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sync: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	sync1(t, waiting)
	if rows := must(waiting.Runs(t.Context(), Filter{})); len(rows) != 1 {
		t.Errorf("the index has %d runs, want 1", len(rows))
	}
}

// A sync without changes does not wait for a process that writes.
func TestSync_WithoutChangesDoesNotWait(t *testing.T) {
	store := openStore(t)
	quickRun(t, store)
	writer, reader := openIndex(t, store), synced(t, store)
	held, release := make(chan struct{}), make(chan struct{})
	writer.beforeCommit = func() { close(held); <-release }
	done := make(chan error)
	go func() { done <- writer.Rebuild(context.Background()) }()
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := reader.Sync(ctx); err != nil {
		t.Errorf("Sync: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A write-ahead log of an earlier file would be read into the new one.
func TestCreate_LeavesNoLogOfAnotherFile(t *testing.T) {
	dir := t.TempDir()
	for _, end := range besides {
		if err := os.WriteFile(filepath.Join(dir, databaseFile+end), []byte("of another file"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, end := range besides {
		if _, err := os.Stat(filepath.Join(dir, databaseFile+end)); err == nil {
			t.Errorf("%s is left", databaseFile+end)
		}
	}
}

func TestIndex_Closed(t *testing.T) {
	store := openStore(t)
	ix := synced(t, store)
	for range 2 {
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := ix.Sync(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("Sync: %v", err)
	}
	if _, err := ix.Runs(t.Context(), Filter{}); !errors.Is(err, errClosed) {
		t.Errorf("Runs: %v", err)
	}
}
