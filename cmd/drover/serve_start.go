// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// A starter starts runs as processes of drover run, each within the flags of the server.
type starter struct {
	o       *serveOptions
	program string
	agents  map[string]*agentfile.File
	folders []string
	store   *record.Store

	mu      sync.Mutex
	running map[string]*proc.Process // by the id of the run
	ending  bool
	ended   sync.WaitGroup
}

func newStarter(o *serveOptions) (*starter, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	st := &starter{o: o, program: program, agents: map[string]*agentfile.File{}, running: map[string]*proc.Process{}}
	if st.store, err = openRuns(""); err != nil {
		return nil, err
	}
	for _, path := range o.agents {
		if err := st.addAgents(path); err != nil {
			return nil, err
		}
	}
	folders := []string(o.folders)
	if len(folders) == 0 {
		current, err := workFolder()
		if err != nil {
			return nil, advice.Wrap(fmt.Errorf("the current folder cannot be used: %w", err), "name another with --folder")
		}
		folders = []string{current}
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return nil, advice.Wrap(usageError("--folder: %s is not a folder", folder), "name a folder that is there")
		}
		st.folders = append(st.folders, realPath(folder))
	}
	return st, nil
}

// addAgents adds the agents of a file, or of the files of a folder.
func (st *starter) addAgents(path string) error {
	paths := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		paths = nil
		for _, form := range []string{"*.yaml", "*.yml"} {
			found, err := filepath.Glob(filepath.Join(path, form))
			if err != nil {
				return err
			}
			paths = append(paths, found...)
		}
		if len(paths) == 0 {
			return advice.Wrap(usageError("%s has no agent files", path), "name a folder with files *.yaml, or a file")
		}
	}
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		f, err := agentfile.Load(path)
		if err != nil {
			return usageError("%w", err)
		}
		name := cmp.Or(f.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
		if other := st.agents[name]; other != nil {
			return advice.Wrap(usageError("%s and %s have the same name, %s", other.Path(), path, name), "give one of them another name")
		}
		st.agents[name] = f
	}
	return nil
}

// prompts reports whether a run may have any prompt.
func (st *starter) prompts() bool { return st.o.prompts || len(st.agents) == 0 }

// Offer implements [server.Starter].
func (st *starter) Offer(context.Context) (server.Offer, error) {
	r := &st.o.run
	offer := server.Offer{
		Agents: []server.OfferedAgent{}, Prompts: st.prompts(), Folders: st.folders, Permissions: map[string]string{}, Tools: r.tools,
		Limits: server.Limits{USD: float64(r.maxUSD), Tokens: int64(r.maxTokens), Turns: int(r.maxTurns), Seconds: time.Duration(r.timeout).Seconds()},
	}
	for _, name := range slices.Sorted(maps.Keys(st.agents)) {
		offer.Agents = append(offer.Agents, offered(name, st.agents[name]))
	}
	for _, c := range capabilities {
		offer.Permissions[c.String()] = r.effectivePermissions().Level(c).String()
		if r.readOnly {
			offer.Permissions[c.String()] = "deny"
		}
	}
	return offer, nil
}

func offered(name string, f *agentfile.File) server.OfferedAgent {
	a := server.OfferedAgent{Name: name, Description: f.Description}
	for _, arg := range slices.Sorted(maps.Keys(f.Args)) {
		a.Args = append(a.Args, server.OfferedArg{Name: arg, Description: f.Args[arg].Usage(), Required: f.Args[arg].Default == nil})
	}
	return a
}

func refused(format string, args ...any) *server.Problem {
	return &server.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusUnprocessableEntity), Status: http.StatusUnprocessableEntity,
		Detail: fmt.Sprintf(format, args...), Next: "GET /v1/offer lists what this server allows",
	}
}

// Start implements [server.Starter].
func (st *starter) Start(ctx context.Context, s server.Start) (string, error) {
	if s.Key != "" {
		return "", refused("a key is for a queue, and this server has none")
	}
	return st.start(ctx, s, "")
}

