// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// planted is what the attempts of a [Probe] are after. All of it is gone after remove.
type planted struct {
	shell string
	key   string // a credential that opens nothing
	mark  string // begins the lines that separate the output

	dir, work string
	file      string // outside of the workspace
	written   string // where the script tries to write

	server  net.Listener
	reached atomic.Int64 // how often
	serving sync.WaitGroup

	process *exec.Cmd
	end     func() error // ends the process
}

// plant prepares the machine. The names are new each time, so that nothing is found by chance.
func plant(ctx context.Context, shell string) (_ *planted, err error) {
	p := &planted{shell: shell, key: "sk-ant-probe-" + rand.Text(), mark: "probe-" + rand.Text()}
	defer func() {
		if err != nil {
			p.remove()
		}
	}()
	if err := p.files(); err != nil {
		return nil, err
	}
	if err := p.serve(ctx); err != nil {
		return nil, err
	}
	return p, p.start()
}

func (p *planted) files() (err error) {
	if p.dir, err = os.MkdirTemp("", "drover-probe-"); err != nil {
		return err
	}
	if p.dir, err = filepath.EvalSymlinks(p.dir); err != nil {
		return err
	}
	p.work = filepath.Join(p.dir, "work")
	outside := filepath.Join(p.dir, "outside")
	p.file, p.written = filepath.Join(outside, "secret"), filepath.Join(outside, "written")
	return errors.Join(os.Mkdir(p.work, 0o700), os.Mkdir(outside, 0o700), os.WriteFile(p.file, []byte(p.key), 0o600))
}

// serve greets each connection, on loopback.
func (p *planted) serve(ctx context.Context) (err error) {
	if p.server, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	p.serving.Go(func() {
		for {
			conn, err := p.server.Accept()
			if err != nil {
				return
			}
			p.reached.Add(1)
			_, _ = conn.Write([]byte("reached\n"))
			_ = conn.Close()
		}
	})
	return nil
}

// start starts a process that does nothing, with the key in its environment.
func (p *planted) start() error {
	p.process = exec.Command(p.shell, "--noprofile", "--norc", "-c", "read -r _", p.mark+"-process")
	p.process.Env, p.process.Dir = []string{"PROBE=" + p.key}, "/"
	stdin, err := p.process.StdinPipe()
	if err != nil {
		return err
	}
	if err := p.process.Start(); err != nil {
		return err
	}
	p.end = func() error { return errors.Join(stdin.Close(), p.process.Wait()) }
	return nil
}

func (p *planted) remove() {
	if p.end != nil {
		_ = p.end() // "read" fails at the end of its input, which is what ends it
	}
	if p.server != nil {
		_ = p.server.Close()
		p.serving.Wait()
	}
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}

// script tries everything and prints what succeeded. It does not know the key, which would be in its arguments.
func (p *planted) script(home string) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	parts := []struct{ name, command string }{
		{partFile, "cat " + quote(p.file)},
		{partWrite, "echo written > " + quote(p.written)},
		{partLoopback, fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && cat <&3", p.server.Addr().(*net.TCPAddr).Port)},
		{partProcesses, `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' < "$f"; echo; done`},
		{partEnvironment, "env"},
		{partFiles, "find . " + quote(home) + " -type f -size -1024k -exec cat {} +"},
		{partMemory, `cat /proc/[0-9]*/environ`},
		{partStatus, "cat /proc/self/status"},
		{partInterfaces, "cat /proc/net/dev"},
		{partEnd, ":"},
	}
	var b strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&b, "printf '\\n%%s %%s\\n' %s %s; ( %s ) 2>/dev/null\n", p.mark, part.name, part.command)
	}
	return b.String()
}
