// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/drover-agents/drover/claude/transcript"
)

func ExampleMessages() {
	opts := transcript.Options{Dir: "testdata/real/2.1.325", Project: "/work/demo"}
	messages, err := transcript.Messages(context.Background(), "11111111-2222-4333-8444-555555555555",
		transcript.MessagesOptions{Options: opts})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		fmt.Println(m.Type, m.CWD)
	}
	// Output:
	// user /work/demo
	// assistant /work/demo
	// user /work/demo
	// assistant /work/demo
}

// A session moves to another machine through a store.
func ExampleMaterialise() {
	ctx := context.Background()
	store := transcript.NewMemoryStore() // in earnest, one that both machines reach
	key, err := transcript.Import(ctx, store, "11111111-2222-4333-8444-555555555555",
		transcript.Options{Dir: "testdata/real/2.1.325"})
	if err != nil {
		log.Fatal(err)
	}
	resumed, err := transcript.Materialise(ctx, store, key, transcript.ResumeOptions{WorkDir: "/other/place"})
	if err != nil {
		log.Fatal(err)
	}
	// Here the CLI runs with CLAUDE_CONFIG_DIR=resumed.Dir and --resume=key.SessionID.
	projects, err := os.ReadDir(resumed.ProjectsDir())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(projects[0].Name())
	if err := resumed.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: -other-place
}
