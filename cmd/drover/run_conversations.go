// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/statefolder"
)

// conversations are what --resume continues. The home of a run is gone with the run, so they are kept in
// a folder of the user's. The zero value keeps nothing.
type conversations struct{ store *transcript.FileStore }

// conversations opens the folder, unless the run has no model to talk of.
func (o *runOptions) conversations(model *modelSource) (*conversations, error) {
	if model.pretended {
		return &conversations{}, nil
	}
	dir, err := o.state, error(nil)
	if dir == "" {
		dir, err = statefolder.Path()
	}
	if err == nil {
		var store *transcript.FileStore
		if store, err = transcript.NewFileStore(filepath.Join(dir, "conversations")); err == nil {
			return &conversations{store}, nil
		}
	}
	return nil, fmt.Errorf("the folder in which conversations are kept: %w\n  next: set XDG_STATE_HOME to a folder that can be written to", err)
}

func (c *conversations) close() error {
	if c.store == nil {
		return nil
	}
	return c.store.Close()
}

// keep has the CLI's conversation kept, at every step: one that breaks off can be continued too.
func (c *conversations) keep(base *claude.Options) {
	if c.store == nil {
		base.NoPersistence = true
		return
	}
	base.Store, base.StoreEager = c.store, true
}
