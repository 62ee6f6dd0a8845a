// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

func ExampleOpen() {
	host, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(host)
	project := filepath.Join(host, "project")
	_ = os.MkdirAll(filepath.Join(project, "vendor"), 0o755)
	_ = os.WriteFile(filepath.Join(project, "main.go"), []byte("package main\n"), 0o644)
	_ = os.WriteFile(filepath.Join(project, "vendor", "dep.go"), []byte("package dep\n"), 0o644)

	s := session.New(nil)
	limit := int64(1 << 20)
	w, err := workspace.Open(context.Background(), &workspace.Options{
		Session:          s,
		AllowedHostRoots: []string{host},
		Mounts: []workspace.HostMount{
			{HostPath: project, Include: []string{"**/*.go"}, Exclude: []string{"vendor/"}, MaxBytes: &limit},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	fmt.Println(w.Section().Text)
	record, _ := session.Query[workspace.Record](s).Latest()
	fmt.Println("the session knows the folder:", record.TempDir == w.Root())

	_, err = workspace.Open(context.Background(), &workspace.Options{
		AllowedHostRoots: []string{project},
		Mounts:           []workspace.HostMount{{HostPath: host}},
	})
	fmt.Println("outside of the roots:", errors.Is(err, workspace.ErrSecurity))
	// Output:
	// Your working directory is yours alone. It contains copies of the files below. Read and edit the copies; the originals do not change.
	//
	// - `project/`: folder with 1 file, 0 folders, 13 bytes
	//   - `main.go`
	//
	// the session knows the folder: true
	// outside of the roots: true
}

func ExampleWorkspace_Diff() {
	w, err := workspace.Open(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = w.Close() }()
	_ = os.WriteFile(filepath.Join(w.Root(), "hello.txt"), []byte("hello\n"), 0o644)

	summary, err := w.Diff(context.Background(), os.Stdout, nil)
	fmt.Print(summary)
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// created file: hello.txt
	// --- /dev/null
	// +++ b/hello.txt
	// @@ -0,0 +1 @@
	// +hello
	// 1 created, 0 changed, 0 deleted
}
