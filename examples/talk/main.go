// SPDX-License-Identifier: Apache-2.0

// Command talk is a conversation with an agent about a folder. Each line is a message; one that begins with
// "aside:" goes to a fork, and the conversation does not remember it. Ctrl-C ends the turn and not the
// conversation, and an empty line ends that.
//
//	talk ~/src/shop
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/prompt"
)

type conversation = drover.Conversation[prompt.Text]

var template = prompt.Must[prompt.Text]("talk", "folder",
	prompt.Markdown("task", "Task", "Somebody has questions about this folder. Say hello, and wait for them."))

func main() {
	flag.Parse()
	keys := make(chan os.Signal, 1)
	signal.Notify(keys, os.Interrupt)
	opts := &claude.Options{Dir: cmp.Or(flag.Arg(0), ".")}
	if err := run(context.Background(), os.Stdin, os.Stdout, opts, keys); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with, and what interrupts a turn.
func run(ctx context.Context, in io.Reader, out io.Writer, opts *claude.Options, keys <-chan os.Signal) (err error) {
	p, err := template.Bind()
	if err != nil {
		return err
	}
	c := drover.Converse(claudecode.New(opts), p, nil)
	defer func() { err = errors.Join(err, c.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go interrupt(ctx, c, keys)

	resp, err := c.Begin(ctx)
	for lines := bufio.NewScanner(in); err == nil; resp, err = answer(ctx, c, lines.Text()) {
		fmt.Fprintln(out, resp.Text)
		if !lines.Scan() || lines.Text() == "" {
			return lines.Err()
		}
	}
	return err
}

// answer sends one line and returns the answer. An interrupted turn is not an error.
func answer(ctx context.Context, c *conversation, line string) (resp *drover.Response[prompt.Text], err error) {
	if question, ok := strings.CutPrefix(line, "aside:"); ok {
		if c, err = c.Fork(nil); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		line = question
	}
	resp, err = c.Send(ctx, line)
	if errors.Is(err, drover.ErrInterrupted) {
		resp, err = &drover.Response[prompt.Text]{Summary: drover.Summary{Text: "(interrupted)"}}, nil
	}
	return resp, err
}

func interrupt(ctx context.Context, c *conversation, keys <-chan os.Signal) {
	for {
		select {
		case <-keys:
			c.Interrupt()
		case <-ctx.Done():
			return
		}
	}
}
