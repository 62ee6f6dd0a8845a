// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/isolation/internal/jail"
)

func init() { roles["attack"] = attack }

// refused are the errors that each attempt may end with; anything else is a hole in the isolation.
var refused = map[string][]error{
	"read a file of the host":              {unix.ENOENT},
	"read root's home":                     {unix.ENOENT},
	"read shadow":                          {unix.ENOENT},
	"read a home":                          {unix.ENOENT},
	"look at /sys":                         {unix.ENOENT},
	"write to /usr":                        {unix.EROFS},
	"write to /":                           {unix.EROFS},
	"write to /dev":                        {unix.EROFS},
	"write to passwd":                      {unix.EROFS, unix.EACCES},
	"write core_pattern":                   {unix.EACCES, unix.EROFS, unix.EPERM},
	"write sysrq":                          {unix.EACCES, unix.EROFS, unix.EPERM, unix.EIO, unix.ENOENT},
	"read the kernel's memory":             {unix.EACCES, unix.EPERM, unix.ENOENT},
	"reach the host's loopback":            {unix.ECONNREFUSED},
	"reach the host's loopback over IPv6":  {unix.ECONNREFUSED, unix.EADDRNOTAVAIL, unix.EAFNOSUPPORT},
	"reach an address of a network":        {unix.ENETUNREACH},
	"reach an abstract socket of the host": {unix.ECONNREFUSED},
	"reach a path socket of the host":      {unix.ENOENT},
	"signal a process of the host":         {unix.ESRCH},
	"look at a process of the host":        {unix.ENOENT},
	"mount":                                {unix.EPERM},
	"remount":                              {unix.EPERM},
	"unmount":                              {unix.EPERM},
	"open a tree of mounts":                {unix.EPERM},
	"open a file system":                   {unix.EPERM},
	"unshare":                              {unix.EPERM},
	"clone into a namespace":               {unix.EPERM},
	"clone3":                               {unix.ENOSYS},
	"setns":                                {unix.EPERM},
	"chroot":                               {unix.EPERM},
	"pivot_root":                           {unix.EPERM},
	"keyctl":                               {unix.EPERM},
	"add_key":                              {unix.EPERM},
	"io_uring":                             {unix.ENOSYS},
	"vsock":                                {unix.EAFNOSUPPORT},
	"packet socket":                        {unix.EAFNOSUPPORT},
	"raw socket":                           {unix.EPERM},
	"ptrace":                               {unix.EPERM},
	"read another's memory":                {unix.EPERM},
	"bpf":                                  {unix.EPERM},
	"perf":                                 {unix.EPERM},
	"userfaultfd":                          {unix.EPERM},
	"open by handle":                       {unix.EPERM},
	"type into a terminal":                 {unix.EPERM},
	"make a device":                        {unix.EPERM},
	"become root":                          {unix.EPERM, unix.EINVAL},
	"set the clock":                        {unix.EPERM},
	"make a set-uid file by chmod":         {unix.EPERM},
	"make a set-uid file by open":          {unix.EPERM},
	"make a set-uid file by openat2":       {unix.ENOSYS},
	"make a set-uid file by fchmod":        {unix.EPERM},
	"make a set-uid file by fchmodat":      {unix.EPERM},
	"make a set-uid file by fchmodat2":     {unix.EPERM},
	"make a set-gid file by fchmodat2":     {unix.EPERM},
	"make a set-uid file by mknodat":       {unix.EPERM},
}

// attack tries everything and prints what came of it. Its arguments are a file, a port, an abstract
// socket, a path socket and a process of the host.
func attack() {
	for name, try := range attempts(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]) {
		var number syscall.Errno
		if err := try(); errors.As(err, &number) {
			fmt.Printf("%s\t%d\n", name, number)
		} else {
			fmt.Printf("%s\tsucceeded: %v\n", name, err)
		}
	}
}

