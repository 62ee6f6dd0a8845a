// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/drover-agents/drover/internal/proc"
)

// A tempFolder is a file system in memory that a program can write to.
type tempFolder struct {
	path  string
	bytes int64
}

func (s Spec) tempFolders(binds []bind) []tempFolder {
	temp := cmp.Or(s.TempBytes, defaultTempBytes)
	all := []tempFolder{{"/dev/shm", cmp.Or(s.SharedBytes, defaultSharedBytes)}, {"/tmp", temp}}
	if mountsInVarTmp(binds) {
		all = append(all, tempFolder{"/var/tmp", temp})
	}
	return slices.DeleteFunc(all, func(f tempFolder) bool { // a mount of the caller's covers it
		return slices.ContainsFunc(binds, func(b bind) bool { return b.target == f.path })
	})
}

func mountsInVarTmp(binds []bind) bool {
	return slices.ContainsFunc(binds, func(b bind) bool { return strings.HasPrefix(b.target+"/", "/var/tmp/") })
}

// The number of files in memory is bounded by its size: one for each page, within these bounds. Each costs
// about a KiB of the kernel's memory, which the size does not count.
const (
	minTempFiles = 1024
	maxTempFiles = 1 << 20
	bytesOfFile  = 4096
)

func (f tempFolder) files() int64 { return min(max(f.bytes/bytesOfFile, minTempFiles), maxTempFiles) }

// limitFiles bounds the number of files in the folders. Bubblewrap has no option for it, so that a second
// helper enters the mount namespace of the cell, which belongs to the same user, and changes the mounts.
func limitFiles(namespace *os.File, folders []tempFolder, user *proc.Credential) error {
	helper, err := HelperFile()
	if err != nil {
		return err
	}
	defer func() { _ = helper.Close() }()
	args := []string{"-n", "4"}
	for _, f := range folders {
		args = append(args, "-o", fmt.Sprintf("%s:nr_inodes=%d", f.path, f.files()))
	}
	cmd := exec.Command("/proc/self/fd/3", append(args, "-w")...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{}, []*os.File{helper, namespace}
	if user != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user.UID, Gid: user.GID}}
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("limiting the number of temporary files: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