func (st *starter) start(ctx context.Context, s server.Start, token string) (string, error) {
	args, prompt, folder, err := st.command(s)
	if err != nil {
		return "", err
	}
	if token != "" {
		args = append(args, "--resume="+token)
	}
	if prompt != "" {
		args = append(args, "-")
	}
	return st.launch(ctx, folder, args, prompt)
}

// command is the command line of a run, with its prompt and folder. It refuses what the server does not allow.
func (st *starter) command(s server.Start) (args []string, prompt, folder string, err error) {
	folder = cmp.Or(s.Folder, st.folders[0])
	if !slices.Contains(st.folders, realPath(folder)) {
		return nil, "", "", refused("no run may be started in the folder %s", folder)
	}
	switch {
	case s.Agent != "" && strings.TrimSpace(s.Prompt) != "":
		return nil, "", "", refused("an agent has its own prompt, and the request has one too")
	case s.Agent == "" && strings.TrimSpace(s.Prompt) == "":
		return nil, "", "", refused("the request has neither an agent nor a prompt")
	case s.Agent == "" && !st.prompts():
		return nil, "", "", refused("this server starts its agents alone, not prompts")
	case s.Agent == "" && len(s.Args) > 0:
		return nil, "", "", refused("arguments are for an agent, and the request has a prompt")
	}
	if s.Agent != "" {
		f := st.agents[s.Agent]
		if f == nil {
			return nil, "", "", refused("there is no agent %q", s.Agent)
		}
		args = append(args, "--file="+f.Path())
		for _, name := range slices.Sorted(maps.Keys(s.Args)) {
			value := s.Args[name]
			if strings.HasPrefix(value, "@") { // it is no file of this machine
				value = "@" + value
			}
			args = append(args, "--arg="+name+"="+value)
		}
	}
	narrowed, err := st.narrow(s)
	if err != nil {
		return nil, "", "", err
	}
	return append(args, narrowed...), s.Prompt, folder, nil
}

// narrow are the flags of the server, narrowed by a request.
func (st *starter) narrow(s server.Start) (args []string, err error) {
	r := &st.o.run
	own := []string{"allow", "ask", "deny", "tools", "read-only", "max-usd", "max-tokens", "max-turns", "timeout", "model"}
	eachArgument(newRunCommand().Flags(), st.o.words, func(flag *pflag.Flag, words []string) {
		if flag != nil && !slices.Contains(own, flag.Name) {
			args = append(args, words...)
		}
	})
	switch {
	case s.Model != "" && r.model != "" && s.Model != r.model:
		return nil, refused("the model is %s here, and the request asks for %s", r.model, s.Model)
	case strings.HasPrefix(s.Model, "-"):
		return nil, refused("%q is not the name of a model", s.Model)
	case cmp.Or(s.Model, r.model) != "":
		args = append(args, "--model="+cmp.Or(s.Model, r.model))
	}
	for _, name := range s.Deny {
		if _, err := findCapability(name); err != nil {
			return nil, refused("deny: %s", err)
		}
	}
	readOnly := s.ReadOnly || r.readOnly
	if readOnly {
		args = append(args, "--read-only")
	}
	for _, c := range capabilities {
		flag := r.permissions.given[c]
		if slices.ContainsFunc(s.Deny, func(name string) bool { return strings.EqualFold(name, c.String()) }) || readOnly && c.String() != "networkAccess" {
			flag = "deny"
		}
		if flag != "" {
			args = append(args, "--"+flag+"="+c.String())
		}
	}
	tools := []string(r.tools)
	if s.Tools != nil {
		for _, name := range s.Tools {
			if r.tools != nil && !slices.Contains(r.tools, name) {
				return nil, refused("the tool %s is not among those of this server", name)
			}
			if strings.ContainsAny(name, ",\n") || strings.HasPrefix(name, "-") {
				return nil, refused("%q is not the name of a tool", name)
			}
		}
		tools = s.Tools
	}
	if tools != nil {
		args = append(args, "--tools="+strings.Join(tools, ","))
	}
	for _, l := range []struct {
		flag        string
		server, own float64
		text        func(float64) string
	}{
		{"max-usd", float64(r.maxUSD), s.Limits.USD, func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }},
		{"max-tokens", float64(r.maxTokens), float64(s.Limits.Tokens), func(v float64) string { return strconv.FormatInt(int64(v), 10) }},
		{"max-turns", float64(r.maxTurns), float64(s.Limits.Turns), func(v float64) string { return strconv.FormatInt(int64(v), 10) }},
		{"timeout", time.Duration(r.timeout).Seconds(), s.Limits.Seconds, func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + "s" }},
	} {
		limit := l.server
		switch {
		case l.own < 0:
			return nil, refused("the limit %s is below zero", strings.TrimPrefix(l.flag, "max-"))
		case l.own > 0 && (limit == 0 || l.own < limit):
			limit = l.own
		}
		if limit > 0 {
			args = append(args, "--"+l.flag+"="+l.text(limit))
		}
	}
	return args, nil
}

