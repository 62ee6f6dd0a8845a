// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// userXattrs is the prefix of the attributes that every user may give to a file. The others are the system's.
const userXattrs = "user."

// maxXattrs bounds the list of names; the kernel's own limit is the same.
const maxXattrs = 64 << 10

// readXattrs reads the attributes of a name in a folder, or with no name those of what is open.
func readXattrs(dir int, name *byte, kind Kind) (string, error) {
	if kind != File && kind != Dir {
		return "", nil // which cannot have any
	}
	var few [256]byte
	names := few[:]
	n, err := listXattrs(dir, name, names)
	if errors.Is(err, unix.ERANGE) {
		names = make([]byte, maxXattrs)
		n, err = listXattrs(dir, name, names)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || err == nil && n == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	attrs := map[string]string{}
	for key := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		if !strings.HasPrefix(key, userXattrs) {
			continue
		}
		value, err := readXattr(dir, name, key)
		if errors.Is(err, unix.ENODATA) {
			continue // removed meanwhile
		}
		if err != nil {
			return "", err
		}
		attrs[key] = value
	}
	return encodeXattrs(attrs), nil
}

// noListxattrat is set where the kernel is older than that call.
var noListxattrat atomic.Bool

func listXattrs(dir int, name *byte, buf []byte) (int, error) {
	if *name == 0 { // the newer call does not take what is open with O_PATH
		n, err := unix.Listxattr(procPath(dir), buf)
		return n, unlessProc(err)
	}
	if !noListxattrat.Load() {
		n, _, errno := unix.Syscall6(unix.SYS_LISTXATTRAT, uintptr(dir), uintptr(unsafe.Pointer(name)),
			unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.ENOSYS, unix.EPERM:
			noListxattrat.Store(true)
		default:
			return 0, errno
		}
	}
	n, err := unix.Llistxattr(procPath(dir)+"/"+unix.BytePtrToString(name), buf)
	return n, unlessProc(err)
}

// unlessProc distinguishes a missing file from a missing /proc, which attributes need.
func unlessProc(err error) error {
	if errors.Is(err, unix.ENOENT) && unix.Access("/proc/self/fd", unix.F_OK) != nil {
		return unix.EOPNOTSUPP
	}
	return err
}

func readXattr(dir int, name *byte, key string) (string, error) {
	var buf [maxXattrs]byte // no value is longer
	var n int
	var err error
	if *name == 0 {
		n, err = unix.Getxattr(procPath(dir), key, buf[:])
	} else {
		n, err = unix.Lgetxattr(procPath(dir)+"/"+unix.BytePtrToString(name), key, buf[:])
	}
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// encodeXattrs writes names and values in the order of the names, each after its length.
func encodeXattrs(attrs map[string]string) string {
	var out []byte
	for _, key := range slices.Sorted(maps.Keys(attrs)) {
		for _, s := range []string{key, attrs[key]} {
			out = binary.AppendUvarint(out, uint64(len(s)))
			out = append(out, s...)
		}
	}
	return string(out)
}

// errXattrs is for text that encodeXattrs did not write.
var errXattrs = errors.New("extended attributes that cannot be read")

func decodeXattrs(encoded string) (map[string]string, error) {
	attrs := map[string]string{}
	rest := []byte(encoded)
	next := func() (string, error) {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return "", errXattrs
		}
		s := string(rest[size : size+int(n)])
		rest = rest[size+int(n):]
		return s, nil
	}
	for len(rest) > 0 {
		key, err := next()
		if err != nil {
			return nil, err
		}
		value, err := next()
		if err != nil || !strings.HasPrefix(key, userXattrs) {
			return nil, errXattrs
		}
		attrs[key] = value
	}
	return attrs, nil
}

// setXattrs makes the attributes of what is open with O_PATH those of want.
func setXattrs(fd int, now, want string) error {
	old, err := decodeXattrs(now)
	if err != nil {
		return err
	}
	attrs, err := decodeXattrs(want)
	if err != nil {
		return err
	}
	path := procPath(fd)
	for key := range old {
		if _, stays := attrs[key]; !stays {
			if err := unix.Removexattr(path, key); err != nil && !errors.Is(err, unix.ENODATA) {
				return err
			}
		}
	}
	for key, value := range attrs {
		if was, there := old[key]; there && was == value {
			continue
		}
		if err := unix.Setxattr(path, key, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}
