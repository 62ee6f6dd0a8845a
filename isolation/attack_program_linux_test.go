// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackVariable makes this test program the tool of an agent that wants to get out. It does what its
// arguments say, and prints "OPEN" for each protection that does not hold, else why the attempt failed.
const attackVariable = "ISOLATION_TEST_ATTACK"

func init() {
	if os.Getenv(attackVariable) == "" {
		return
	}
	attacks[os.Args[1]](os.Args[2:])
	os.Exit(0)
}

var attacks = map[string]func(args []string){
	"dial":     func(args []string) { pairs(args, dialAttack) },
	"proxy":    proxyAttacks,
	"gateway":  func(args []string) { pairs(args, gatewayAttack) },
	"calls":    func([]string) { callAttacks() },
	"kill":     killAttack,
	"search":   searchAttack,
	"fork":     forkAttack,
	"allocate": allocateAttack,
	"grow":     growAttack,
	"map":      mapAttack,
	"exchange": exchangeAttack,
	"library":  libraryAttack,
	"mcp":      func([]string) { spyServer() },
	"wait":     func([]string) { time.Sleep(time.Minute) },
	"pause":    func([]string) { time.Sleep(500 * time.Millisecond) },
	"blink":    func([]string) { time.Sleep(10 * time.Millisecond) },
	"reach":    func([]string) { reachAttacks() },
	"message":  func(args []string) { printResult(messageAttack(args[0])) },
}

func printResult(err error) {
	if err == nil {
		fmt.Println("OPEN")
		return
	}
	fmt.Println("refused:", err)
}

// messageAttack sends the CLI a message, in capitals, through the socket that it has for other CLIs of the same user.
func messageAttack(text string) error {
	conn, err := net.Dial("unix", os.Getenv("CLAUDE_CODE_MESSAGING_SOCKET"))
	if err != nil {
		return err
	}
	for _, line := range []any{
		map[string]any{"type": "auth", "token": os.Getenv("CLAUDE_CODE_MESSAGING_TOKEN")},
		map[string]any{"type": "user", "from": "uds:" + os.Getenv("CLAUDE_CODE_MESSAGING_SOCKET"), "message": map[string]string{"role": "user", "content": strings.ToUpper(text)}},
	} {
		if err := json.NewEncoder(conn).Encode(line); err != nil {
			return err
		}
	}
	time.Sleep(500 * time.Millisecond) // the CLI looks at who has sent it
	return conn.Close()
}

// pairs makes an attempt with each two arguments.
func pairs(args []string, try func(a, b string) error) {
	for ; len(args) > 1; args = args[2:] {
		fmt.Print(args[0], " ", args[1], ": ")
		printResult(try(args[0], args[1]))
	}
}

// networks are those of servers that are named for what is special about them.
var networks = map[string]string{"path": "unix", "abstract": "unix"}

// dialAttack sends something to a server of the host. UDP alone would not show that no server listens.
func dialAttack(network, address string) error {
	c, err := net.DialTimeout(cmp.Or(networks[network], network), address, 2*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("let me out\n")); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	_, err = c.Read(make([]byte, 1))
	return err
}

// proxyAttacks ask the first argument for each of the others.
func proxyAttacks(args []string) {
	for _, address := range args[1:] {
		fmt.Print(address, ": ")
		printResult(proxyAttack(args[0], address))
	}
}

func proxyAttack(through, address string) error {
	by, err := url.Parse(through)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{Proxy: http.ProxyURL(by)}}
	return answered(client.Get(address))
}

// gatewayAttack uses the run's own token for something that the agent has no business with.
func gatewayAttack(method, path string) error {
	req, err := http.NewRequest(method, os.Getenv("ANTHROPIC_BASE_URL")+path, strings.NewReader(`{}`))
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", os.Getenv("ANTHROPIC_API_KEY"))
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}
	return answered(client.Do(req))
}

