// SPDX-License-Identifier: Apache-2.0

package filetree

import "context"

// WalkOptions narrows a [Root.Walk]. Nil and the zero value walk everything.
type WalkOptions struct {
	// Skip reports an entry that is left out, with everything below it. Folders that it reports are
	// never opened. It is called from several goroutines.
	Skip func(e Entry) bool
	// From is where to begin. Empty means the root.
	From string
	// NoXattrs leaves the extended attributes out, which cost a system call for each entry.
	NoXattrs bool
	// Exchanges makes a folder that became a link or a file an error. Otherwise it counts as one that disappeared.
	Exchanges bool
}

// Walk returns everything below the root, without the root itself, sorted by path: the entries of a folder follow
// it. Entries that disappear meanwhile are left out. Folders that cannot be read are reported in the error, with all
// others in the list.
func (r *Root) Walk(ctx context.Context, opts *WalkOptions) ([]Entry, error) {
	var o WalkOptions
	if opts != nil {
		o = *opts
	}
	if o.From == "" {
		o.From = "."
	}
	from, err := Clean(o.From)
	if err != nil {
		return nil, err
	}
	o.From = from
	return r.walk(ctx, o)
}
