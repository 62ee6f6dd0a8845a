// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/drover-agents/drover/advice"
)

func main() {
	only := flag.String("run", "", "run the mutations whose name, promise or test matches this regular expression")
	jobs := flag.Int("j", 2, "mutations at a time")
	list := flag.Bool("list", false, "list the mutations and check that they apply; run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := mutate(ctx, *only, *jobs, *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", advice.Text(err))
		os.Exit(1)
	}
}

func mutate(ctx context.Context, only string, jobs int, list bool) error {
	matches, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	all, err := load(".")
	if err != nil {
		return err
	}
	var chosen []mutation
	var problems []error
	for _, m := range all {
		if !matches.MatchString(fmt.Sprint(m.name, " ", m.shows, " ", m.folder, " ", m.test)) {
			continue
		}
		_, err := m.apply(".")
		problems = append(problems, err, m.declared("."))
		chosen = append(chosen, m)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if list {
		for _, m := range chosen {
			fmt.Printf("%-44s %s %s\t%v\n", m.name, m.folder, m.test, m.shows)
		}
		return nil
	}
	return run(ctx, chosen, max(jobs, 1))
}