// startTime is how long a run may take until it is kept: copies of mounts come before that.
const startTime = 2 * time.Minute

// launch starts drover run, and returns when the run is kept. The run ends with this process, however that ends.
func (st *starter) launch(ctx context.Context, folder string, args []string, prompt string) (id string, err error) {
	id = ident.NewUUID()
	st.mu.Lock()
	var run *proc.Process
	switch {
	case st.ending:
		err = errEnding
	case len(st.running) >= st.o.most:
		err = fmt.Errorf("%w: %d", server.ErrBusy, st.o.most)
	default:
		run, err = proc.Start(ctx, proc.Spec{
			Path: st.program, Args: append([]string{"run", "--quiet", "--served=" + id}, args...), Dir: folder, Env: st.environ(), NoPIDNamespace: true,
		})
		if err == nil {
			st.running[id] = run
			st.ended.Add(1)
		}
	}
	st.mu.Unlock()
	if err != nil {
		return "", err
	}
	var errs firstBytes
	var pipes sync.WaitGroup
	pipes.Go(func() {
		_, _ = io.WriteString(run.Stdin(), prompt) // a run that does not read it says why
		_ = run.Stdin().Close()
	})
	pipes.Go(func() { _, _ = io.Copy(io.Discard, run.Stdout()) })
	pipes.Go(func() { _, _ = io.Copy(&errs, run.Stderr()) })
	over := make(chan proc.Status, 1)
	go func() {
		defer st.ended.Done()
		status := run.Wait()
		pipes.Wait()
		st.mu.Lock()
		delete(st.running, id)
		st.mu.Unlock()
		over <- status
	}()
	ctx, done := context.WithTimeout(ctx, startTime)
	defer done()
	for {
		if _, err := st.store.Find(id); err == nil {
			return id, nil
		} else if !errors.Is(err, fs.ErrNotExist) && ctx.Err() != nil {
			return "", err
		}
		select {
		case status := <-over:
			if _, found := st.store.Find(id); found == nil {
				return id, nil
			}
			return "", notStarted(status, errs.text)
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return "", errors.Join(fmt.Errorf("the run was not kept in time, and is stopped: %w", context.Cause(ctx)), run.Kill())
		}
	}
}

// environ is the environment of a run. The key that signs notices is not for runs: an agent could sign notices with it.
func (st *starter) environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name != "" && name == st.o.hooks.secret
	})
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct{ text []byte }

func (b *firstBytes) Write(text []byte) (int, error) {
	b.text = append(b.text, text[:min(len(text), 16<<10-len(b.text))]...)
	return len(text), nil
}

// notStarted is why a process ended before its run began, in its own words.
func notStarted(status proc.Status, errs []byte) error {
	why := strings.TrimSpace(strings.TrimPrefix(string(errs), "drover: "))
	p := refused("the run was not started: %s", cmp.Or(why, status.Signal, fmt.Sprintf("exit code %d", status.Code)))
	if status.Code != exitUsage {
		p.Status, p.Title = http.StatusInternalServerError, http.StatusText(http.StatusInternalServerError)
	}
	return p
}

