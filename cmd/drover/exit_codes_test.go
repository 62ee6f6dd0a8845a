// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// An exitCase is a command line, and what becomes of it.
type exitCase struct {
	args []string
	code int
	kind agent.FailureKind
	line string // the first one that the error has
}

// try runs a command line in this process.
func (c exitCase) try(t *testing.T) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(append([]string{"run"}, c.args...))
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	err := cmd.ExecuteContext(t.Context())
	code := exitCode(t.Context(), err, &errs)
	line, rest, _ := strings.Cut(errs.String(), "\n")
	if code != c.code || !strings.Contains(line, c.line) || !strings.HasPrefix(line, "drover: ") {
		t.Errorf("exit code %d, %q; want %d, %q", code, line, c.code, c.line)
	}
	if n := strings.Count(rest, "  next: "); n == 0 || slices.Contains(c.args, "--stored-login") && strings.Contains(rest, "--stored-login") {
		t.Errorf("the advice is %q", rest)
	}
	if strings.Contains(line, "inference gateway") || c.kind == agent.FailureTimeout && !strings.Contains(rest, "check the connection to the model") {
		t.Errorf("the advice of the CLI, or another that does not fit: %s", &errs)
	}
	if field := goField.FindString(errs.String()); field != "" {
		t.Errorf("the field %s means nothing to a user of the command: %s", field, &errs)
	}
	if kind := kindOf(err); kind != c.kind {
		t.Errorf("kind %q, want %q (%v)", kind, c.kind, err)
	}
}

// goField is a field of a Go struct.
var goField = regexp.MustCompile(`\b[A-Z]\w+\.[A-Z]\w+`)

func kindOf(err error) agent.FailureKind {
	if failed, ok := errors.AsType[*root.EvaluationError](err); ok {
		return failed.Kind
	}
	return claudecode.New(nil).Classify(err).Kind
}

