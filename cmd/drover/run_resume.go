// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/cmd/drover/internal/runs"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/terminal"
)

// resumeList is the value of --resume without a token: a person chooses.
const resumeList = "list"

// takeToken takes the token of --resume out of the arguments. A flag that may stand alone has its value behind "=", and a
// token behind a space comes as an argument.
func (o *runOptions) takeToken(args []string) ([]string, error) {
	if o.resume != resumeList {
		return args, nil
	}
	prompts := 1
	if o.file.path != "" {
		prompts = 0
	}
	at := slices.IndexFunc(args, ident.ValidUUID)
	if at < 0 && len(args) > prompts {
		at = 0
	}
	if at < 0 {
		return args, nil
	}
	if err := (textFlag{&o.resume, ""}).Set(args[at]); err != nil {
		return nil, advice.Wrap(usageError("invalid argument %q for %q flag: %w", args[at], "--resume", err), "%s", advice.Of(err))
	}
	return slices.Delete(slices.Clone(args), at, at+1), nil
}

// A keptConversation is one that can be continued.
type keptConversation struct {
	token, words string // words are the first of its first prompt
	changed      time.Time
}

// keptConversations are those of a folder, the latest first.
func (o *runOptions) keptConversations(ctx context.Context, folder string) ([]keptConversation, error) {
	c, err := o.conversations(&modelSource{})
	if err != nil {
		return nil, err
	}
	store := newProjectStore(c.store, folder)
	store.dir = c.dir
	summaries, err := store.ListSummaries(ctx, "")
	if err = errors.Join(err, c.close()); err != nil {
		return nil, fmt.Errorf("the conversations of this folder: %w", err)
	}
	var found []keptConversation
	for _, s := range summaries {
		if info := s.Info(); !s.IsSidechain {
			found = append(found, keptConversation{info.SessionID, info.FirstPrompt, info.LastModified})
		}
	}
	slices.SortFunc(found, func(a, b keptConversation) int { return b.changed.Compare(a.changed) })
	return found, nil
}

// line is "5 minutes ago   6f9619ff-…  What does this", at most width columns as far as the width of characters is 1.
func (c keptConversation) line(width int) string {
	line := fmt.Sprintf("%-15s %s  %s", runs.Ago(time.Since(c.changed)), c.token, safetext.Line(strings.Join(strings.Fields(c.words), " ")))
	if runes := []rune(line); width > 0 && len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return line
}

// listedConversations is how many are listed.
const listedConversations = 20

// chooseConversation sets the token for --continue, and for --resume without one. folder is the current one.
func (o *runOptions) chooseConversation(ctx context.Context, s streams, folder string) error {
	flag := "--resume"
	switch {
	case o.last:
		flag = "--continue"
	case o.resume != resumeList:
		return nil
	}
	found, err := o.keptConversations(ctx, folder)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return advice.Wrap(usageError("%s: there is no conversation of this folder", flag), "leave the flag out to begin one")
	case o.last:
		o.resume = found[0].token
		return nil
	}
	found = found[:min(len(found), listedConversations)]
	if terminal.Is(s.in) && s.screen != nil {
		o.resume, err = choose(ctx, s, found)
		return err
	}
	list := ""
	for _, c := range found {
		list += "\n  " + c.line(plainList)
	}
	return advice.Wrap(usageError("--resume: the token is missing, and there is no terminal to choose one; this folder has%s", list),
		`drover run --resume %s "…", or --continue for the latest`, found[0].token)
}

// plainList is the width of a list that is not on a terminal.
const plainList = 120

// choose lets a person choose. Without an answer nothing is begun.
func choose(ctx context.Context, s streams, found []keptConversation) (token string, err error) {
	width := terminal.Width(s.screen)
	fmt.Fprintln(s.screen, "Conversations of this folder, the latest first:")
	for i, c := range found {
		fmt.Fprintf(s.screen, "%4d  %s\n", i+1, c.line(width-6))
	}
	for {
		fmt.Fprintf(s.screen, "Continue which one? [1-%d, Enter for 1] ", len(found))
		line, err := readLine(ctx, s.in)
		if err != nil {
			fmt.Fprintln(s.screen)
			return "", ending{exitInterrupted, errors.New("stopped: no conversation was chosen")}
		}
		line = strings.TrimSpace(line)
		if line == "" {
			return found[0].token, nil
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(found) {
			return found[n-1].token, nil
		}
	}
}

// readLine reads one line of a terminal and nothing behind it.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		var line []byte
		for b := make([]byte, 1); ; {
			if _, err := io.ReadFull(in, b); err != nil || b[0] == '\n' {
				done <- read{string(line), err}
				return
			}
			line = append(line, b[0])
		}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// completeTokens offers the conversations of the current folder.
func completeTokens(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	folder, err := workFolder()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := new(runOptions).keptConversations(cmd.Context(), folder)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []string
	for _, c := range found[:min(len(found), listedConversations)] {
		if strings.HasPrefix(c.token, typed) {
			offers = append(offers, cobra.CompletionWithDesc(c.token, runs.Ago(time.Since(c.changed))+": "+safetext.Line(strings.Join(strings.Fields(c.words), " "))))
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeBareResume offers tokens behind --resume and a space.
func completeBareResume(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if cmd.Flag("resume").Value.String() == resumeList && !slices.ContainsFunc(args, ident.ValidUUID) {
		return completeTokens(cmd, args, typed)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
