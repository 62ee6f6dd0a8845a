// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// StartServer starts the embedded server of a folder.
func StartServer(dir string) (*server.Server, error) { return startServer(dir) }

// OpenIn opens a fleet on the embedded server of another, so that tests share one.
func OpenIn(ctx context.Context, ns *server.Server, opts *Options) (*Fleet, error) {
	return connect(ctx, opts, "", nats.InProcessServer(ns))
}
