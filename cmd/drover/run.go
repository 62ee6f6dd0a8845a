// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/claude"
	_ "github.com/drover-agents/drover/gateway/bedrock" // for CLAUDE_CODE_USE_BEDROCK
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/schema"
)

// runOptions are the flags and the argument of drover run. The zero value, with a prompt, is ready to use.
type runOptions struct {
	prompt string // "-" reads it from standard input
	// verbatim has the CLI expand neither @-mentions nor commands: the prompt has text of standard input.
	verbatim bool

	agent, model string
	permissions  permissionFlags
	readOnly     bool
	tools        toolList
	unknown      toolList // names that tools may have although no tool has them

	maxTurns  turnLimit
	others    turnLimit
	maxUSD    dollarLimit
	maxTokens turnLimit
	timeout   timeLimit

	schemaFile  string
	answer      *schema.Schema // of schemaFile
	resume      string         // a token, or resumeList
	last        bool           // continue the last conversation of the folder
	isolation   isolationFlags
	files       mountFlags
	file        fileFlags
	noProject   bool
	project     *agentfile.Project // nil without one
	json, quiet bool

	keep keepFlags
	live liveFlags

	record, replay, modelScript string

	// state is the folder in which conversations are kept. Empty means leftover.StateFolder.
	state string

	// agents makes the agents there are. Nil means newAgents.
	agents func(base *claude.Options, in *isolation.Isolation) (*agent.Registry, error)
}

type streams struct {
	in        io.Reader
	out, errs io.Writer
	screen    io.Writer // standard error if it is a terminal, else nil
}

// A guardedWriter reports the first error of its output. From then on it writes nothing.
type guardedWriter struct {
	to     io.Writer
	failed func(error)

	mu   sync.Mutex
	lost error
}

func (w *guardedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost != nil {
		return 0, w.lost
	}
	n, err := w.to.Write(p)
	if err != nil {
		w.lost = err
		w.failed(err)
	}
	return n, err
}

// newAgents returns the known agents. base is for those that are Claude Code.
func newAgents(base *claude.Options, in *isolation.Isolation) (*agent.Registry, error) {
	return agent.NewRegistry(claudecode.New(base).In(in))
}

func newRunCommand() *cobra.Command {
	o := runOptions{agent: claudecode.Agent}
	cmd := &cobra.Command{
		Use:     "run [flags] (prompt | -f file)",
		Short:   "Run an agent in the current folder",
		Long:    runHelp,
		Example: runExamples,
		Args:    o.takeArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runAgent(cmd.Context(), o, streams{in: cmd.InOrStdin(), out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()})
		},
		DisableFlagsInUseLine: true,
	}
	o.addFlags(cmd.Flags())
	completeRun(cmd)
	cmd.SetUsageFunc(groupedUsage)
	return cmd
}

