// SPDX-License-Identifier: Apache-2.0

package landlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// The kinds of rules; the package unix has only the first.
const (
	rulePath = unix.LANDLOCK_RULE_PATH_BENEATH
	rulePort = 2
)

// ABI is the version of Landlock in the running kernel; 0 without Landlock.
func ABI() int {
	n, err := version()
	if err != nil {
		return 0
	}
	return n
}

func version() (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Open builds the ruleset as far as the running kernel can and reports what that covers. The file is
// what landlock_restrict_self takes; it is closed on exec, and of no other use. The caller closes it.
func (r Ruleset) Open() (*os.File, Enforced, error) { return r.open(supported) }

// open takes the question whether the kernel knows rights, so that tests can ask an older one.
func (r Ruleset) open(knows func(rights) bool) (*os.File, Enforced, error) {
	abi, err := version()
	if err != nil {
		return nil, Enforced{}, unavailable(err)
	}
	if err := r.check(); err != nil {
		return nil, Enforced{}, err
	}
	if r.BindAnyTCP {
		all := knows
		knows = func(asked rights) bool { return asked != bindRights && all(asked) }
	}
	handled, enforced := cover(abi, knows)
	fd, err := create(handled)
	if err != nil {
		return nil, Enforced{}, unavailable(err)
	}
	file := os.NewFile(uintptr(fd), "landlock ruleset")
	if err := r.fill(fd, handled); err != nil {
		return nil, Enforced{}, errors.Join(err, file.Close())
	}
	return file, enforced, nil
}

func unavailable(err error) error {
	why := "the kernel reports: " + err.Error()
	switch {
	case errors.Is(err, unix.ENOSYS):
		why = "the kernel is older than 5.13 or built without Landlock, or a seccomp filter around this process hides it"
	case errors.Is(err, unix.EOPNOTSUPP):
		why = "Landlock was left out when the kernel started"
	}
	return advice.Wrap(fmt.Errorf("%w: %s (%w)", ErrUnavailable, why, err),
		"install bubblewrap for a full cell, or start the kernel with landlock in its lsm= list")
}

func (r Ruleset) check() error {
	for _, paths := range [][]string{r.ReadOnly, r.ReadWrite, r.Devices} {
		for _, path := range paths {
			if !filepath.IsAbs(path) {
				return advice.Wrap(fmt.Errorf("rule of Landlock for %q: the path is not absolute", path), "give the whole path")
			}
		}
	}
	for _, path := range r.ReadWrite {
		if filepath.Clean(path) == "/" {
			return advice.Wrap(errors.New("rule of Landlock: / would be writable"), "name the folders that are to be written to")
		}
	}
	return nil
}

// cover sorts the features by what the kernel knows.
func cover(abi int, knows func(rights) bool) (rights, Enforced) {
	handled, e := basic.rights, Enforced{ABI: abi, Holds: []string{basic.holds}}
	for _, f := range later {
		if knows(f.rights) {
			handled = handled.with(f.rights)
			e.Holds = append(e.Holds, f.holds)
		} else {
			e.Open = append(e.Open, f.open)
		}
	}
	e.Open = append(e.Open, never...)
	return handled, e
}

// supported asks the kernel by making a ruleset of these rights and throwing it away.
func supported(r rights) bool {
	fd, err := create(r)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// create makes an empty ruleset that takes these rights away. An old kernel knows fewer fields and
// accepts more only if they are zero.
func create(r rights) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&r)), unsafe.Sizeof(r), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func (r Ruleset) fill(fd int, handled rights) error {
	for _, group := range []struct {
		paths []string
		gives uint64
	}{
		{r.ReadOnly, readRights},
		{r.ReadWrite, readRights | writeRights},
		{r.Devices, deviceRights},
	} {
		for _, path := range group.paths {
			if err := r.allowPath(fd, path, group.gives&handled.files); err != nil {
				return advice.Wrap(fmt.Errorf("rule of Landlock for %s: %w", path, err),
					"leave the path out, or make it readable for uid %d", os.Geteuid())
			}
		}
	}
	return r.fillPorts(fd, handled)
}

func (r Ruleset) fillPorts(fd int, handled rights) error {
	for right, ports := range map[uint64][]uint16{
		unix.LANDLOCK_ACCESS_NET_CONNECT_TCP: r.ConnectTCP,
		unix.LANDLOCK_ACCESS_NET_BIND_TCP:    r.BindTCP,
	} {
		if handled.net&right == 0 {
			continue // everything is allowed, and Enforced reports it
		}
		for _, port := range ports {
			rule := struct{ access, port uint64 }{right, uint64(port)}
			if err := addRule(fd, rulePort, unsafe.Pointer(&rule)); err != nil {
				return advice.Wrap(fmt.Errorf("rule of Landlock for TCP port %d: %w", port, err), "leave the port out")
			}
		}
	}
	return nil
}

func (r Ruleset) allowPath(ruleset int, path string, gives uint64) error {
	if handle := r.Handles[path]; handle != nil {
		return allowHandle(ruleset, int(handle.Fd()), gives)
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return allowHandle(ruleset, fd, gives)
}

func allowHandle(ruleset, fd int, gives uint64) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return err
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		gives &= fileRights
	}
	if gives == 0 {
		return nil
	}
	// struct landlock_path_beneath_attr is packed: eight bytes of rights, four of descriptor.
	rule := struct {
		access uint64
		fd     int32
		_      int32
	}{access: gives, fd: int32(fd)}
	return addRule(ruleset, rulePath, unsafe.Pointer(&rule))
}

func addRule(ruleset, kind int, rule unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), uintptr(kind), uintptr(rule), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
