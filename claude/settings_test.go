// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

func TestMergeSettings_AddsTheSandbox(t *testing.T) {
	tests := []struct {
		name, settings string
		sandbox        *Sandbox
		want           string
	}{
		{"no sandbox leaves the text alone", `{ "a": 1 }`, nil, `{ "a": 1 }`},
		{"no sandbox leaves a path alone", `/etc/settings.json`, nil, `/etc/settings.json`},
		{"no settings", ``, &Sandbox{}, `{"sandbox":{}}`},
		{"enabled fails where it cannot work", ``, &Sandbox{Enabled: new(true)}, `{"sandbox":{"enabled":true,"failIfUnavailable":true}}`},
		{"unless set otherwise", ``, &Sandbox{Enabled: new(true), FailIfUnavailable: new(false)}, `{"sandbox":{"enabled":true,"failIfUnavailable":false}}`},
		{"or by the settings", `{"sandbox":{"failIfUnavailable":false}}`, &Sandbox{Enabled: new(true)}, `{"sandbox":{"enabled":true,"failIfUnavailable":false}}`},
		{"enabled by the settings", `{"sandbox":{"enabled":true}}`, &Sandbox{}, `{"sandbox":{"enabled":true,"failIfUnavailable":true}}`},
		{"false is written", `{"sandbox":{"enabled":true,"allowUnsandboxedCommands":true}}`, &Sandbox{Enabled: new(false), AllowUnsandboxedCommands: new(false)}, `{"sandbox":{"enabled":false,"allowUnsandboxedCommands":false}}`},
		{"other settings stay, numbers as written", `{"env":{"A":"<b>"},"n":12345678901234567890}`, &Sandbox{}, `{"env":{"A":"<b>"},"n":12345678901234567890,"sandbox":{}}`},
		{
			"deep merge", `{"sandbox":{"network":{"allowLocalBinding":true,"allowedDomains":["a"]}}}`, &Sandbox{Network: &SandboxNetwork{AllowedDomains: []string{"b"}}},
			`{"sandbox":{"network":{"allowLocalBinding":true,"allowedDomains":["b"]}}}`,
		},
		{"an empty list is written", `{"sandbox":{"network":{"allowedDomains":["a"]}}}`, &Sandbox{Network: &SandboxNetwork{AllowedDomains: []string{}}}, `{"sandbox":{"network":{"allowedDomains":[]}}}`},
		{
			"restrictions add up", `{"sandbox":{"filesystem":{"denyRead":["/a","/b"],"denyWrite":["/c"]},"network":{"deniedDomains":["x"]},"credentials":{"envVars":[{"name":"K","mode":"deny"}],"files":[{"path":"/k"}]}}}`,
			&Sandbox{Filesystem: &SandboxFilesystem{DenyRead: []string{"/b", "/d"}, DenyWrite: []string{}}, Network: &SandboxNetwork{DeniedDomains: []string{"y"}}, Credentials: &SandboxCredentials{EnvVars: []SandboxSecret{{Name: "K", Mode: "deny"}, {Name: "L", Mode: "mask"}}, Files: []SandboxSecret{{Path: "/l"}}}},
			`{"sandbox":{"filesystem":{"denyRead":["/a","/b","/d"],"denyWrite":["/c"]},"network":{"deniedDomains":["x","y"]},"credentials":{"envVars":[{"name":"K","mode":"deny"},{"name":"L","mode":"mask"}],"files":[{"path":"/k"},{"path":"/l"}]}}}`,
		},
		{
			"wholes are replaced", `{"sandbox":{"ripgrep":{"command":"rg","args":["-x"]},"network":{"tlsTerminate":{"caCertPath":"/c","caKeyPath":"/k"}}}}`,
			&Sandbox{Ripgrep: &SandboxRipgrep{Command: "grep"}, Network: &SandboxNetwork{TLSTerminate: &SandboxTLSTerminate{CACertPath: "/d"}}},
			`{"sandbox":{"ripgrep":{"command":"grep"},"network":{"tlsTerminate":{"caCertPath":"/d"}}}}`,
		},
		{"settings cannot switch our file limits off", `{"sandbox":{"filesystem":{"disabled":true}}}`, &Sandbox{Filesystem: &SandboxFilesystem{DenyRead: []string{"/a"}}}, `{"sandbox":{"filesystem":{"denyRead":["/a"]}}}`},
		{"nor we theirs", `{"sandbox":{"filesystem":{"denyRead":["/a"]}}}`, &Sandbox{Filesystem: &SandboxFilesystem{Disabled: new(true)}}, `{"sandbox":{"filesystem":{"denyRead":["/a"]}}}`},
		{"one side may contradict itself", ``, &Sandbox{Filesystem: &SandboxFilesystem{Disabled: new(true), DenyRead: []string{"/a"}}}, `{"sandbox":{"filesystem":{"disabled":true,"denyRead":["/a"]}}}`},
		{"a proxy cannot replace our domains", `{"sandbox":{"network":{"httpProxyPort":1,"socksProxyPort":2}}}`, &Sandbox{Network: &SandboxNetwork{AllowedDomains: []string{}}}, `{"sandbox":{"network":{"allowedDomains":[]}}}`},
		{"a proxy alone stays", `{"sandbox":{"network":{"httpProxyPort":1}}}`, &Sandbox{Enabled: new(false)}, `{"sandbox":{"enabled":false,"network":{"httpProxyPort":1}}}`},
		{"unknown keys", `{"sandbox":{"theirs":1}}`, &Sandbox{Extra: map[string]any{"ours": []int{2}, "enabled": true}, Enabled: new(false)}, `{"sandbox":{"theirs":1,"ours":[2],"enabled":false}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mergeSettings(json.RawMessage(tt.settings), tt.sandbox)
			if err != nil {
				t.Fatal(err)
			}
			if tt.sandbox == nil || strings.Contains(tt.want, "12345678901234567890") {
				if string(got) != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				return
			}
			if diff := cmp.Diff(asJSON(t, tt.want), asJSON(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func asJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestMergeSettings_Errors(t *testing.T) {
	tests := map[string]struct {
		settings string
		sandbox  *Sandbox
		want     string
	}{
		"path":     {"/etc/settings.json", &Sandbox{}, "option Settings: the path of a settings file cannot be combined with Sandbox"},
		"not JSON": {`{"a":`, &Sandbox{}, "option Settings: not valid JSON"},
		"two":      {`{} {}`, &Sandbox{}, "more than one value"},
		"extra":    {``, &Sandbox{Extra: map[string]any{"f": func() {}}}, "option Sandbox"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := mergeSettings(json.RawMessage(tt.settings), tt.sandbox)
			if _, ok := errors.AsType[*OptionError](err); !ok || !strings.Contains(advice.Text(err), tt.want) {
				t.Errorf("got %v, want an OptionError with %q", err, tt.want)
			}
		})
	}
}

// Every field of the sandbox types reaches the settings.
func TestSandbox_SendsEveryField(t *testing.T) {
	var s Sandbox
	n := fillAll(reflect.ValueOf(&s).Elem())
	s.Extra = nil
	object, err := s.object()
	if err != nil {
		t.Fatal(err)
	}
	if got := countLeaves(object); got != n {
		t.Errorf("%d of %d fields arrive: %v", got, n, object)
	}
}

// fillAll sets every field to something not zero and returns how many leaves it set.
func fillAll(v reflect.Value) int {
	n := 0
	for i := range v.NumField() {
		f := v.Field(i)
		if v.Type().Field(i).Tag.Get("json") == "-" {
			continue
		}
		if f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct {
			f.Set(reflect.New(f.Type().Elem()))
			n += fillAll(f.Elem())
			continue
		}
		fillLeaf(f)
		n++
	}
	return n
}

func fillLeaf(f reflect.Value) {
	switch f.Kind() {
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	case reflect.String:
		f.SetString("x")
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 0, 0))
	case reflect.Map:
		f.Set(reflect.MakeMap(f.Type()))
	case reflect.Interface:
		f.Set(reflect.ValueOf("x"))
	}
}

func countLeaves(object map[string]any) int {
	n := 0
	for _, v := range object {
		if inner, ok := v.(map[string]any); ok && len(inner) > 0 {
			n += countLeaves(inner)
			continue
		}
		n++
	}
	return n
}

// Row 49: a skill's name cannot smuggle rules into the list of allowed tools.
func TestValidateSkillName_RefusesRules(t *testing.T) {
	good := []string{"review", "plug:ps", "a-b_c.d", "übung", "two words", `a\b`, "a*b"}
	bad := []string{"", " a", "a ", "a\t", "a(b", "a)", "a,b", "x),Bash(*", "a\nb", "a\x00", "\ufeffa", "\x7f", "*", "a:*", "a *", "/a", `a\\b`, `a\`, "\xff", "\xed\xa0\x80"}
	for _, name := range good {
		if err := validateSkillName(name); err != nil {
			t.Errorf("%q refused: %v", name, err)
		}
	}
	for _, name := range bad {
		if err := validateSkillName(name); err == nil {
			t.Errorf("%q accepted", name)
		}
	}
}

// Row 50: ids cannot carry characters that a Windows command interpreter acts on.
func TestValidateWindowsArgument_RefusesShellCharacters(t *testing.T) {
	if err := validateWindowsArgument("Resume", "0b7c1d1e-5f8e-4c33-9a55-0d7a3c1f0001 title (x)"); err != nil {
		t.Errorf("a plain id is refused: %v", err)
	}
	for _, c := range []string{"&", "|", "<", ">", "^", "%", "!", `"`, "\r", "\n"} {
		err := validateWindowsArgument("Resume", "a"+c+"b")
		if _, ok := errors.AsType[*OptionError](err); !ok || !strings.Contains(advice.Text(err), "Resume") {
			t.Errorf("%q: got %v, want an OptionError for Resume", c, err)
		}
	}
}
