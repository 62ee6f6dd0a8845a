// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"slices"
)

// A Recorder receives a conversation as it happens, whether or not its messages are read. Its methods must
// not block. Prompt may be called at the same time as the others.
type Recorder interface {
	// Start is called before the process is started. configDir is the folder of the CLI's files, empty if
	// the environment does not set it; copies is whether the CLI reports the lines that it writes there.
	Start(configDir string, copies bool)
	// Prompt receives each prompt as a line, before the CLI gets it.
	Prompt(line []byte)
	// Message receives each message of the CLI, in order. A line that is not JSON has no type. A line above
	// Options.MaxLineBytes ends the conversation: neither it nor later lines are passed.
	Message(line Line)
	// Copies receives the lines that the CLI has added to a transcript file, in the order of the messages.
	Copies(file string, entries []json.RawMessage)
	// End is called when the process has ended, or could not be started. Temporary files are still there.
	End()
}

type noRecorder struct{}

func (noRecorder) Start(string, bool)               {}
func (noRecorder) Prompt([]byte)                    {}
func (noRecorder) Message(Line)                     {}
func (noRecorder) Copies(string, []json.RawMessage) {}
func (noRecorder) End()                             {}

// recordsFiles reports whether a Recorder receives the lines of the CLI's transcript files.
func (o *Options) recordsFiles() bool {
	return o.Recorder != nil && !o.NoPersistence && !slices.Contains(o.ExtraArgs, "--no-session-persistence")
}
