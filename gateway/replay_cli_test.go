// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/gateway"
)

func foldersOf(cli *claudetest.RealCLI) gateway.Folders {
	return gateway.Folders{Dir: cli.Work, Home: cli.Home, Config: cli.Config, Temp: cli.Temp}
}

// A runOutput is what a run reported to its host: the text of the model, its tool calls and what they gave.
type runOutput struct {
	Blocks []string
	Result string
	Failed bool
}

// runCLI asks the CLI, whose model is at base. Each server has the tool look.
func runCLI(t *testing.T, cli *claudetest.RealCLI, base, prompt string, servers ...string) runOutput {
	t.Helper()
	env := cli.Env(base)
	opts := &claude.Options{
		CLIPath: cli.Path, Dir: cli.Work, Env: claude.ExactEnv(env), StrictMCP: true,
		SettingSources: []string{"project"}, PermissionMode: claude.ModeBypassPermissions, MCPServers: map[string]claude.MCPServer{},
	}
	for _, name := range servers {
		look := claude.MustTool("look", "Looks.", func(context.Context, struct{}) (claude.ToolResult, error) { return claude.TextResult("a desk"), nil })
		server, err := claude.NewToolServer(name, "1", nil, look)
		if err != nil {
			t.Fatal(err)
		}
		opts.MCPServers[name] = server.Server()
	}
	var got runOutput
	for m, err := range claude.Query(t.Context(), prompt, opts) {
		if err != nil && !got.Failed {
			t.Fatalf("running the CLI: %v", err)
		}
		switch m := m.(type) {
		case *claude.AssistantMessage:
			for _, block := range m.Content {
				got.Blocks = append(got.Blocks, strings.ReplaceAll(string(block.Raw()), cli.Work, "WORK"))
			}
		case *claude.ResultMessage:
			got.Result, got.Failed = m.Result, m.IsError
		}
	}
	return got
}

// workspace gives the CLI's folder what the run needs.
func workspace(t *testing.T) *claudetest.RealCLI {
	t.Helper()
	cli := claudetest.CLI(t)
	cli.WriteFile(t, "VERSION", "7\n")
	cli.WriteFile(t, "CLAUDE.md", "Be brief.\n")
	return cli
}