func attempts(file, port, abstract, socket, pid string) map[string]func() error {
	all := map[string]func() error{
		"read a file of the host":              read(file),
		"read root's home":                     read("/root"),
		"read shadow":                          read("/etc/shadow"),
		"read a home":                          read("/home"),
		"look at /sys":                         read("/sys"),
		"write to /usr":                        write("/usr/bin/attack"),
		"write to /":                           write("/attack"),
		"write to /dev":                        write("/dev/attack"),
		"write to passwd":                      write("/etc/passwd"),
		"write core_pattern":                   write("/proc/sys/kernel/core_pattern"),
		"write sysrq":                          write("/proc/sysrq-trigger"),
		"read the kernel's memory":             read("/proc/kcore"),
		"reach the host's loopback":            dial("tcp4", "127.0.0.1:"+port),
		"reach the host's loopback over IPv6":  dial("tcp6", "[::1]:"+port),
		"reach an address of a network":        dial("udp4", "192.0.2.1:9"), // which sends nothing, also where it succeeds
		"reach an abstract socket of the host": dial("unix", abstract),
		"reach a path socket of the host":      dial("unix", socket),
		"signal a process of the host": func() error {
			number, _ := strconv.Atoi(pid)
			return syscall.Kill(number, 0)
		},
		"look at a process of the host": read("/proc/" + pid + "/cmdline"),
		"clone into a namespace": func() error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
			return cmd.Run()
		},
		"mount":                       func() error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") },
		"remount":                     func() error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
		"unmount":                     func() error { return unix.Unmount("/tmp", unix.MNT_DETACH) },
		"make a device":               func() error { return unix.Mknod("/tmp/device", unix.S_IFBLK|0o600, 0xfe00) },
		"make a set-uid file by open": openSetuid,
		"make a set-uid file by chmod": func() error {
			_ = os.WriteFile("/tmp/setuid", nil, 0o755)
			return unix.Chmod("/tmp/setuid", 0o4755)
		},
	}
	for name, call := range rawCalls {
		all[name] = func() error { return raw(call[0], call[1:]...) }
	}
	return all
}

func openSetuid() error {
	fd, err := unix.Open("/tmp/setuid-open", unix.O_CREAT|unix.O_WRONLY, 0o4755)
	_ = unix.Close(fd)
	return err
}