// answered is an error for an answer that refuses.
func answered(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	fmt.Printf("%s\n", text)
	return nil
}

// callAttacks tries system calls that lead out or up.
func callAttacks() {
	path := func(text string) uintptr { return uintptr(unsafe.Pointer(&append([]byte(text), 0)[0])) }
	for name, call := range map[string][]uintptr{
		"ptrace init":      {unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1},
		"ptrace parent":    {unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(os.Getppid())},
		"unshare user":     {unix.SYS_UNSHARE, unix.CLONE_NEWUSER},
		"unshare mount":    {unix.SYS_UNSHARE, unix.CLONE_NEWNS},
		"mount":            {unix.SYS_MOUNT, path("none"), path("/tmp"), path("tmpfs"), 0, 0},
		"remount writable": {unix.SYS_MOUNT, path("none"), path("/usr"), 0, unix.MS_REMOUNT | unix.MS_BIND, 0},
		"unmount":          {unix.SYS_UMOUNT2, path("/usr"), unix.MNT_DETACH},
		"chroot":           {unix.SYS_CHROOT, path("/tmp")},
		"keyctl":           {unix.SYS_KEYCTL, 0, ^uintptr(2), 1},
		"add key":          {unix.SYS_ADD_KEY, path("user"), path("x"), path("x"), 1, ^uintptr(2)},
		"ring":             {unix.SYS_IO_URING_SETUP, 1, 0},
		"vsock":            {unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		"packet socket":    {unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0},
		"raw socket":       {unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		"raw socket 6":     {unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
		"bpf":              {unix.SYS_BPF, 0, 0, 0},
		"become root":      {unix.SYS_SETUID, 0},
		"disk":             {unix.SYS_MKNODAT, ^uintptr(99), path("disk"), unix.S_IFBLK | 0o600, 8 << 8},
		"kernel memory":    {unix.SYS_MKNODAT, ^uintptr(99), path("memory"), unix.S_IFCHR | 0o600, 1<<8 | 1},
		"clock":            {unix.SYS_CLOCK_SETTIME, 0, 0},
		"reboot":           {unix.SYS_REBOOT, 0, 0, 0},
	} {
		var a [6]uintptr
		copy(a[:], call[1:])
		_, _, errno := syscall.Syscall6(call[0], a[0], a[1], a[2], a[3], a[4], a[5])
		var err error
		if errno != 0 {
			err = errno
		}
		fmt.Print(name, ": ")
		printResult(err)
	}
}

// reachAttacks tries to read and change the cell's first process and the CLI, which is the ancestor that the
// first process has started.
func reachAttacks() {
	cli := os.Getpid()
	for parent := cli; parent > 1; parent = parentOf(cli) {
		cli = parent
	}
	for _, pid := range []int{1, cli} {
		for _, path := range []string{"mem", "task/" + strconv.Itoa(pid) + "/mem", "fd/1", "oom_score_adj", "comm"} {
			_, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", pid, path), os.O_WRONLY, 0)
			fmt.Print(path, ": ")
			printResult(err)
		}
		for _, path := range []string{"maps", "environ", "fd", "ns/pid", "cwd/."} {
			_, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, path))
			fmt.Print(path, ": ")
			printResult(err)
		}
		pidfd, _ := unix.PidfdOpen(pid, 0)
		for name, call := range map[string][4]uintptr{
			"ptrace": {unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid)}, "write memory": {unix.SYS_PROCESS_VM_WRITEV, uintptr(pid)},
			"take a descriptor": {unix.SYS_PIDFD_GETFD, uintptr(pidfd), 1},
		} {
			_, _, errno := syscall.Syscall6(call[0], call[1], call[2], call[3], 0, 0, 0)
			fmt.Print(name, ": ")
			if errno != 0 {
				printResult(errno)
			} else {
				printResult(nil)
			}
		}
	}
}

