// SPDX-License-Identifier: Apache-2.0

// Limitclient is what a client can reach at best with little code: it speaks just enough of the
// protocol for the benchmark, has no error handling worth the name, and decodes either everything
// with encoding/json or, given the argument "peek", nothing but the type.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/drover-agents/drover/bench/internal/rig"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "peek" {
		rig.Main(conversation(peek))
		return
	}
	rig.Main(conversation(typed))
}

// A look takes a line and reports whether it was the result.
type look func(line []byte, out io.Writer, m *rig.Meter) (result bool, err error)

const handshake = `{"type":"control_request","request_id":"1","request":{"subtype":"initialize","hooks":{"PreToolUse":[{"hookCallbackIds":["hook_0"]}]},"sdkMcpServers":["bench"]}}` + "\n"

const prompt = `{"type":"user","message":{"role":"user","content":"go"},"parent_tool_use_id":null,"session_id":""}` + "\n"

func conversation(at look) rig.Client {
	return func(ctx context.Context, job rig.Job, m *rig.Meter) error {
		cmd := exec.CommandContext(ctx, job.CLI, "--output-format=stream-json", "--input-format=stream-json", "--verbose")
		for name, value := range job.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := converse(bufio.NewReaderSize(stdout, 64<<10), stdin, at, m); err != nil {
			return m.Ended(fmt.Errorf("%w: %w", err, cmd.Wait()))
		}
		_ = stdin.Close()
		return cmd.Wait()
	}
}

func converse(in *bufio.Reader, out io.Writer, at look, m *rig.Meter) error {
	if _, err := io.WriteString(out, handshake); err != nil {
		return err
	}
	if _, err := in.ReadBytes('\n'); err != nil { // the answer to the handshake
		return err
	}
	m.Start()
	if _, err := io.WriteString(out, prompt); err != nil {
		return err
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		result, err := at(line, out, m)
		if err != nil {
			return err
		}
		if result {
			m.Stop()
			return nil
		}
	}
}

// kinds are how lines begin that count as messages. The protocol does not promise that the type comes
// first, so this is a limit and no client.
var kinds = [][]byte{[]byte(`{"type":"stream_event"`), []byte(`{"type":"assistant"`), []byte(`{"type":"user"`)}

// Kept keeps a line for a later reader. It is exported so that no compiler drops the keeping.
var Kept []byte

// peek finds the type of a line and keeps the line.
func peek(line []byte, _ io.Writer, m *rig.Meter) (bool, error) {
	Kept = line
	for _, kind := range kinds {
		if bytes.HasPrefix(line, kind) {
			m.Message(0)
			return false, nil
		}
	}
	return bytes.HasPrefix(line, []byte(`{"duration_api_ms"`)), nil
}
