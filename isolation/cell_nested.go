// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

// nestedWait bounds the try of a sandbox in a cell, which takes some milliseconds.
const nestedWait = 20 * time.Second

// nestedArgs make a sandbox as the CLI makes it for a command, as far as that can fail in a cell.
var nestedArgs = []string{
	"bwrap", "--new-session", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev",
	"--unshare-user", "--unshare-net", "--unshare-pid", "--", "/bin/true",
}

// probeNested tries whether the CLI's own sandbox can be had inside of the cell. The CLI itself only looks
// whether its programs are there; every command would then fail alone.
func probeNested(ctx context.Context, spec jail.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, nestedWait)
	defer cancel()
	spec.Path, spec.Args, spec.Listen, spec.Confine = "/usr/bin/env", nestedArgs, nil, nil
	tried, err := jail.Start(ctx, spec)
	if err != nil {
		return nestedError(err)
	}
	defer context.AfterFunc(ctx, func() { _ = tried.Kill() })()
	_ = tried.Stdin().Close()
	output, _ := io.ReadAll(io.LimitReader(tried.Stderr(), 2048))
	_, _ = io.Copy(io.Discard, tried.Stdout())
	if status := tried.Wait(); status.Code != 0 || ctx.Err() != nil {
		return nestedError(fmt.Errorf("bubblewrap ended with %d: %s", status.Code, bytes.TrimSpace(output)))
	}
	return nil
}

func nestedError(err error) error {
	return advice.Wrap(fmt.Errorf("isolation: Sandbox.Nested: the CLI's own sandbox does not work in a cell here: %w", err),
		"leave Nested out; the cell holds without it. It needs bubblewrap and socat below /usr, and user namespaces within user namespaces")
}
