// SPDX-License-Identifier: Apache-2.0

package landlock

import "golang.org/x/sys/unix"

// rights are what a ruleset takes away unless a rule gives it back: the kernel's struct landlock_ruleset_attr.
type rights struct {
	files  uint64
	net    uint64
	scoped uint64
}

func (r rights) with(more rights) rights {
	return rights{r.files | more.files, r.net | more.net, r.scoped | more.scoped}
}

// A feature is something that a kernel may be able to restrict.
type feature struct {
	rights
	holds string
	open  Gap // what it means if the kernel cannot
}

const (
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	nodeRights  = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// fileRights are those that a rule about a single file may give; the others are about folders.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// bindRights are those that Ruleset.BindAnyTCP leaves alone.
var bindRights = rights{net: unix.LANDLOCK_ACCESS_NET_BIND_TCP}

// basic is what every kernel with Landlock knows.
var basic = feature{
	rights: rights{files: (readRights | writeRights | nodeRights) &^ (unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE)},
	holds:  "files can be opened, run, made and removed only where the rules allow it",
}

// later is what kernels learned since then, in that order.
var later = []feature{
	{
		rights: rights{files: unix.LANDLOCK_ACCESS_FS_REFER},
		holds:  "files can be moved and linked between folders only with the rights of both",
		open:   Gap{What: "no file can be moved or linked into another folder, also where the rules allow writing (needs Linux 5.19)"},
	},
	{
		rights: rights{files: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		holds:  "files can be emptied only where the rules allow writing",
		open:   Gap{What: "files can be emptied everywhere the user may write (needs Linux 6.2)"},
	},
	{
		rights: rights{net: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		holds:  "TCP reaches the ports of the rules only",
		open:   Gap{What: "TCP reaches every port of every address (needs Linux 6.7)"},
	},
	{
		rights: bindRights,
		holds:  "TCP ports that a program chooses can be listened on only if the rules name them",
		open:   Gap{What: "every TCP port can be listened on"},
	},
	{
		rights: rights{files: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		holds:  "devices can be controlled only if the rules name them",
		open:   Gap{What: "devices that can be opened can be controlled (needs Linux 6.10)"},
	},
	{
		rights: rights{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
		holds:  "abstract unix sockets reach only what is inside",
		open:   Gap{What: "abstract unix sockets of the host can be reached (needs Linux 6.12)"},
	},
	{
		rights: rights{scoped: unix.LANDLOCK_SCOPE_SIGNAL},
		holds:  "signals reach only what is inside",
		open:   Gap{What: "processes of the same user can be sent signals, also to end them (needs Linux 6.12)"},
	},
	{
		rights: rights{files: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		holds:  "unix sockets with a path reach only what was made inside",
		open:   Gap{What: "unix sockets with a path can be reached wherever the user may, such as those of container and key agents"},
	},
	{
		rights: rights{net: unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
		holds:  "UDP reaches nothing",
		open:   Gap{"UDP reaches every address, so that names asked of a DNS server can carry data out", true},
	},
}

// never is what no version covers for sure. It does not list missing resource limits and detached processes that
// outlive the program: the caller that starts the program handles both.
var never = []Gap{
	{"a port that is allowed is allowed on every address, not only on this machine", false},
	// Rules are about plain TCP and connect: https://docs.kernel.org/userspace-api/landlock.html, erratum 1.
	{"every TCP port can be reached by Multipath TCP and, on many kernels, by TCP Fast Open", true},
	{"sockets of other families, such as vsock and netlink, can be used", true},
	{"keyrings, io_uring and other rarely used parts of the kernel can be used", true},
	{"names, sizes and times of files everywhere can be asked; mode, times and attributes of the user's own files can be changed", false},
	// Rules are about bind, which listen does by itself.
	{"a program can listen, on every address of the machine, on a TCP port that the kernel picks", false},
	{"processes of the host can be seen, with their command lines", false},
}
