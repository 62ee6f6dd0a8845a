// SPDX-License-Identifier: Apache-2.0

package drover

// TranscriptOptions say what becomes of what an agent writes down.
type TranscriptOptions struct{}

// A Transcript is what an agent wrote down.
type Transcript struct{}