// exitFiles are what the command lines name.
func exitFiles(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{
		"ok.yaml":     "version: 1\nturns:\n  - text: Hello.\n",
		"agent.yaml":  "version: 1\nsections: [{key: t, title: T, text: hi}]\n",
		"render.yaml": "version: 1\nargs: {a: {default: " + strings.Repeat("x", 5000) + "}}\nsections: [{key: t, title: T, text: \"" + strings.Repeat("${a}", 5000) + "\"}]\n",
		"existing":    "",
		"short.yaml":  "version: 1\nturns: []\n",
		"401.yaml":    apiError(401, "invalid x-api-key"),
		"402.yaml":    apiError(402, "the credit is used up"),
		"404.yaml":    apiError(404, "model: nonsense"),
		"429.yaml":    apiError(429, "too many requests"),
		"500.yaml":    apiError(500, "a fault inside"),
		"529.yaml":    apiError(529, "many others ask"),
		"400.yaml":    apiError(400, "prompt is too long: 300000 tokens > 200000 maximum"),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
}

func apiError(status int, message string) string {
	return fmt.Sprintf("version: 1\nturns: []\ndefault: {headers: {x-should-retry: \"false\"}, error: {status: %d, message: %q}}\n", status, message)
}

// refusing is an address of this machine without a listener.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Each case that ends a run has an exit code, a kind and a first line of its own. A wrong value of a flag is 2.
func TestExitCodes_EveryEndHasACodeAKindAndALine(t *testing.T) {
	cli := claudetest.CLI(t)
	t.Setenv(claude.EnvCLI, cli.Path)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("ANTHROPIC_BASE_URL", "")
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Chdir(cli.Work)
	exitFiles(t)
	scripted := func(file string, args ...string) []string {
		return append(args, "--quiet", "--model-script", file, "Do it.")
	}
	ok := func(args ...string) []string { return scripted("ok.yaml", args...) }
	for name, c := range map[string]exitCase{
		"tools":            {ok("--tools", "Bash(ls"), exitUsage, "", `invalid argument "Bash(ls" for "--tools" flag`},
		"tool in small":    {ok("--tools", "bash"), exitUsage, "", "there is no tool bash"},
		"writable root":    {ok("--writable", "/"), exitUsage, agent.FailureRequest, "--writable: the root of the file system"},
		"writable missing": {ok("--writable", "/nowhere"), exitUsage, agent.FailureRequest, "--writable: /nowhere: "},
		"readable proc":    {ok("--readable", "/proc"), exitUsage, agent.FailureRequest, "--readable: /proc: "},
		"readable self":    {ok("--readable", "/proc/self"), exitUsage, agent.FailureRequest, "--readable: /proc/self: would open too much"},
		"writable self":    {ok("--writable", "/proc/self"), exitUsage, agent.FailureRequest, "--writable: /proc/self: would open too much"},
		"writable sys":     {ok("--writable", "/sys/kernel"), exitUsage, agent.FailureRequest, "--writable: /sys/kernel: would open too much"},
		"prompt not UTF-8": {append(ok()[:len(ok())-1], "a\xffb"), exitUsage, "", "the prompt is not UTF-8: byte 1 is 0xff"},
		"arg not UTF-8":    {[]string{"--quiet", "-f", "agent.yaml", "--arg", "a=x\xff"}, exitUsage, "", "the value of a is not UTF-8"},
		"record existing":  {ok("--record", "existing"), exitUsage, "", "--record: recording: open existing: file exists"},
		"record nowhere":   {ok("--record", "/nowhere/x"), exitUsage, agent.FailureRequest, "--record: recording: open /nowhere/x"},
		"replay missing":   {[]string{"--replay", "none", "x"}, exitUsage, "", "--replay: replay: "},
		"replay other":     {[]string{"--replay", "existing", "x"}, exitUsage, "", "is not the header of a recording"},
		"replay pipe":      {[]string{"--replay", "pipe", "x"}, exitUsage, "", "it is not a regular file: it is a pipe"},
		"script pipe":      {scripted("pipe"), exitUsage, "", "it is not a regular file: it is a pipe"},
		"script proc":      {scripted("/proc/self/environ"), exitUsage, "", "it is not a regular file"},
		"schema pipe":      {ok("--schema", "pipe"), exitUsage, "", "it is not a regular file: it is a pipe"},
		"schema empty":     {ok("--schema", "existing"), exitUsage, "", "--schema: existing is no JSON Schema"},
		"file pipe":        {[]string{"-f", "pipe"}, exitUsage, "", "it is not a regular file: it is a pipe"},
		"file device":      {[]string{"-f", "/dev/zero"}, exitUsage, "", "it is not a regular file: it is a device"},
		"file too large":   {[]string{"-f", "render.yaml"}, exitUsage, "", "more than 4194304 bytes with their values"},
		"argument unknown": {[]string{"-f", "agent.yaml", "--arg", "a=b"}, exitUsage, "", "a is not known"},
		"argument pipe":    {[]string{"-f", "agent.yaml", "--arg", "a=@pipe"}, exitUsage, "", "it is not a regular file: it is a pipe"},
		"allowed root":     {[]string{"-f", "agent.yaml", "--allow-root", "/nowhere"}, exitUsage, "", "--allow-root: /nowhere is not a folder"},
		"agent":            {ok("--agent", "nobody"), exitUsage, "", `--agent: no such agent: "nobody"`},
		"model empty":      {ok("--model", ""), exitUsage, "", `for "--model" flag: it is empty`},
		"mode":             {ok("--permission-mode", "acceptEdits"), exitUsage, "", `there is no mode "acceptEdits"`},
		"capability":       {ok("--allow", "nothing"), exitUsage, "", `there is no capability "nothing"`},
		"domain localhost": {ok("--allow-domain", "localhost"), exitUsage, "", "it is this machine"},
		"domain metadata":  {ok("--allow-domain", "169.254.169.254"), exitUsage, "", "it is a link-local address"},
		"domain spelling":  {ok("--allow-domain", "0x7f.1"), exitUsage, "", "it looks like an IPv4 address"},
		"mount missing":    {ok("--mount", "/nowhere"), exitUsage, agent.FailureRequest, "--mount: "},
		"mount outside":    {ok("--mount", "ok.yaml:../x"), exitUsage, "", "leads out of the workspace"},
		"isolation":        {ok("--isolation", "nonsense"), exitUsage, "", "there is no such isolation"},
		"turns":            {ok("--max-turns", "-1"), exitUsage, "", "it must be above zero"},
		"dollars":          {ok("--max-usd", "much"), exitUsage, "", "it is no amount"},
		"tokens":           {ok("--max-tokens", "0"), exitUsage, "", "it must be above zero"},
		"timeout":          {ok("--timeout", "5"), exitUsage, "", "it is not a time"},
		"unknown flag":     {ok("--nonsense"), exitUsage, "", "unknown flag"},
		"empty prompt":     {[]string{"-"}, exitUsage, "", "the prompt is empty"},

		"no credentials":         {[]string{"--quiet", "Do it."}, exitError, agent.FailureAuthentication, "the host has no authentication for the model"},
		"no stored login":        {[]string{"--quiet", "--stored-login", "Do it."}, exitError, agent.FailureAuthentication, "the host has no authentication for the model"},
		"no credentials, file":   {[]string{"--quiet", "-f", "agent.yaml"}, exitError, agent.FailureAuthentication, "the host has no authentication for the model"},
		"refused key":            {scripted("401.yaml"), exitError, agent.FailureAuthentication, "Invalid API key"},
		"unpaid":                 {scripted("402.yaml"), exitError, agent.FailureQuota, "402 the credit is used up"},
		"unknown model":          {scripted("404.yaml", "--model", "nonsense"), exitError, agent.FailureRequest, "selected model (nonsense)"},
		"rate limit":             {scripted("429.yaml"), exitError, agent.FailureRateLimit, "too many requests"},
		"fault":                  {scripted("500.yaml"), exitError, agent.FailureServer, "500 a fault inside"},
		"overloaded":             {scripted("529.yaml"), exitError, agent.FailureOverloaded, "many others ask"},
		"prompt too long":        {scripted("400.yaml"), exitError, agent.FailureTooLarge, "Prompt is too long"},
		"script that has no end": {scripted("short.yaml"), exitError, "", "--model-script: no turn for request 1"},
	} {
		t.Run(name, c.try)
	}
	t.Setenv("ANTHROPIC_API_KEY", claudetest.FakeKey)
	refused := refusing(t)
	t.Setenv("ANTHROPIC_BASE_URL", "http://"+refused)
	for name, c := range map[string]exitCase{
		"resume nonsense":       {[]string{"--quiet", "--resume", "nonsense", "Do it."}, exitUsage, agent.FailureRequest, "--resume: not a token"},
		"resume unknown":        {[]string{"--quiet", "--resume", "11111111-1111-4111-8111-111111111111", "Do it."}, exitUsage, agent.FailureRequest, "--resume: there is no such conversation"},
		"unreachable":           {[]string{"--quiet", "Do it."}, exitError, agent.FailureTimeout, refused + " refused the connection."},
		"resume nonsense, file": {[]string{"--quiet", "--resume", "nonsense", "-f", "agent.yaml"}, exitUsage, agent.FailureRequest, "--resume: not a token"},
	} {
		t.Run(name, c.try)
	}
}

// An agent file cannot by itself let tools reach this machine or the network around it.
// A public address of this machine leads to its servers, just as a private one does.
func TestPrivateAddress_OwnAddressesAreNotPublic(t *testing.T) {
	own := []net.Addr{&net.IPNet{IP: net.IPv4(203, 0, 113, 7), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2001:db8::7"), Mask: net.CIDRMask(64, 128)}}
	for host, want := range map[string]bool{"203.0.113.7": true, "203.0.113.7.": true, "2001:db8::7": true, "203.0.113.8": false, "2001:db8::8": false, "own.example": false} {
		if _, got := privateAddress(host, own); got != want {
			t.Errorf("%s is private: %t", host, got)
		}
	}
}

func TestRunFile_PrivateNetworkNeedsAFlag(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		network string
		flags   []string
		says    string // "" if the file is taken
	}{
		"localhost":              {"localhost: true", nil, "add --allow-localhost"},
		"localhost allowed":      {"localhost: true", []string{"--allow-localhost"}, ""},
		"private":                {"domains: [10.1.2.3]", nil, "add --allow-domain 10.1.2.3"},
		"private allowed":        {"domains: [10.1.2.3]", []string{"--allow-domain", "10.1.2.3"}, ""},
		"another allowed":        {"domains: [10.1.2.3]", []string{"--allow-domain", "10.1.2.4"}, "add --allow-domain 10.1.2.3"},
		"all allowed":            {"domains: [10.1.2.3]", []string{"--allow-domain", "*"}, "add --allow-domain 10.1.2.3"},
		"with a dot":             {"domains: [10.1.2.3.]", nil, "add --allow-domain 10.1.2.3"},
		"172":                    {"domains: [172.16.0.1]", nil, "add --allow-domain"},
		"192":                    {"domains: [192.168.0.1]", nil, "add --allow-domain"},
		"carrier":                {"domains: [100.64.0.1]", nil, "add --allow-domain"},
		"IPv6":                   {`domains: ["fd00::1"]`, nil, "add --allow-domain fd00::1"},
		"IPv6 in long":           {`domains: ["FD00:0::01"]`, nil, "add --allow-domain fd00::1"},
		"IPv6 allowed":           {`domains: ["FD00:0::01"]`, []string{"--allow-domain", "fd00::1"}, ""},
		"second of two":          {"domains: [example.com, 10.1.2.3]", nil, "add --allow-domain"},
		"localhost as a host":    {"domains: [localhost]", nil, "it is this machine"},
		"in capitals":            {"domains: [LOCALHOST]", nil, "it is this machine"},
		"localhost with a dot":   {"domains: [localhost.]", nil, "it is this machine"},
		"below localhost":        {"domains: [a.localhost]", nil, "it is this machine"},
		"all below localhost":    {`domains: ["*.localhost"]`, nil, "it is this machine"},
		"loopback":               {"domains: [127.0.0.1]", nil, "it is this machine"},
		"another loopback":       {"domains: [127.9.9.9]", nil, "it is this machine"},
		"IPv6 loopback":          {`domains: ["::1"]`, nil, "it is this machine"},
		"IPv6 in brackets":       {`domains: ["[::1]"]`, nil, "domains"},
		"mapped":                 {`domains: ["::ffff:10.1.2.3"]`, nil, "write the IPv4 address 10.1.2.3"},
		"mapped loopback":        {`domains: ["::ffff:127.0.0.1"]`, nil, "write the IPv4 address"},
		"NAT64":                  {`domains: ["64:ff9b::a01:203"]`, nil, "cannot be permitted"},
		"zone":                   {`domains: ["fe80::1%eth0"]`, nil, "domains"},
		"link-local":             {`domains: ["fe80::1"]`, nil, "cannot be permitted"},
		"metadata":               {"domains: [169.254.169.254]", nil, "cannot be permitted"},
		"unspecified":            {"domains: [0.0.0.0]", nil, "cannot be permitted"},
		"short":                  {"domains: [127.1]", nil, "domains"},
		"hexadecimal":            {`domains: ["0x7f000001"]`, nil, "looks like an IPv4 address"},
		"octal":                  {`domains: ["0177.0.0.1"]`, nil, "looks like an IPv4 address"},
		"one number":             {`domains: ["2130706433"]`, nil, "looks like an IPv4 address"},
		"digits of another form": {`domains: ["１２７.0.0.1"]`, nil, "domains"},
		"range":                  {`domains: ["10.0.0.0/8"]`, nil, "domains"},
		"public":                 {`domains: [example.com, "*.example.com", 93.184.216.34, "*"]`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
			if err := os.WriteFile(path, []byte("version: 1\nsections: [{key: t, title: T, text: hi}]\nisolation: {network: {"+c.network+"}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			// A file that is taken comes as far as the script, which is not there.
			args := append([]string{"run", "-f", path, "--model-script", filepath.Join(dir, "none")}, c.flags...)
			code, _, errs := command(t, args...)
			want := c.says
			if want == "" {
				want = "--model-script: "
			}
			if code != exitUsage || !strings.Contains(errs, want) {
				t.Errorf("exit code %d, %q; want %q", code, errs, want)
			}
		})
	}
}

// A run that is stopped while it reads a long file does not read it to its end.
func TestSignals_AgentFileIsNotReadToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.yaml")
	wrong := "version: 1\nsections: [" + strings.Repeat("{key: 1}, ", 4000) + "]\n"
	if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopSignal{os.Interrupt})
	if code, _, errs := drover(ctx, t, nil, "run", "-f", path); code != exitInterrupted || strings.Contains(errs, "long.yaml") {
		t.Errorf("exit code %d, %.200q; want %d", code, errs, exitInterrupted)
	}
}

// A signal ends a run that is still reading its files, and the second one ends whatever takes longer.
func TestSignals_EndTheReadingOfFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		never := make(chan struct{})
		defer close(never)
		go cancel(stopSignal{os.Interrupt})
		err := promptly(ctx, func() error { <-never; return nil })
		if known, ok := errors.AsType[ending](err); !ok || known.code != exitInterrupted {
			t.Errorf("got %v, want exit code %d", err, exitInterrupted)
		}
		kill := make(chan struct{})
		go close(kill)
		began := time.Now()
		code := untilKilled(context.WithValue(ctx, killKey{}, (<-chan struct{})(kill)), func() int { <-never; return 0 })
		if took := time.Since(began); code != exitInterrupted || took > timeToDie {
			t.Errorf("exit code %d after %v", code, took)
		}
	})
}
