// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/copytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A HostMount is a file or folder of the host that is copied into a workspace. Only HostPath is needed.
type HostMount struct {
	// HostPath is the file or folder. A relative one begins at the current folder.
	HostPath string
	// MountPath is the path in the workspace. Empty means the base name of HostPath. Mounts may not contain each other.
	MountPath string
	// Include are globs of the files to copy, relative to HostPath, with ** for any number of folders.
	// A glob without a slash matches at any depth: *.go; one that begins with ./ only in HostPath itself.
	// A slash at the end means a folder with all that is in it. Empty means all, empty folders too.
	// The globs of a mount that is a single file are about its base name.
	Include []string
	// Exclude are globs of what is left out, also of what Include names. An excluded folder is not entered.
	Exclude []string
	// MaxBytes bounds what is copied. Nil means no limit, and zero nothing.
	MaxBytes *int64
	// FollowSymlinks copies the targets of links, if they are within the allowed roots. Without it, links that lead
	// out of the mount are refused, and the others are copied as links.
	FollowSymlinks bool
}

// atAnyDepth has globs without a slash match names at any depth.
func atAnyDepth(globs []string) []string {
	deep := slices.Clone(globs)
	for i, g := range deep {
		if !strings.Contains(strings.TrimRight(g, "/"), "/") && strings.Trim(g, "/") != "" {
			deep[i] = "**/" + g
		}
	}
	return deep
}

// cloneMounts are mounts that no caller changes any more.
func cloneMounts(mounts []HostMount) []HostMount {
	mounts = slices.Clone(mounts)
	for i := range mounts {
		m := &mounts[i]
		m.Include, m.Exclude = slices.Clone(m.Include), slices.Clone(m.Exclude)
		if m.MaxBytes != nil {
			m.MaxBytes = new(*m.MaxBytes)
		}
	}
	return mounts
}

