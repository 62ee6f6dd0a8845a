// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/ident"
)

func (c *Client) openMirror() error {
	if c.opts.Store == nil {
		return nil
	}
	mirror, err := transcript.NewMirror(c.store, transcript.MirrorOptions{
		Dir:     c.opts.configDir(),
		Eager:   c.opts.StoreEager,
		OnError: c.mirrorFailed,
	})
	c.mirror = mirror
	return err
}

// configDir is the folder of the CLI's files, or empty if its environment does not set it.
func (o *Options) configDir() string {
	if dir := o.environ("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	if home := o.environ("HOME"); home != "" {
		return filepath.Join(home, ".claude")
	}
	return ""
}

// stateFile is the CLI's file of its own state where that is not in configDir, else empty.
func (o *Options) stateFile() string {
	home := o.environ("HOME")
	if home == "" || o.environ("CLAUDE_CONFIG_DIR") != "" {
		return ""
	}
	return filepath.Join(home, ".claude.json")
}

// mirrorFailed reports lost entries of the store to the reader of messages. The conversation goes on.
func (c *Client) mirrorFailed(key transcript.Key, err error) {
	c.lost.CompareAndSwap(nil, &err)
	c.log.Warn("claude: the transcript could not be copied to Options.Store", "key", key.String(), "error", err)
	line, merr := json.Marshal(map[string]any{
		"type": "system", "subtype": "mirror_error", "error": err.Error(), "uuid": ident.NewUUID(), "session_id": key.SessionID,
		"key": map[string]string{"projectKey": key.ProjectKey, "sessionId": key.SessionID, "subpath": key.Subpath},
	})
	if merr == nil {
		c.conn.push(0, line)
	}
}

// mirrorLine hands a transcript_mirror line to the recorder and to the mirror.
func (c *Client) mirrorLine(line []byte) {
	var frame struct {
		FilePath string            `json:"filePath"`
		Entries  []json.RawMessage `json:"entries"`
	}
	err := json.Unmarshal(line, &frame)
	if err == nil {
		c.recorder.Copies(frame.FilePath, frame.Entries)
	}
	switch {
	case c.mirror == nil:
	case err != nil:
		c.mirrorFailed(transcript.Key{}, err)
	default:
		c.mirror.Add(frame.FilePath, frame.Entries)
	}
}

// Stored waits until Options.Store has everything that the CLI has written so far. It returns an error
// if entries were lost or ctx ended first; without a Store it returns nil. Call it after a [TurnEnd].
func (c *Client) Stored(ctx context.Context) error {
	if c.mirror == nil {
		return nil
	}
	if err := c.storeLines(ctx); err != nil {
		return err
	}
	if lost := c.lost.Load(); lost != nil {
		return *lost
	}
	return nil
}

// flushMirror writes what has come so far, without waiting. It is called at each result.
func (c *Client) flushMirror() {
	if c.mirror == nil {
		return
	}
	c.flushes.Go(func() { _ = c.storeLines(context.Background()) }) // failures go to mirrorFailed
}

// storeLines writes what has come so far, and then releases the locks of the sessions that the CLI has left.
func (c *Client) storeLines(ctx context.Context) error {
	if err := c.mirror.Flush(ctx); err != nil {
		return err
	}
	if err := c.store.release(false); err != nil {
		c.log.Warn("claude: the lock of an earlier conversation in Options.Store could not be released", "error", err)
	}
	return nil
}
