// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/session"
)

// A Step is what the session of the example is about.
type Step struct{ Text string }

func ExampleOpenFile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	for _, text := range []string{"read the code", "write the test"} {
		store, err := session.OpenFile(filepath.Join(dir, "run.jsonl"), nil)
		if err != nil {
			panic(err)
		}
		s, err := session.Open(store, nil)
		if err != nil {
			panic(err)
		}
		if _, err := s.Dispatch(context.Background(), Step{text}); err != nil {
			panic(err)
		}
		fmt.Println(session.Query[Step](s).Len(), "steps")
		if err := s.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// 1 steps
	// 2 steps
}

func ExampleSalvage() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run.jsonl")
	damaged := `{"drover":"session-log","version":1,"id":"run"}` + "\n" +
		`{"pos":1,"event":{"type":"a"}}` + "\n" + "no record\n" + `{"pos":3,"event":{"type":"c"}}` + "\n"
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		panic(err)
	}

	_, err = session.OpenFile(path, nil)
	fmt.Println("damaged:", errors.Is(err, session.ErrCorrupt))

	kept, movedTo, err := session.Salvage(path)
	fmt.Println("kept:", kept, "moved to:", filepath.Base(movedTo), "error:", err)
	// Output:
	// damaged: true
	// kept: 1 moved to: run.jsonl.damaged error: <nil>
}
