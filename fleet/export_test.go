// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/drover-agents/drover/agent"
)

// JournalOf is the journal in a log.
func JournalOf(l *Log) agent.Journal { return &journal{l: l} }

// StartServer starts the embedded server of a folder.
func StartServer(dir string) (*server.Server, error) { return startServer(dir) }

// OpenIn opens a fleet on the embedded server of another, so that tests share one.
func OpenIn(ctx context.Context, ns *server.Server, opts *Options) (*Fleet, error) {
	return connect(ctx, opts, "", nats.InProcessServer(ns))
}

// KeptFiles are the sizes of what calls of a run have changed, and how many contents are objects.
func KeptFiles(ctx context.Context, f *Fleet, id string) (sizes []int, objects int, err error) {
	subject := f.name + ".log." + id
	last, err := f.last(ctx, subject)
	if err != nil {
		return nil, 0, err
	}
	for m, err := range f.messages(ctx, subject, 1, last.seq) {
		if err != nil {
			return nil, 0, err
		}
		if m.kind() == kindFiles {
			sizes = append(sizes, len(m.body))
		}
	}
	all, err := f.objects.List(ctx)
	for _, o := range all {
		if strings.HasPrefix(o.Name, id+".content.") {
			objects++
		}
	}
	return sizes, objects, err
}