// fingerprintOf returns the SHA-256 of the configuration of the mounts, in hexadecimal. Their contents do not count.
func fingerprintOf(mounts []HostMount) string {
	sum := sha256.New()
	for _, m := range mounts {
		limit := "none"
		if m.MaxBytes != nil {
			limit = fmt.Sprint(*m.MaxBytes)
		}
		_, _ = fmt.Fprintf(sum, "%q %q %q %q %s %t\n", m.HostPath, m.MountPath, m.Include, m.Exclude, limit, m.FollowSymlinks)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// A mount is a [HostMount] whose paths are checked.
type mount struct {
	HostMount
	absolute string // HostPath
	resolved string // the same without links
	at       string // MountPath, clean
	plan     *copytree.Plan
}

// planMounts finds out what there is to copy, and refuses what may not be. It writes nothing.
func planMounts(ctx context.Context, opts *Options, roots *hostRoots) ([]*mount, error) {
	var mounts []*mount
	for _, m := range opts.Mounts {
		next, err := newMount(m)
		if err != nil {
			return nil, err
		}
		for _, other := range mounts {
			if err := next.collides(other); err != nil {
				return nil, err
			}
		}
		mounts = append(mounts, next)
	}
	for _, m := range mounts {
		if err := m.makePlan(ctx, roots); err != nil {
			return nil, err
		}
	}
	return mounts, nil
}

// newMount checks what can be checked without looking at the host.
func newMount(m HostMount) (*mount, error) {
	if m.HostPath == "" {
		return nil, advice.Wrap(errors.New("workspace: a mount has no HostPath"), "name the file or folder of the host")
	}
	absolute, err := filepath.Abs(m.HostPath)
	if err != nil {
		return nil, fmt.Errorf("workspace: mounting %q: %w", m.HostPath, err)
	}
	at, err := cleanMountPath(m.MountPath, absolute)
	return &mount{HostMount: m, absolute: absolute, at: at}, err
}

func cleanMountPath(mountPath, hostPath string) (string, error) {
	if mountPath == "" {
		mountPath = filepath.Base(hostPath)
		if mountPath == string(filepath.Separator) {
			return "", &SecurityError{Path: hostPath, Reason: "has no base name to be mounted at", Next: "set MountPath"}
		}
	}
	clean := path.Clean(filepath.ToSlash(mountPath))
	switch {
	case path.IsAbs(clean) || filepath.IsAbs(mountPath):
		return "", &SecurityError{Path: mountPath, Reason: "is a mount path that is absolute", Next: "write it relative to the workspace"}
	case clean == ".":
		return "", &SecurityError{Path: mountPath, Reason: "is a mount path that names nothing in the workspace", Next: "leave MountPath empty for the base name, or name a folder"}
	case !filepath.IsLocal(filepath.FromSlash(clean)) || strings.ContainsRune(clean, 0):
		return "", &SecurityError{Path: mountPath, Reason: "is a mount path that leads out of the workspace", Next: "write it without .."}
	}
	return clean, nil
}

// collides refuses a mount at the path of another, or inside of one: the copy of one file would be the other's.
func (m *mount) collides(other *mount) error {
	if m.at == other.at || strings.HasPrefix(m.at, other.at+"/") || strings.HasPrefix(other.at, m.at+"/") {
		return &SecurityError{
			Path: m.at, Reason: fmt.Sprintf("is the mount path of %q, and collides with %q of %q", m.HostPath, other.at, other.HostPath),
			Next: "give one of them another MountPath",
		}
	}
	return nil
}

func (m *mount) makePlan(ctx context.Context, roots *hostRoots) error {
	if err := m.refuseLink(); err != nil {
		return err
	}
	source, err := roots.find(m.absolute)
	if err != nil {
		return m.explain(err)
	}
	m.resolved = filepath.Join(source.Root.Dir(), filepath.FromSlash(source.Path))
	opts := copytree.Options{Include: atAnyDepth(m.Include), Exclude: atAnyDepth(m.Exclude), MaxBytes: m.MaxBytes}
	if m.FollowSymlinks {
		opts.Follow = roots.find
	}
	m.plan, err = copytree.NewPlan(ctx, source, opts)
	return m.explain(err)
}

// refuseLink refuses a link to a file as the mount itself.
func (m *mount) refuseLink() error {
	if m.FollowSymlinks {
		return nil
	}
	link, err := os.Lstat(m.absolute)
	if err != nil || link.Mode()&fs.ModeSymlink == 0 {
		return nil // what is wrong with it is found later
	}
	if target, err := os.Stat(m.absolute); err == nil && target.IsDir() {
		return nil
	}
	return &SecurityError{Path: m.HostPath, Reason: "is a link", Next: "mount what it leads to, or set FollowSymlinks"}
}

func (m *mount) copyTo(ctx context.Context, root *filetree.Root) (Preview, error) {
	done, err := m.plan.Copy(ctx, root, m.at, previewEntries)
	if err != nil {
		return Preview{}, m.explain(err)
	}
	return Preview{
		HostPath: m.HostPath, ResolvedHost: m.resolved, MountPath: m.at, Directory: m.plan.Directory,
		Entries: done.First, Files: done.Files, Folders: done.Folders, Links: done.Links, BytesCopied: done.Bytes,
	}, nil
}

// explain makes an error of this package of one of the copy.
func (m *mount) explain(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*copytree.Refusal](err); ok {
		return &SecurityError{Path: filepath.Join(m.HostPath, filepath.FromSlash(e.Path)), Reason: e.Reason, Next: e.Next, Err: e.Err}
	}
	if e, ok := errors.AsType[*copytree.TooLarge](err); ok {
		return &BudgetError{Path: m.HostPath, Bytes: e.Bytes, Limit: e.Limit}
	}
	if advice.Of(err) != "" {
		return fmt.Errorf("workspace: mounting %q: %w", m.HostPath, err)
	}
	next := "let this user read it, or leave it out with Exclude"
	if errors.Is(err, fs.ErrNotExist) {
		next = "name a file or folder that is there"
	}
	return advice.Wrap(fmt.Errorf("workspace: mounting %q: %w", m.HostPath, err), "%s", next)
}
