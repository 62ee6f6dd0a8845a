// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/safetext"
)

// inputWait is how long a run that has a prompt waits for the first byte of standard input. Programs that start others may
// leave the pipe open, and never write.
const inputWait = 10 * time.Second

// hasInput reports whether standard input is a pipe, a socket or a file. A terminal and /dev/null are devices.
func hasInput(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0)
}

// addInput puts standard input below the prompt. If it is empty or nothing comes, the prompt stays as it is.
func (o *runOptions) addInput(ctx context.Context, s streams) error {
	text, err := readStarted(ctx, s.in, inputWait)
	switch {
	case errors.Is(err, errNoInput):
		report(s.errs, advice.Wrap(err, "close it with < /dev/null, or write prompt and input to drover run -, which waits"))
		return nil
	case err != nil:
		return inputError("the input", err, "close it, or leave it out with < /dev/null")
	case strings.TrimSpace(text) == "":
		return nil
	}
	if problem := safetext.PromptProblem(text); problem != "" {
		return advice.Wrap(usageError("standard input %s", problem), "send it as UTF-8 text, or leave it out with < /dev/null")
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	o.prompt, o.verbatim = fmt.Sprintf(inputBelow, o.prompt, inputTag(text), text), true
	return nil
}

// closingTags finds closing tags of inputTag, also as a model may read them.
var closingTags = regexp.MustCompile(`(?i)<\s*/\s*stdin(?:-([0-9]+))?\s*>`)

// inputTag is the name of the tags around a text: the first of stdin, stdin-2, stdin-3 and so on whose closing tag the text does not
// have. So no text ends its own block, and the same text has the same tag each time, as --replay needs.
func inputTag(text string) string {
	used := map[string]bool{}
	for _, found := range closingTags.FindAllStringSubmatch(text, -1) {
		used[found[1]] = true
	}
	if !used[""] {
		return "stdin"
	}
	n := 2
	for used[strconv.Itoa(n)] {
		n++
	}
	return fmt.Sprintf("stdin-%d", n)
}

var errNoInput = fmt.Errorf("standard input is open, and nothing came for %v: the run goes on without it", inputWait)

// readStarted is readAll for an input that may never begin: without a byte for that time it returns errNoInput.
func readStarted(ctx context.Context, in io.Reader, wait time.Duration) (string, error) {
	buffered := bufio.NewReader(in)
	first := make(chan error, 1)
	go func() {
		_, err := buffered.Peek(1)
		first <- err
	}()
	select {
	case err := <-first:
		if errors.Is(err, io.EOF) {
			return "", nil
		}
	case <-time.After(wait):
		return "", errNoInput
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return readAll(ctx, buffered)
}

// inputError is the error of reading standard input.
func inputError(what string, err error, next string) error {
	if errors.Is(err, errTooMuch) {
		return advice.Wrap(usageError("reading %s from standard input: %w", what, err), "send less, or name a file in the prompt for the agent to read")
	}
	err = advice.Wrap(fmt.Errorf("reading %s from standard input: %w", what, err), "%s", next)
	if errors.Is(err, errTimeIsUp) {
		return ending{exitLimit, err}
	}
	return err
}

// readArgument reads standard input for the argument that has it as its value, and checks the arguments then.
func (o *runOptions) readArgument(ctx context.Context, in io.Reader) error {
	for name, value := range o.file.args {
		if value != fromInput || o.file.path == "" {
			continue
		}
		text, err := readAll(ctx, in)
		if err != nil {
			return inputError("the argument "+name, err, "send it there, and close it")
		}
		if problem := safetext.PromptProblem(text); problem != "" {
			return advice.Wrap(usageError("--arg: the value of %s %s", name, problem), "give the value as UTF-8 text")
		}
		o.file.args[name], o.verbatim = strings.TrimSuffix(text, "\n"), true
		return promptly(ctx, o.checkArguments) // there is one
	}
	return nil
}
