// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// Arguments are the helper's arguments after its name; helper/helper.c explains them.
func (l Launch) Arguments() []string {
	return append(append(l.options(), "--", l.Path), l.Args...)
}

func (l Launch) options() []string {
	var args []string
	descriptor := func(option string, fd int) {
		if fd != 0 {
			args = append(args, option, strconv.Itoa(fd))
		}
	}
	descriptor("-i", l.Host) // before all others
	descriptor("-s", l.Report)
	descriptor("-p", l.Ruleset)
	descriptor("-f", l.Filter)
	descriptor("-d", l.Dir)
	if l.hold {
		args = append(args, "-g", "1")
	}
	for _, a := range l.Listen {
		args = append(args, "-l", a.String())
	}
	for _, r := range l.Limits.resources() {
		args = append(args, "-r", fmt.Sprintf("%d:%d", r.number, r.value))
	}
	for _, m := range l.mounted {
		readOnly := 0
		if m.readOnly {
			readOnly = 1
		}
		args = append(args, "-m", fmt.Sprintf("%d:%d:%d:%d:%s", m.major, m.minor, m.inode, readOnly, m.path))
	}
	return args
}

// Resources that the kernel limits for all processes of a user: queued signals, which timers need too, and
// bytes of message queues. A cell gets a small part, so that other cells and programs of the user work on.
const (
	maxPending      = 1024
	maxMessageBytes = 128 << 10
)

type resource struct {
	number int
	value  int64
}

// resources are the limits as the kernel counts them.
func (l Limits) resources() []resource {
	all := []resource{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_SIGPENDING, maxPending}, {unix.RLIMIT_MSGQUEUE, maxMessageBytes}}
	add := func(number int, value int64) {
		if value > 0 {
			all = append(all, resource{number, value})
		}
	}
	add(unix.RLIMIT_NPROC, int64(l.Processes))
	add(unix.RLIMIT_AS, l.AddressSpace)
	add(unix.RLIMIT_FSIZE, l.FileSize)
	add(unix.RLIMIT_CPU, int64((l.CPU+time.Second-1)/time.Second))
	add(unix.RLIMIT_NOFILE, int64(l.OpenFiles))
	return all
}

// HelperFile opens the helper, a sealed file in memory, for a child to run as /proc/self/fd/N. The caller closes it.
func HelperFile() (*os.File, error) {
	f, err := memoryFile("drover-cell", helperELF, unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 every such file can be run
		f, err = memoryFile("drover-cell", helperELF, 0)
	}
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("putting the cell's helper into memory: %w", err),
			"allow executable memory files (sysctl vm.memfd_noexec=1 or 0)")
	}
	return f, nil
}

// DataFile gives a child data to read: a sealed file in memory that shows up nowhere. The caller closes it.
func DataFile(data []byte) (*os.File, error) {
	f, err := memoryFile("drover-data", data, unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		f, err = memoryFile("drover-data", data, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return f, nil
}

// memoryFile makes a sealed file. It is opened again for reading, because a program that is open for writing cannot run.
func memoryFile(name string, data []byte, flags int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|flags)
	if err != nil {
		return nil, err
	}
	w := os.NewFile(uintptr(fd), name)
	defer func() { _ = w.Close() }()
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK
	if _, err := unix.FcntlInt(w.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, err
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(fd))
}