func TestReplay_RunOfTheCLIInAnotherFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	var first runOutput
	t.Run("record", func(t *testing.T) {
		cli := workspace(t)
		version, copied := filepath.Join(cli.Work, "VERSION"), filepath.Join(cli.Work, "COPY")
		model := claudetest.NewModel(t,
			// In pieces, as a real model sends it: the folder's name is spread over many events.
			script.Call("Read", script.Input{"file_path": version}).Chunked(3, 0),
			script.Call("Bash", script.Input{"command": "pwd; cp VERSION COPY; echo $HOME; seq 100000"}),
			script.Call("Write", script.Input{"file_path": filepath.Join(cli.Work, "NEW"), "content": "made in " + cli.Work}).Chunked(5, 0),
			script.Text("Version 7, copied to "+copied+".").Chunked(4, 0),
		).RequireAllUsed()
		recorder, err := gateway.Record(newModelEndpoint(t, model.BaseURL(), gateway.WireAnthropic), path, gateway.RecordOptions{Folders: foldersOf(cli)})
		if err != nil {
			t.Fatal(err)
		}
		first = runCLI(t, cli, serveUpstream(t, recorder), "Which version is this?")
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
		if want := "Version 7, copied to " + copied + "."; first.Result != want {
			t.Fatalf("recorded run: got %q, want %q", first.Result, want)
		}
		recorded, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(recorded), claudetest.FakeKey) {
			t.Error("the key is in the recording")
		}
	})

	t.Run("replay in another folder", func(t *testing.T) {
		cli := workspace(t)
		player := replayFrom(t, path, gateway.ReplayOptions{Folders: foldersOf(cli)})
		again := runCLI(t, cli, serveUpstream(t, player), "Which version is this?")
		if err := player.Err(); err != nil {
			t.Fatalf("replay: %v", err)
		}
		if left := player.Unused(); len(left) != 0 {
			t.Errorf("unused: %v", left)
		}
		if want := "Version 7, copied to " + filepath.Join(cli.Work, "COPY") + "."; again.Result != want {
			t.Errorf("got result %q, want %q", again.Result, want)
		}
		if got, err := os.ReadFile(filepath.Join(cli.Work, "NEW")); err != nil || string(got) != "made in "+cli.Work {
			t.Errorf("the file that the run writes: got %q (%v), want it to name this folder", got, err)
		}
		if diff := cmp.Diff(first.Blocks, again.Blocks); diff != "" {
			t.Errorf("blocks of the model (-first +again):\n%s", diff)
		}
	})

	t.Run("another prompt is named", func(t *testing.T) {
		cli := workspace(t)
		player := replayFrom(t, path, gateway.ReplayOptions{Folders: foldersOf(cli)})
		got := runCLI(t, cli, serveUpstream(t, player), "Which version was this?")
		if !got.Failed || !strings.Contains(got.Result, "is not in the recording") {
			t.Errorf("the run must end with the reason, got %+v", got)
		}
		mismatch, ok := errors.AsType[*gateway.MismatchError](player.Err())
		if !ok {
			t.Fatalf("got error %v, want a MismatchError", player.Err())
		}
		want := []gateway.Difference{{"/messages/0/content/2/text", `"Which version is this?"`, `"Which version was this?"`}}
		if diff := cmp.Diff(want, mismatch.Differences); diff != "" || mismatch.Number != 1 || mismatch.Nearest != 1 {
			t.Errorf("differences (-want +got):\n%s\n%v", diff, mismatch)
		}
	})

	t.Run("another tool result is named", func(t *testing.T) {
		cli := workspace(t)
		cli.WriteFile(t, "VERSION", "8\n")
		player := replayFrom(t, path, gateway.ReplayOptions{Folders: foldersOf(cli)})
		runCLI(t, cli, serveUpstream(t, player), "Which version is this?")
		mismatch, ok := errors.AsType[*gateway.MismatchError](player.Err())
		if !ok || mismatch.Number != 2 || mismatch.Nearest != 2 || len(mismatch.Differences) != 1 {
			t.Fatalf("got error %v, want one difference in request 2", player.Err())
		}
		if d := mismatch.Differences[0]; !strings.Contains(d.Recorded, "7") || !strings.Contains(d.Got, "8") {
			t.Errorf("got %v, want 7 and 8", d)
		}
		if left := player.Unused(); len(left) != 3 {
			t.Errorf("unused: got %v, want the last three", left)
		}
	})
}

