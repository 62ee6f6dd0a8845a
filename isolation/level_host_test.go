// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

func TestLevelHost_HomeAndEnvironmentStayPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are of Unix")
	}
	cli := claudetest.CLI(t)
	canary := filepath.Join(cli.Root, "canary")
	plant(t, canary, "NO ISOLATION HERE")
	i := isolation.Development()
	i.HomePrefix = "mine-"
	events := playIn(t, cli, i, []try{
		{"home", "Bash", command("echo $HOME $CLAUDE_CONFIG_DIR $TMPDIR"), "/mine-", cli.Home, false},
		{"environ", "Bash", command("env"), "HOME=", "planted-password", false},
		{"harmless", "Bash", command("env"), "HARMLESS_THEME=yes", "", false},
		{"key", "Bash", command("echo key=$ANTHROPIC_API_KEY"), "key=", claudetest.FakeKey, false},
		{"canary", "Bash", command("cat " + canary), "NO ISOLATION HERE", "", false},
	}, func(o *claude.Options) {
		o.AllowedTools = []string{"Bash"}
		around := append(o.Environ(), "DB_PASSWORD=planted-password", "HARMLESS_THEME=yes")
		i.Host.Environ = func() []string { return around }
	})
	protection := oneProtection(t, events, host)
	if missing := strings.Join(protection.Missing, "\n"); !strings.Contains(missing, "NO ISOLATION: ") {
		t.Errorf("missing: %q, want a loud statement that there is no isolation", missing)
	}
	if !slices.Contains(protection.LeftOut, "DB_PASSWORD") {
		t.Errorf("left out: %v, want DB_PASSWORD among it", protection.LeftOut)
	}
}

// fakeBedrock answers nothing; it is there to be found.
type fakeBedrock struct{}

func (fakeBedrock) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("absent") }
func (fakeBedrock) Name() string                                    { return "bedrock" }
func (fakeBedrock) Wire() *gateway.Wire                             { return gateway.WireBedrock }

// needBedrock sees to it that the program has an upstream for Bedrock, if none is linked.
func needBedrock(t *testing.T) {
	t.Helper()
	_, err := gateway.OpenUpstream(t.Context(), "bedrock", gateway.UpstreamConfig{Region: "us-east-1"})
	if err == nil || !strings.Contains(advice.Text(err), "has no upstream called") {
		return
	}
	gateway.RegisterUpstream("bedrock", func(context.Context, gateway.UpstreamConfig) (gateway.Upstream, error) {
		return fakeBedrock{}, nil
	})
}

func TestLevelHost_OnlyItGetsTheAWSFiles(t *testing.T) {
	needBedrock(t)
	user := t.TempDir()
	for _, name := range []string{"config", "credentials", "sso/cache/a.json", "cli/cache/b.json", "notes"} {
		plant(t, filepath.Join(user, ".aws", filepath.FromSlash(name)), "[default]\n")
	}
	machine := isolation.Host{Home: user, Environ: func() []string {
		return []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=us-east-1", "PATH=" + os.Getenv("PATH")}
	}}
	bare := isolation.Host{Home: t.TempDir(), Environ: machine.Environ}
	all := []string{"config", "credentials", "sso/cache/a.json"}
	tests := []struct {
		name  string
		i     isolation.Isolation
		want  []string
		fails string
	}{
		{"without isolation", isolation.Isolation{Weakest: host, Strongest: host, Host: machine}, all, ""},
		{"a folder of another name", isolation.Isolation{Weakest: host, Strongest: host, Host: bare, AWSConfigPath: filepath.Join(user, ".aws")}, all, ""},
		{"no files", isolation.Isolation{Weakest: host, Strongest: host, Host: bare}, nil, ""},
		{"no such folder", isolation.Isolation{Weakest: host, Strongest: host, Host: bare, AWSConfigPath: filepath.Join(user, "none")}, nil, "AWSConfigPath"},
		{"no Bedrock", isolation.Isolation{Weakest: host, Strongest: host, Host: machine, APIKey: planted}, nil, ""},
		{"an upstream of the caller's", isolation.Isolation{Weakest: host, Strongest: host, Host: machine, Upstream: fakeBedrock{}}, nil, ""},
		{"any isolation", isolation.Isolation{Weakest: sandbox, Host: machine}, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.i.TempDir = shortFolder(t)
			c, err := claudecell.Open(t.Context(), &test.i, &claude.Options{Dir: t.TempDir()}, isolation.OpenOptions{})
			if weak, ok := errors.AsType[*isolation.WeakError](err); ok {
				t.Skip(weak)
			}
			if test.fails != "" {
				if err == nil || !strings.Contains(advice.Text(err), test.fails) {
					t.Errorf("got %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if diff := cmp.Diff(test.want, filesBelow(filepath.Join(c.Home().Path(), ".aws"))); diff != "" {
				t.Errorf("AWS files of the home (-want +got):\n%s", diff)
			}
		})
	}
}

// filesBelow are the files in a folder, with slashes; none if there is no such folder.
func filesBelow(dir string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(name))
		}
		return nil
	})
	slices.Sort(found)
	return found
}
