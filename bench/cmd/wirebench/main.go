// SPDX-License-Identifier: Apache-2.0

// Wirebench measures clients of the Claude Code CLI beside each other: Drover, the official TypeScript SDK, Go ports, and
// what plain Go can reach at best. One fake CLI feeds all of them the same bytes, in one run, each client in a process of
// its own. It prints one table, and says which of Drover's targets hold.
//
//	go run ./bench/cmd/wirebench            # a minute or two
//	go run ./bench/cmd/wirebench -full      # 200,000 messages
//	go run ./bench/cmd/wirebench -markdown  # also rewrites docs/performance.md
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/drover-agents/drover/bench/internal/rig"
)

type settings struct {
	messages, roundTrips, calls, bigLines, deaths, repeats int
	clients, scenarios                                     *regexp.Regexp
	profiles                                               string
}

func main() {
	s := settings{}
	flag.IntVar(&s.messages, "messages", 40_000, "messages in a stream")
	flag.IntVar(&s.roundTrips, "roundtrips", 8_000, "hooks, and permission questions")
	flag.IntVar(&s.calls, "calls", 4_000, "MCP tool calls")
	flag.IntVar(&s.bigLines, "biglines", 16, "lines of 4 MB")
	flag.IntVar(&s.deaths, "deaths", 20, "deaths of the CLI")
	flag.IntVar(&s.repeats, "repeats", 3, "runs of which the best counts")
	clients := flag.String("clients", "", "only clients whose name matches this expression")
	scenarios := flag.String("scenarios", "", "only scenarios whose name matches: "+fmt.Sprint(allScenarios))
	flag.StringVar(&s.profiles, "profiles", "", "write CPU profiles of the Go clients into this directory; figures then count for nothing")
	full := flag.Bool("full", false, "the full sizes: 200,000 messages, 50,000 round trips, 20,000 calls, 64 big lines")
	markdown := flag.Bool("markdown", false, "rewrite the table in docs/performance.md")
	flag.Parse()
	if *full {
		s.messages, s.roundTrips, s.calls, s.bigLines = 200_000, 50_000, 20_000, 64
	}
	if err := run(s, *clients, *scenarios, *markdown); err != nil {
		fmt.Fprintln(os.Stderr, "wirebench:", err)
		os.Exit(1)
	}
}

func run(s settings, clients, scenarios string, markdown bool) error {
	var err error
	if s.clients, err = regexp.Compile("(?i)" + clients); err != nil {
		return err
	}
	if s.scenarios, err = regexp.Compile(scenarios); err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	w := &workshop{root: root, dir: filepath.Join(root, "bench", ".cache"), profiling: s.profiles != ""}
	all, err := w.build()
	if err != nil {
		return err
	}
	b, err := newBench(s, w)
	if err != nil {
		return err
	}
	defer b.close()
	b.measure(all)
	t := newTable(s, all)
	fmt.Print("\n", t.text())
	if markdown {
		return t.rewrite(filepath.Join(root, "docs", "performance.md"), w.commit())
	}
	return nil
}

// allScenarios is the order of measurement.
var allScenarios = []rig.Scenario{
	rig.Text, rig.Mixed, rig.Big, rig.Hooks, rig.Hooks16, rig.Permissions, rig.MCP, rig.Death,
}