func parentOf(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// killAttack has the host look whether anything was hit: the number may be that of a process inside.
func killAttack(args []string) {
	pid, _ := strconv.Atoi(args[0])
	fmt.Println("killed:", syscall.Kill(pid, syscall.SIGKILL))
}

// searchAttack looks for texts, given in hexadecimal so that looking does not spread them, in all files
// of folders and in what /proc shows of every process.
func searchAttack(args []string) {
	var texts [][]byte
	for _, text := range strings.Split(args[0], ",") {
		decoded, _ := hex.DecodeString(text)
		texts = append(texts, decoded)
	}
	looked := 0
	look := func(path string) {
		content, err := os.ReadFile(path)
		if err != nil {
			return
		}
		looked++
		for n, text := range texts {
			if bytes.Contains(content, text) {
				fmt.Printf("text %d is in %s\n", n, path)
			}
		}
	}
	for _, dir := range append(args[1:], os.Getenv("HOME")) {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				look(path)
			}
			return nil
		})
	}
	for _, name := range []string{"environ", "cmdline", "maps", "mountinfo"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + name)
		for _, path := range paths {
			look(path)
		}
	}
	fmt.Println("looked into files:", looked)
}

// forkAttack starts up to so many processes at once, and prints how many it got; some of those it then
// ends, since a CLI that cannot have a thread gives up. With a second argument it makes that file and
// holds on to the rest until the file is gone, for at most 20 seconds.
func forkAttack(args []string) {
	n, _ := strconv.Atoi(args[0])
	var release []func()
	var refused error
	for len(release) < n && refused == nil {
		child := exec.Command("/bin/cat")
		stdin, _ := child.StdinPipe()
		if refused = child.Start(); refused == nil {
			release = append(release, func() { _ = stdin.Close(); _ = child.Wait() })
		}
	}
	started := len(release)
	defer func() {
		for _, f := range release {
			f()
		}
	}()
	for ; refused != nil && len(release) > started-8; release = release[1:] {
		release[0]()
	}
	fmt.Printf("started %d, then %v\n", started, refused)
	if len(args) == 1 {
		return
	}
	for range 2000 { // what else the kernel counts for each user
		if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
			fmt.Println("watches:", err)
			break
		}
	}
	if err := os.WriteFile(args[1], nil, 0o600); err != nil {
		fmt.Println(err)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(args[1]); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// allocateAttack uses so many MiB and holds them for a while, so that a watchdog can see it.
func allocateAttack(args []string) {
	n, _ := strconv.Atoi(args[0])
	var kept [][]byte
	for range n {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		kept = append(kept, block)
	}
	time.Sleep(5 * time.Second)
	fmt.Println("OPEN: allocated", len(kept))
}

// growAttack writes so many files of one MiB into folders in turn, without haste.
func growAttack(args []string) {
	n, _ := strconv.Atoi(args[0])
	for i := range n {
		if err := os.WriteFile(fmt.Sprint(args[1+i%(len(args)-1)], "/grown-", i), make([]byte, 1<<20), 0o600); err != nil {
			fmt.Println("refused:", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Println("OPEN: wrote", n)
}

// spyServer is an MCP server with one tool, which runs a command of the shell.
func spyServer() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				ProtocolVersion string            `json:"protocolVersion"`
				Arguments       map[string]string `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &msg) != nil || msg.ID == nil {
			continue
		}
		var result any = map[string]any{}
		switch msg.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": msg.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]string{"name": "spy", "version": "1"},
			}
		case "tools/list":
			result = map[string]any{"tools": []any{map[string]any{
				"name": "run", "description": "Runs a command.", "inputSchema": map[string]any{"type": "object"},
			}}}
		case "tools/call":
			out, _ := exec.Command("/bin/sh", "-c", msg.Params.Arguments["command"]).CombinedOutput()
			result = map[string]any{"content": []any{map[string]string{"type": "text", "text": "the spy says: " + string(out)}}}
		}
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"jsonrpc": "2.0", "id": msg.ID, "result": result})
	}
}