var errEnding = &server.Problem{
	Type: "about:blank", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
	Detail: "the server is about to end", Next: "start the run at the next one",
}

// Again implements [server.Starter]: what of a run's command line a request can say. Limits and rules that it had are kept.
func (st *starter) Again(run *record.Run) *server.Start {
	s, err := st.again(run)
	if err != nil {
		return nil
	}
	if _, _, _, err := st.command(*s); err != nil {
		return nil
	}
	return s
}

func (st *starter) again(run *record.Run) (*server.Start, error) {
	if len(run.Command) < 2 || run.Command[1] != "run" {
		return nil, errors.New("drover run has not started it")
	}
	o, err := parseRunFlags(run.Command[2:])
	if err != nil {
		return nil, err
	}
	s := &server.Start{Folder: run.Folder, Model: o.model, ReadOnly: o.readOnly, Tools: o.tools, Args: o.file.args}
	s.Limits = server.Limits{USD: float64(o.maxUSD), Tokens: int64(o.maxTokens), Turns: int(o.maxTurns), Seconds: time.Duration(o.timeout).Seconds()}
	for _, c := range capabilities {
		if o.permissions.given[c] == "deny" {
			s.Deny = append(s.Deny, c.String())
		}
	}
	if o.file.path == "" {
		details, err := run.Details()
		if err != nil {
			return nil, err
		}
		s.Prompt = details.Prompt
		return s, nil
	}
	path := o.file.path
	if !filepath.IsAbs(path) {
		path = filepath.Join(run.Folder, path)
	}
	for name, f := range st.agents {
		if realPath(f.Path()) == realPath(path) {
			s.Agent = name
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s is not an agent of this server", path)
}

// parseRunFlags reads the flags of a run that was kept.
func parseRunFlags(args []string) (o *runOptions, err error) {
	o = &runOptions{}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.addFlags(flags)
	return o, flags.Parse(args)
}

// Continue implements [server.Starter].
func (st *starter) Continue(ctx context.Context, run *record.Run, text string) (string, error) {
	s, token, err := st.continued(run, text)
	if err != nil {
		return "", err
	}
	return st.start(ctx, *s, token)
}

// continued is the start that continues a run, and the token of its conversation.
func (st *starter) continued(run *record.Run, text string) (s *server.Start, token string, err error) {
	if _, _, err := resumeArguments(run.ID, nil); err != nil {
		p := refused("%s", err)
		p.Status, p.Title, p.Next = http.StatusConflict, http.StatusText(http.StatusConflict), advice.Of(err)
		return nil, "", p
	}
	if token, err = resumeToken(run); err != nil {
		return nil, "", err
	}
	if s, err = st.again(run); err != nil {
		return nil, "", refused("the run cannot be continued here: %s", err)
	}
	if s.Agent == "" {
		s.Prompt = cmp.Or(strings.TrimSpace(text), resumePrompt)
	} else if strings.TrimSpace(text) != "" {
		return nil, "", refused("the agent %s has its own prompt, so the message has no text", s.Agent)
	}
	return s, token, nil
}

// patience is how long runs may take to end with the server.
const patience = 20 * time.Second

// close stops the runs that were started, and waits for them.
func (st *starter) close() error {
	st.mu.Lock()
	st.ending = true
	for _, run := range st.running {
		if run.Signal(os.Interrupt) != nil { // it has ended, or the system has no such signal
			_ = run.Kill()
		}
	}
	st.mu.Unlock()
	over := make(chan struct{})
	go func() {
		st.ended.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-time.After(patience):
	}
	st.mu.Lock()
	n := len(st.running)
	for _, run := range st.running {
		_ = run.Kill()
	}
	st.mu.Unlock()
	<-over
	return fmt.Errorf("%d runs did not end within %s and were killed", n, patience)
}
