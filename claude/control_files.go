// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"time"
)

// A RewindResult reports the changes of [Client.RewindFiles].
type RewindResult struct {
	CanRewind bool `json:"canRewind"`
	// Error is why CanRewind is false.
	Error string `json:"error"`
	// FilesChanged is filled by a dry run.
	FilesChanged []string `json:"filesChanged"`
	Insertions   int      `json:"insertions"`
	Deletions    int      `json:"deletions"`
	SkippedLinks int      `json:"skippedLinks"`
}

// RewindFiles restores the files that the agent changed to their state before the user message with the given uuid; with
// dryRun it only reports the changes. It needs file checkpointing; without it the result has CanRewind false and the reason.
func (c *Client) RewindFiles(ctx context.Context, userMessageID string, dryRun bool) (RewindResult, error) {
	return controlRequest[RewindResult](ctx, c, "rewind_files", withField(controlFields{"user_message_id": userMessageID}, "dry_run", dryRun))
}

// ReadFileOptions configures [Client.ReadFile]. The zero value reads text up to the CLI's limit.
type ReadFileOptions struct {
	// MaxBytes cuts the contents. Zero means the CLI's limit.
	MaxBytes int
	// Encoding is "base64" for bytes. Empty means text.
	Encoding string
}

// FileContents is a file as the CLI sees it.
type FileContents struct {
	Contents  string `json:"contents"`
	AbsPath   string `json:"absPath"`
	Truncated bool   `json:"truncated"`
	Encoding  string `json:"encoding"`
	// Lossy is set when bytes that are not text were replaced.
	Lossy bool `json:"lossy"`
}

// ReadFile reads a file through the CLI, which may run elsewhere. Relative paths start at the CLI's working directory.
func (c *Client) ReadFile(ctx context.Context, path string, opt ReadFileOptions) (FileContents, error) {
	f := withField(controlFields{"path": path}, "max_bytes", opt.MaxBytes)
	return controlRequest[FileContents](ctx, c, "read_file", withField(f, "encoding", opt.Encoding))
}

// SeedReadState declares to the CLI that the model knows the file as of mtime: it may edit it without reading it first.
func (c *Client) SeedReadState(ctx context.Context, path string, mtime time.Time) error {
	return c.command(ctx, "seed_read_state", controlFields{"path": path, "mtime": milliseconds(mtime)})
}

// A RepoRoot is a directory inside the working directory that is a project of its own.
type RepoRoot struct {
	Directory      string
	ReloadClaudeMD bool
	ReloadPlugins  bool
	ReloadSkills   bool
}

// RegisterRepoRoot adds a project to the session and returns the directory as the CLI names it.
func (c *Client) RegisterRepoRoot(ctx context.Context, root RepoRoot) (string, error) {
	f := withField(controlFields{"directory": root.Directory}, "reload_claude_md", root.ReloadClaudeMD)
	f = withField(withField(f, "reload_plugins", root.ReloadPlugins), "reload_skills", root.ReloadSkills)
	return controlField[string](ctx, c, "register_repo_root", f, "directory")
}

// FileSuggestions are the files that fit what a user has typed.
type FileSuggestions struct {
	// Suggestions are in the CLI's own form.
	Suggestions []json.RawMessage `json:"suggestions"`
	Cwd         string            `json:"cwd"`
}

// FileSuggestions looks for files to complete query.
func (c *Client) FileSuggestions(ctx context.Context, query string) (FileSuggestions, error) {
	return controlRequest[FileSuggestions](ctx, c, "file_suggestions", controlFields{"query": query})
}