// addFlags declares the flags in the order in which people need them.
func (o *runOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.VarP(textFlag{&o.file.path, "file"}, "file", "f", "run the agent that this file describes; see docs/agent-files.md")
	f.Var(&o.file.args, "arg", "an argument of that agent; name=@file takes the text of a file, name=@- standard input; repeatable")
	f.Var(&o.file.roots, "allow-root", "a folder from which that agent may mount, besides the one of its file; repeatable")
	f.BoolVar(&o.noProject, "no-project-file", false, "leave "+agentfile.ProjectFile+" of the current folder out, which can lower limits and deny tools")
	f.Var(textFlag{&o.agent, "name"}, "agent", "the agent to run, by name")
	f.Var(textFlag{&o.model, "id"}, "model", "model id or alias (default: the agent's own)")
	f.Var(&o.permissions.mode, "permission-mode", "ask (the default) or allow, for capabilities that no flag names")
	f.Var(o.permissions.flag("allow"), "allow", "capabilities to give: fileWrite, shellExecute, networkAccess")
	f.Var(o.permissions.flag("ask"), "ask", "capabilities to ask about")
	f.Var(o.permissions.flag("deny"), "deny", "capabilities to refuse")
	f.BoolVar(&o.readOnly, "read-only", false, "refuse every tool that changes something")
	f.Var(&o.tools, "tools", "the only tools there are: Read,Bash (default: the agent's own)")
	f.Var(&o.unknown, "unknown-tools", "tools that only a newer agent has; --tools and rules may name them")
	f.Var(&o.maxTurns, "max-turns", "stop after this many model calls of the main conversation")
	f.Var(&o.others, "side-calls", "model calls besides, as of subagents, for each of --max-turns (default 10)")
	f.Var(&o.maxUSD, "max-usd", "stop when the run has cost more than this")
	f.Var(&o.maxTokens, "max-tokens", "stop when the run has used more tokens than this, in and out together")
	f.Var(&o.timeout, "timeout", "stop after this time: 90s, 10m")
	f.Var(textFlag{&o.schemaFile, "file"}, "schema", "have the answer as JSON that fits the JSON Schema in file")
	f.BoolVar(&o.last, "continue", false, "continue the last conversation of this folder")
	f.Var(textFlag{&o.resume, "token"}, "resume", "continue the conversation of this token; without one, choose from a list")
	f.Lookup("resume").NoOptDefVal = resumeList
	f.Var(&o.files.mounts, "mount", "work on a copy of this file or folder, not in the current folder; repeatable")
	f.BoolVar(&o.files.writeBack, "write-back", false, "write changes in the copies back to the host, if the run succeeds")
	f.BoolVar(&o.files.incomplete, "write-back-incomplete", false, "with --write-back: also if completion of the file does not hold")
	f.BoolVar(&o.files.diff, "diff", false, "print changes in the copies as a patch; all else goes to standard error")
	f.Var(&o.isolation.level, "isolation", "the isolation level of the agent: cell, landlock, sandbox, or host for none")
	f.Var(domainList{&o.isolation.domains}, "allow-domain", "a host that tools may reach: example.com, *.example.com (default: none)")
	f.BoolVar(&o.isolation.localhost, "allow-localhost", false, "let tools reach servers on this machine")
	f.Var(&o.isolation.writable, "writable", "a file or folder that the agent may change, besides the current folder")
	f.Var(&o.isolation.readable, "readable", "a file or folder that the agent may read, besides the current folder")
	f.BoolVar(&o.isolation.storedLogin, "stored-login", false, "use the login that the CLI has stored, if there is no key")
	f.BoolVar(&o.json, "json", false, "print one event per line as JSON, and nothing else")
	f.BoolVar(&o.quiet, "quiet", false, "print the answer, and nothing else")
	f.BoolVar(&o.keep.off, "no-keep", false, "keep nothing of this run; others are kept, see drover runs")
	f.BoolVar(&o.keep.traffic, "keep-traffic", false, "keep the requests and answers of the model too")
	f.Var(&o.keep.secrets, "secret", "a variable whose value is replaced in what is kept of the run, and on standard error; repeatable")
	f.BoolVar(&o.live.watch, "watch", false, "serve the page of this run on loopback, and print its address")
	f.Var(textFlag{&o.live.served, "id"}, "served", "the id of a run that drover serve starts")
	_ = f.MarkHidden("served") // it is defined
	f.Var(textFlag{&o.record, "file"}, "record", "write the requests and answers of the model to a new file")
	f.Var(textFlag{&o.replay, "file"}, "replay", "have such a file answer instead of a model; no key is needed")
	f.Var(textFlag{&o.modelScript, "file"}, "model-script", "have the script in file answer instead of a model; no key is needed")
}

// takeArguments takes the prompt and a token of --resume from the arguments.
func (o *runOptions) takeArguments(cmd *cobra.Command, args []string) error {
	args, err := o.takeToken(args)
	if err != nil {
		return err
	}
	if err := onePrompt(cmd, args); err != nil {
		return err
	}
	if len(args) == 1 {
		o.prompt = args[0]
	}
	return nil
}

func onePrompt(cmd *cobra.Command, args []string) error {
	switch file := cmd.Flags().Changed("file"); {
	case file && len(args) > 0:
		return advice.Wrap(usageError("-f has a prompt of its own, and there is %q", args[0]),
			"give it what it asks for with --arg name=value")
	case file:
		return nil
	case len(args) == 0:
		return advice.Wrap(usageError("the prompt is missing"),
			`drover run "What does this project do?", or drover run - to read it from standard input`)
	case len(args) > 1:
		return advice.Wrap(usageError("the prompt is one argument, and there are %d", len(args)), "put the prompt into quotes")
	}
	return nil
}