// Earlier versions had another name for the server of a program's tools, which the model reads and calls. The CLI sorts
// tools by their names.
func TestReplay_FormerNameOfTheToolServer(t *testing.T) {
	const prompt = "Look around."
	path := filepath.Join(t.TempDir(), "run.jsonl")
	t.Run("record", func(t *testing.T) {
		cli := workspace(t)
		model := claudetest.NewModel(t, script.Call("mcp__wink__look", nil), script.Call("mcp__notes__look", nil), script.Text("A desk.")).RequireAllUsed()
		recorder, err := gateway.Record(newModelEndpoint(t, model.BaseURL(), gateway.WireAnthropic), path, gateway.RecordOptions{Folders: foldersOf(cli)})
		if err != nil {
			t.Fatal(err)
		}
		if got := runCLI(t, cli, serveUpstream(t, recorder), prompt, "wink", "notes"); got.Result != "A desk." {
			t.Fatalf("recorded run: got %+v", got)
		}
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, server := range []string{"drover", "wink"} {
		t.Run("replay under "+server, func(t *testing.T) {
			cli := workspace(t)
			player := replayFrom(t, path, gateway.ReplayOptions{Folders: foldersOf(cli)})
			got := runCLI(t, cli, serveUpstream(t, player), prompt, server, "notes")
			if got.Result != "A desk." || player.Err() != nil || len(player.Unused()) != 0 {
				t.Fatalf("got %q, unused %v, error %v", got.Result, player.Unused(), player.Err())
			}
			if !strings.Contains(got.Blocks[0], `"mcp__`+server+`__look"`) || !strings.Contains(got.Blocks[1], `"mcp__notes__look"`) {
				t.Errorf("the model calls %s", got.Blocks)
			}
		})
	}
}

// Two agents work at the same time. Their calls come in any order, with ids that the CLI makes up.
func TestReplay_ParallelAgentsOfTheCLI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	const prompt = "Ask both agents."
	agent := func(name string) script.ToolCall {
		return script.ToolCall{Name: "Agent", Input: script.Input{"description": name, "prompt": "You are agent " + name, "subagent_type": "general-purpose", "run_in_background": false}}
	}
	t.Run("record", func(t *testing.T) {
		cli := workspace(t)
		version := script.Input{"file_path": filepath.Join(cli.Work, "VERSION")}
		model := claudetest.NewModel(t,
			script.Reply(agent("one"), agent("two")).When(script.LastUserText(prompt)),
			script.Call("Read", version).When(script.IsSubagent(), script.LastUserText("You are agent one")),
			script.Call("Read", version).When(script.IsSubagent(), script.LastUserText("You are agent two")),
			script.Text("seven, says one").When(script.IsSubagent(), script.SawText("You are agent one")),
			script.Text("seven, says two").When(script.IsSubagent(), script.SawText("You are agent two")),
			script.Text("Both say seven."),
		).RequireAllUsed()
		recorder, err := gateway.Record(newModelEndpoint(t, model.BaseURL(), gateway.WireAnthropic), path, gateway.RecordOptions{Folders: foldersOf(cli)})
		if err != nil {
			t.Fatal(err)
		}
		if got := runCLI(t, cli, serveUpstream(t, recorder), prompt); got.Result != "Both say seven." {
			t.Fatalf("recorded run: got %+v", got)
		}
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("replay", func(t *testing.T) {
		cli := workspace(t)
		player := replayFrom(t, path, gateway.ReplayOptions{Folders: foldersOf(cli)})
		got := runCLI(t, cli, serveUpstream(t, player), prompt)
		if got.Result != "Both say seven." || player.Err() != nil || len(player.Unused()) != 0 {
			t.Errorf("got %q, unused %v, error %v", got.Result, player.Unused(), player.Err())
		}
	})
}

func TestReplay_RunOfTheOldestCLI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	const prompt, answer = "Which version is this?", "Seven."
	t.Run("record", func(t *testing.T) {
		cli := claudetest.OldestCLI(t)
		model := claudetest.NewModel(t,
			script.Call("Read", script.Input{"file_path": cli.WriteFile(t, "VERSION", "7\n")}).Chunked(3, 0),
			script.Text(answer),
		).RequireAllUsed()
		recorder, err := gateway.Record(newModelEndpoint(t, model.BaseURL(), gateway.WireAnthropic), path, gateway.RecordOptions{Folders: foldersOf(cli)})
		if err != nil {
			t.Fatal(err)
		}
		if got := runCLI(t, cli, serveUpstream(t, recorder), prompt); got.Result != answer {
			t.Fatalf("recorded run: got %+v", got)
		}
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("replay", func(t *testing.T) {
		cli := claudetest.OldestCLI(t)
		cli.WriteFile(t, "VERSION", "7\n")
		player := replayFrom(t, path, gateway.ReplayOptions{Folders: foldersOf(cli)})
		if got := runCLI(t, cli, serveUpstream(t, player), prompt); got.Result != answer || player.Err() != nil {
			t.Errorf("got %q, error %v", got.Result, player.Err())
		}
	})
}
