// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/isolation"
)

func TestAWSFiles_OnlyNeededOnesAreCopied(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"config": "[default]", "credentials": "[work]", "sso/cache/a.json": "{}",
		"sso/cache/notes.txt": "no", "cli/cache/b.json": "no", "cli/history/h.db": "no", "config.bak": "no",
	} {
		plant(t, filepath.Join(folder, filepath.FromSlash(name)), content)
	}
	home := newHome(t, t.TempDir())
	if err := claudecell.CopyAWS(home, folder); err != nil {
		t.Fatal(err)
	}
	var got []string
	aws := filepath.Join(home.Path(), ".aws")
	err := filepath.WalkDir(aws, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil && runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		name, _ := filepath.Rel(aws, path)
		got = append(got, filepath.ToSlash(name))
		return err
	})
	slices.Sort(got)
	if diff := cmp.Diff([]string{"config", "credentials", "sso/cache/a.json"}, got); diff != "" || err != nil {
		t.Errorf("copied (-want +got): %v\n%s", err, diff)
	}
	if content, _ := os.ReadFile(filepath.Join(aws, "credentials")); string(content) != "[work]" {
		t.Errorf("credentials = %q", content)
	}
}

func TestAWSFiles_LinksElsewhereAreRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	plant(t, outside, "of another user")
	plant(t, filepath.Join(filepath.Dir(outside), "cache", "x.json"), "{}")
	tests := []struct {
		name string
		make func(folder string) error
	}{
		{"a link out", func(folder string) error { return os.Symlink(outside, filepath.Join(folder, "credentials")) }},
		{"a folder that is a link out", func(folder string) error { return os.Symlink(filepath.Dir(outside), filepath.Join(folder, "sso")) }},
		{"a folder in place of a file", func(folder string) error { return os.Mkdir(filepath.Join(folder, "config"), 0o700) }},
		{"a huge file", func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "config"), make([]byte, 1<<20+1), 0o600)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder, home := t.TempDir(), newHome(t, t.TempDir())
			if err := test.make(folder); err != nil {
				t.Fatal(err)
			}
			err := claudecell.CopyAWS(home, folder)
			if err == nil || !strings.Contains(advice.Text(err), folder) {
				t.Errorf("got %v, want an error with the folder", err)
			}
			if _, err := os.Stat(filepath.Join(home.Path(), ".aws", "credentials")); err == nil {
				t.Error("a file was copied")
			}
		})
	}
}

func TestAWSFiles_MayBeMissing(t *testing.T) {
	if err := claudecell.CopyAWS(newHome(t, t.TempDir()), t.TempDir()); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	checkAuthError(t, claudecell.CopyAWS(newHome(t, t.TempDir()), filepath.Join(t.TempDir(), "missing")), "Isolation.AWSConfigPath")
}

func TestAWSFiles_Location(t *testing.T) {
	i := isolation.Isolation{Host: isolation.Host{Home: "/home/ada"}}
	if got, err := claudecell.AWSFolder(&i); got != filepath.Join("/home/ada", ".aws") || err != nil {
		t.Errorf("AWSFolder() = %s, %v", got, err)
	}
	i.AWSConfigPath = "/mnt/aws"
	if got, err := claudecell.AWSFolder(&i); got != "/mnt/aws" || err != nil {
		t.Errorf("AWSFolder() = %s, %v", got, err)
	}
}
