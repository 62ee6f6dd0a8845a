// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// exampleProject makes a small project on the host, and returns its folder.
func exampleProject() string {
	dir, err := os.MkdirTemp("", "project-")
	if err != nil {
		panic(err)
	}
	for name, content := range map[string]string{
		"src/cart.py": "total = 0\n", "src/notes.txt": "private\n", "tests/test_cart.py": "assert True\n", "tests/helper.py": "\n",
	} {
		at := filepath.Join(dir, name)
		if os.MkdirAll(filepath.Dir(at), 0o755) != nil || os.WriteFile(at, []byte(content), 0o644) != nil {
			panic("the project could not be made")
		}
	}
	return dir
}

// agentWorks simulates a run of an agent in the workspace.
func agentWorks(root string) {
	_ = os.WriteFile(filepath.Join(root, "project/src/cart.py"), []byte("total = sum(prices)\n"), 0o644)
	_ = os.WriteFile(filepath.Join(root, "project/src/prices.py"), []byte("prices = []\n"), 0o644)
}

// Two mounts are filtered and copied, an agent works on them, and what it did is recorded in the session on
// request.
func ExampleSync() {
	ctx, host, s := context.Background(), exampleProject(), session.New(nil)
	defer os.RemoveAll(host)
	w, err := workspace.Open(ctx, &workspace.Options{
		Session: s,
		Mounts: []workspace.HostMount{
			{HostPath: filepath.Join(host, "src"), MountPath: "project/src", Include: []string{"*.py"}, MaxBytes: new(int64(1_000_000))},
			{HostPath: filepath.Join(host, "tests"), MountPath: "project/tests", Include: []string{"test_*.py"}},
		},
		AllowedHostRoots: []string{host},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	agentWorks(w.Root())

	synced, err := workspace.Sync(ctx, s, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("Synced %d files\n", synced.Count)
	files, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	for f := range files.All() {
		fmt.Printf("%s: %d bytes (v%d)\n", f.Path, f.SizeBytes, f.Version)
	}
	// Output:
	// Synced 2 files
	// project/src/cart.py: 20 bytes (v2)
	// project/src/prices.py: 12 bytes (v1)
	// project/tests/test_cart.py: 12 bytes (v1)
}

// What an agent changed is read, and written below a folder of the host.
func ExampleModified() {
	ctx, host, s := context.Background(), exampleProject(), session.New(nil)
	defer os.RemoveAll(host)
	w, err := workspace.Open(ctx, &workspace.Options{
		Session:          s,
		Mounts:           []workspace.HostMount{{HostPath: filepath.Join(host, "src"), MountPath: "project/src"}},
		AllowedHostRoots: []string{host},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	agentWorks(w.Root())
	if _, err := workspace.Sync(ctx, s, w); err != nil {
		fmt.Println(err)
		return
	}
	files, _, err := workspace.Modified(s, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range files {
		text, err := w.ReadText(ctx, f)
		fmt.Printf("%s: %q %v\n", f.Path, text, err)
	}
	state, _ := os.MkdirTemp("", "state-") // where journals are; the default is good for programs
	defer os.RemoveAll(state)
	done, err := w.WriteBack(ctx, &workspace.WriteBackOptions{Dir: filepath.Join(host, "out"), State: state})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range done.Written {
		if rel, _ := filepath.Rel(host, file.Host); filepath.Ext(rel) != "" {
			fmt.Println("written", rel)
		}
	}
	// Output:
	// project/src/cart.py: "total = sum(prices)\n" <nil>
	// project/src/prices.py: "prices = []\n" <nil>
	// written out/project/src/cart.py
	// written out/project/src/prices.py
}

// A dry run reports what would happen. The host changed one file meanwhile, so that nothing is written.
func ExampleWorkspace_WriteBack() {
	ctx, host := context.Background(), exampleProject()
	defer os.RemoveAll(host)
	w, err := workspace.Open(ctx, &workspace.Options{
		Mounts:           []workspace.HostMount{{HostPath: filepath.Join(host, "src"), MountPath: "project/src"}},
		AllowedHostRoots: []string{host},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	agentWorks(w.Root())
	state, _ := os.MkdirTemp("", "state-")
	defer os.RemoveAll(state)
	opts := &workspace.WriteBackOptions{State: state, DryRun: true}
	planned, err := w.WriteBack(ctx, opts)
	fmt.Println(len(planned.Written), "would be written:", err)

	_ = os.WriteFile(filepath.Join(host, "src/cart.py"), []byte("total = 1\n"), 0o644)
	opts.DryRun = false
	_, err = w.WriteBack(ctx, opts)
	fmt.Println(advice.Text(err))
	// Output:
	// 2 would be written: <nil>
	// workspace: nothing was written back, because the host has changed on 1 paths:
	//   project/src/cart.py: was changed in the workspace, and on the host
	//   next: write to another Dir, choose with Only, or set Force to keep the host's side aside
}
