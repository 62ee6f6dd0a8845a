// SPDX-License-Identifier: Apache-2.0

package workspace

// RegisterFiles is what the first sync with a session does.
var RegisterFiles = registerFiles

// IsUTF8 tells texts from all else.
var IsUTF8 = isUTF8