const runHelp = `Run has an agent work on one prompt in the current folder, shows what it does, and prints its answer.

You are asked about each call that needs a capability, unless a flag decides: fileWrite (changing files),
shellExecute (running commands) and networkAccess. --permission-mode allow gives all that no flag
names: the cell is the boundary then. On a terminal you answer at the prompt. In a pipe
no one can answer, so such calls are denied; the run goes on without them.

The agent works in a cell: it sees the current folder and a private home, no other files and no
network. Where no cell is available the run does not start, unless --isolation names a weaker level.

With --mount it works on copies instead, in a folder of its own that is removed afterwards. Changes
of a failed tool call are rolled back. --write-back brings the changes to where the copies
came from, all of them or, if those were changed meanwhile, none; --diff prints them for git apply,
and everything else on standard error.

What a pipe or a file brings on standard input reaches the model below the prompt, marked apart. The prompt
- is standard input itself. A pipe that brings nothing for 10 seconds is left alone.

With -f the agent is described by a file: its prompt, its arguments, the form of its answer, its tools,
limits and mounts. Flags can lower its limits and change its model, and cannot give what it denies. By
itself a file can mount only from its own folder, and cannot choose a level weaker than a cell.

A file .drover.yaml in the current folder narrows the run: it can lower limits, deny tools and calls, and choose
the model where nothing else does. It can give nothing, and what it sets is printed. --no-project-file leaves it out.

The model's endpoint and credential are those of the environment: ANTHROPIC_BASE_URL,
ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, CLAUDE_CODE_OAUTH_TOKEN. They stay outside of the cell.
Settings files and MCP servers of the user and of the project are ignored.

Ctrl-C stops the agent and still prints the summary; a second one kills it at once.

Exit codes:
  0    the agent came to its end
  1    the run failed, or could not start
  2    the command line is wrong
  3    the agent came to its end, but tool calls were denied
  4    a limit was reached: --max-turns, --max-usd, --max-tokens, --timeout, or one of the file or the cell;
       or the agent has answered, and completion of the file does not hold
  130  the run was interrupted`

const runExamples = `  drover run "What does this project do?"
  drover run --allow fileWrite,shellExecute --max-usd 0.50 "Make the tests pass"
  drover run --read-only --quiet --schema review.json "Review the last commit"
  git diff | drover run --read-only "Review this change"
  drover run --json "What is here?" | jq -r 'select(.type == "text").payload.content'
  drover run --allow shellExecute,networkAccess --allow-domain style.example.com "Apply our style guide"
  drover run --mount . --write-back --allow fileWrite,shellExecute "Rename the package"
  drover run --mount src --allow fileWrite --diff --quiet "Fix the typos" | git apply
  drover run -f review.yaml --arg path=src --max-usd 0.50
  drover run --continue "And now the tests"
  drover run --model-script script.yaml "Try it without a key"`

func completeRun(cmd *cobra.Command) {
	cmd.ValidArgsFunction = completeBareResume // a prompt has no completion
	for flag, values := range map[string]cobra.CompletionFunc{
		"agent":     completeAgents,
		"allow":     completeList(capabilityNames),
		"ask":       completeList(capabilityNames),
		"deny":      completeList(capabilityNames),
		"tools":     completeList(nativeTools),
		"isolation": cobra.FixedCompletions(isolation.LevelNames(), cobra.ShellCompDirectiveNoFileComp),
		"file":      completeFiles("yaml", "yml", "json"),
		"arg":       completeArgs,
		"schema":    completeFiles("json"), "model-script": completeFiles("yaml", "yml"),
		"model": cobra.NoFileCompletions, "max-turns": cobra.NoFileCompletions, "side-calls": cobra.NoFileCompletions, "max-usd": cobra.NoFileCompletions,
		"max-tokens": cobra.NoFileCompletions, "allow-domain": cobra.NoFileCompletions,
		"timeout": cobra.NoFileCompletions, "resume": completeTokens,
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
			panic(err) // a flag that there is not: a mistake in this file
		}
	}
}

func completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	agents, err := newAgents(nil, nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return agents.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeArgs completes the names of the arguments of the file that -f names.
func completeArgs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	f, err := agentfile.Load(cmd.Flag("file").Value.String())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []string
	for _, name := range slices.Sorted(maps.Keys(f.Args)) {
		offers = append(offers, cobra.CompletionWithDesc(name+"=", f.Args[name].Usage()))
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// completeList completes the last name of a comma list with those that are not in it yet.
func completeList(names func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var offers []string
		for _, name := range names() {
			if !slices.Contains(splitList(before), name) && strings.HasPrefix(before+name, typed) {
				offers = append(offers, before+name)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func completeFiles(extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
}

// nativeTools are the tools of Claude Code that the catalogue knows, sorted.
func nativeTools() []string {
	var names []string
	for _, t := range catalogue.Tools().Natives {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}
