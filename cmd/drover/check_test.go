// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck_NamesEveryProblem(t *testing.T) {
	want, err := filepath.Abs("testdata/check.golden")
	if err != nil {
		t.Fatal(err)
	}
	dir := mustResolve(t, t.TempDir())
	t.Chdir(dir)
	for name, text := range map[string]string{
		"good.yaml":   "version: 1\n" + aTask,
		"model.yaml":  "version: 1\nturns: [{text: Hello.}]\n",
		"bad.yaml":    "version: 1\nmodell: opus\nlimits: {turns: -1}\n" + aTask,
		"short.yaml":  "version: 1\nturns:\n  - text: Hello.\n    tool: Bash\n  - {}\n",
		"broken.yaml": "version: 1\nsections: [\n",
		"mount.yaml":  "version: 1\n" + aTask + "mounts: [{path: none}]\n",
	} {
		writeFile(t, name, []byte(text))
	}
	if code, out, errs := command(t, "check", "good.yaml", "model.yaml"); code != 0 || out != "good.yaml: ok, an agent file\nmodel.yaml: ok, a model script\n" || errs != "" {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	code, out, errs := command(t, "check", "good.yaml", "bad.yaml", "short.yaml", "broken.yaml", "none.yaml", "mount.yaml", ".")
	if code != exitUsage || out != "good.yaml: ok, an agent file\n" {
		t.Errorf("exit code %d, %q", code, out)
	}
	golden(t, want, strings.ReplaceAll(errs, dir, "DIR"))
	for _, file := range []string{"bad.yaml:2:1: ", "bad.yaml:3:", "short.yaml:", "broken.yaml:", "none.yaml: ", "mount.yaml:3:"} {
		if !strings.Contains("\n"+errs, "\n"+file) {
			t.Errorf("no line begins with %q:\n%s", file, errs)
		}
	}
}