// rawCalls are system calls by number, with arguments that would do for those that get through.
var rawCalls = map[string][]uintptr{
	"open a tree of mounts":          {unix.SYS_OPEN_TREE, cwd, text("/usr"), unix.OPEN_TREE_CLONE},
	"open a file system":             {unix.SYS_FSOPEN, text("tmpfs"), 0},
	"unshare":                        {unix.SYS_UNSHARE, unix.CLONE_NEWUSER},
	"clone3":                         {unix.SYS_CLONE3, 0, 0},
	"setns":                          {unix.SYS_SETNS, 0, 0},
	"chroot":                         {unix.SYS_CHROOT, text("/tmp")},
	"pivot_root":                     {unix.SYS_PIVOT_ROOT, text("/tmp"), text("/tmp")},
	"keyctl":                         {unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, 0xfffffffd, 0},
	"add_key":                        {unix.SYS_ADD_KEY, text("user"), text("attack"), text("x"), 1, 0xfffffffd},
	"io_uring":                       {unix.SYS_IO_URING_SETUP, 1, 0},
	"vsock":                          {unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0},
	"packet socket":                  {unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0},
	"raw socket":                     {unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
	"ptrace":                         {unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, 0},
	"read another's memory":          {unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 0},
	"bpf":                            {unix.SYS_BPF, 0, 0, 0},
	"perf":                           {unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0},
	"userfaultfd":                    {unix.SYS_USERFAULTFD, 0},
	"open by handle":                 {unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0},
	"type into a terminal":           {unix.SYS_IOCTL, 0, unix.TIOCSTI, text("x")},
	"become root":                    {unix.SYS_SETUID, 0},
	"set the clock":                  {unix.SYS_CLOCK_SETTIME, 0, 0},
	"make a set-uid file by openat2": {unix.SYS_OPENAT2, cwd, text("/tmp/x"), 0, 0},
	// Standard output is not one to change; a filter that lets the call through gives another error, or none.
	"make a set-uid file by fchmod":    {unix.SYS_FCHMOD, 1, 0o4755},
	"make a set-uid file by fchmodat":  {unix.SYS_FCHMODAT, cwd, text("/tmp"), 0o4755},
	"make a set-uid file by fchmodat2": {unix.SYS_FCHMODAT2, cwd, text("/tmp"), 0o4755, 0},
	"make a set-gid file by fchmodat2": {unix.SYS_FCHMODAT2, cwd, text("/tmp"), 0o2755, 0},
	"make a set-uid file by mknodat":   {unix.SYS_MKNODAT, cwd, text("/tmp/node"), unix.S_IFREG | 0o4755, 0},
}

const cwd = ^uintptr(99) // AT_FDCWD

func read(path string) func() error {
	return func() error {
		_, err := os.Open(path)
		return err
	}
}

func write(path string) func() error {
	return func() error { return os.WriteFile(path, []byte("x"), 0o644) }
}

func dial(network, address string) func() error {
	return func() error {
		c, err := net.Dial(network, address)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
}

// text is the address of a string that stays where it is.
func text(s string) uintptr {
	b := append([]byte(s), 0)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

var kept [][]byte

func raw(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 {
		return nil
	}
	return errno
}

// What a hostile program tries from inside fails, each attempt in the way that was meant.
func TestCell_BlocksEveryAttempt(t *testing.T) {
	requireCells(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	tcp := listenOnHost(t, "tcp", "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(tcp)
	abstract := listenOnHost(t, "unix", "@drover-jail-"+strconv.Itoa(os.Getpid()))
	socket := listenOnHost(t, "unix", filepath.Join(dir, "s"))
	s := roleSpec(t, "attack", file, port, abstract, socket, strconv.Itoa(os.Getpid()))
	s.Dir = "/tmp"
	got := map[string]string{}
	for line := range strings.Lines(output(t, s)) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), "\t")
		got[name] = result
	}
	for name, want := range refused {
		number, err := strconv.Atoi(got[name])
		if err != nil || !oneOf(syscall.Errno(number), want) {
			t.Errorf("%s: got %q (%v), want one of %v", name, got[name], syscall.Errno(number), want)
		}
	}
	if len(got) != len(refused) {
		t.Errorf("attempts: got %d, want %d", len(got), len(refused))
	}
}

func oneOf(err error, all []error) bool {
	for _, want := range all {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

func listenOnHost(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// What bubblewrap was started with is readable inside, and shows nothing of the host.
func TestCell_SeesNothingOfItsLauncher(t *testing.T) {
	requireCells(t)
	t.Setenv("JAIL_TEST_SECRET", "secret-of-the-host")
	s := shellSpec(`cat /proc/1/environ /proc/1/cmdline /proc/self/cmdline | tr '\0' ' '; echo; echo ENVIRONMENT; ls /proc | grep -c '^[0-9]'; env; ls -l /proc/self/fd`)
	dir := t.TempDir()
	s.Mounts = []jail.Mount{{Source: dir, Target: "/work"}}
	s.Env = append(s.Env, "VARIABLE=value-of-the-cell")
	got := output(t, s)
	for _, secret := range []string{"secret-of-the-host", dir, "/mnt", "socket:", "memfd"} {
		if strings.Contains(got, secret) {
			t.Errorf("%q can be seen inside:\n%s", secret, got)
		}
	}
	launcher, _, _ := strings.Cut(got, "\nENVIRONMENT\n")
	if strings.Contains(launcher, "value-of-the-cell") {
		t.Errorf("the launcher's arguments hold the environment:\n%s", launcher)
	}
	if !strings.Contains(got, "VARIABLE=value-of-the-cell") {
		t.Errorf("the environment is missing:\n%s", got)
	}
}

// The program has no capabilities, gains none, and is filtered.
func TestCell_HasNoPrivileges(t *testing.T) {
	requireCells(t)
	const none = "0000000000000000"
	want := map[string]string{
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		"NoNewPrivs": "1", "Seccomp": "2", "Uid": "1000\t1000\t1000\t1000", "Gid": "1000\t1000\t1000\t1000",
	}
	got := map[string]string{}
	for line := range strings.Lines(output(t, shellSpec("cat /proc/self/status"))) {
		name, value, _ := strings.Cut(line, ":")
		if _, wanted := want[name]; wanted {
			got[name] = strings.TrimSpace(value)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status inside (-want +got):\n%s", diff)
	}
}

// A program for another set of system calls gets nowhere.
func TestCell_RefusesForeignSystemCalls(t *testing.T) {
	requireCells(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 has a second set of calls: run there")
	}
	got := output(t, roleSpec(t, "x32"))
	if want := strconv.Itoa(int(unix.EPERM)); got != want {
		t.Errorf("x32 getpid: got %q, want errno %s", got, want)
	}
}

func init() {
	roles["x32"] = func() {
		_, _, errno := syscall.RawSyscall(0x40000000+syscall.SYS_GETPPID, 0, 0, 0)
		fmt.Println(int(errno))
	}
}
