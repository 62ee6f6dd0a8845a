// SPDX-License-Identifier: Apache-2.0

package workspace

// RegisterFiles is what the first sync with a session does.
var RegisterFiles = registerFiles

// IsUTF8 reports whether content is text.
var IsUTF8 = isUTF8

// SetTestPoint has a function called at each point of a write-back.
func SetTestPoint(f func(point string)) { testPoint = f }
