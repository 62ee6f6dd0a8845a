// SPDX-License-Identifier: Apache-2.0

package workspace

import "flag"

var update = flag.Bool("update", false, "rewrite what the files in testdata expect")
