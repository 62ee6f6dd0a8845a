// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// isolationFlags are the flags about isolation. The zero value is a cell without network for tools.
type isolationFlags struct {
	level              levelFlag
	domains            pathList
	localhost          bool
	writable, readable pathList
	storedLogin        bool
}

// requested is the isolation that the flags ask for. A level that is named is the one that is used: neither weaker nor stronger.
func (f *isolationFlags) requested() *isolation.Isolation {
	level := isolation.Level(f.level)
	in := &isolation.Isolation{
		Sandbox: &isolation.Sandbox{
			Disabled: level == isolation.LevelHost, WritablePaths: f.writable, ReadablePaths: f.readable,
		},
		Auth:    isolation.Auth{UseStoredLogin: f.storedLogin},
		Weakest: level, Strongest: level,
	}
	if len(f.domains) > 0 || f.localhost {
		in.Network = &isolation.NetworkPolicy{AllowedDomains: f.domains, AllowLocalhost: f.localhost}
	}
	return in
}

// check refuses flags that have no meaning without isolation.
func (f *isolationFlags) check() error {
	if isolation.Level(f.level) != isolation.LevelHost {
		return nil
	}
	for flag, given := range map[string]bool{
		"--allow-domain": len(f.domains) > 0, "--allow-localhost": f.localhost,
		"--writable": len(f.writable) > 0, "--readable": len(f.readable) > 0,
	} {
		if given {
			return advice.Wrap(usageError("%s has no meaning with --isolation host, where nothing is kept from the agent", flag),
				"leave one of the two out")
		}
	}
	return nil
}

func (f *isolationFlags) warn(errs io.Writer) {
	if isolation.Level(f.level) == isolation.LevelHost {
		fmt.Fprintln(errs, "drover: WARNING: --isolation host has NO ISOLATION: the agent can read and change all that you can, and reach every network")
	}
}

// contains reports whether nothing that the agent starts can outlive it.
func (f *isolationFlags) contains() bool {
	switch level := isolation.Level(f.level); {
	case level == isolation.LevelCell, runtime.GOOS == "windows":
		return true
	case level == isolation.LevelSandbox && os.Geteuid() == 0: // its /proc leaves no room for a namespace
		return false
	}
	return proc.NamespaceAvailable(context.Background(), "")
}

// A levelFlag is an isolation level, by name.
type levelFlag isolation.Level

// oldLevels maps names of earlier versions to the present ones.
var oldLevels = map[string]isolation.Level{"process": isolation.LevelHost, "none": isolation.LevelHost}

func (l *levelFlag) Type() string   { return "name" }
func (l *levelFlag) String() string { return isolation.Level(*l).String() }

func (l *levelFlag) Set(value string) error {
	if now, was := oldLevels[value]; was {
		return advice.Wrap(fmt.Errorf("it is called %s now, and has no isolation", now),
			"leave the flag out to have a cell, or write --isolation %s", now)
	}
	level, err := isolation.ParseLevel(value)
	if err != nil {
		return advice.Wrap(errors.New("there is no such isolation"), "choose among %s", strings.Join(isolation.LevelNames(), ", "))
	}
	*l = levelFlag(level)
	return nil
}

// A pathList is a list of paths or hosts, one for each use of the flag.
type pathList []string

func (l *pathList) Type() string   { return "path" }
func (l *pathList) String() string { return strings.Join(*l, ",") }

func (l *pathList) Set(value string) error {
	if strings.TrimSpace(value) == "" {
		return advice.Wrap(errors.New("it is empty"), "give it a value, or leave the flag out")
	}
	if !slices.Contains(*l, value) {
		*l = append(*l, value)
	}
	return nil
}

// A domainList is a [pathList] of hosts. One use of the flag can have several, separated by commas.
type domainList struct{ *pathList }

func (domainList) Type() string { return "host" }

func (l domainList) String() string {
	if l.pathList == nil { // the zero value, by which a default is recognised
		return ""
	}
	return l.pathList.String()
}

func (l domainList) Set(value string) error {
	for _, domain := range splitList(value) {
		if err := checkHost(domain); err != nil {
			return err
		}
		if err := l.pathList.Set(domain); err != nil {
			return err
		}
	}
	if len(splitList(value)) == 0 {
		return l.pathList.Set("")
	}
	return nil
}

// processes are those that a run has started. They can be ended all at once.
type processes struct {
	mu      sync.Mutex
	started []launch.Process
	over    bool
}

func (p *processes) add(started launch.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = append(p.started, started)
	if p.over {
		_ = started.Kill() // it has an end of its own, if this fails
	}
}

// kill ends all processes, and those that are started from now on.
func (p *processes) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, started := range p.started {
		_ = started.Kill() // what has ended cannot be killed
	}
}

func checkHost(host string) error {
	err := proxy.Policy{Domains: []string{host}}.Validate()
	if err == nil {
		return nil
	}
	_, reason, _ := strings.Cut(err.Error(), `": `)
	return advice.Wrap(errors.New(reason), "%s", advice.Of(err))
}

// checkNetwork refuses an agent file that lets tools reach this machine or the network around it, unless the
// command line allows the same. Names lead to public addresses only: the proxy checks that.
func (o *runOptions) checkNetwork(f *agentfile.File) error {
	if f.Isolation.Network.Localhost && !o.isolation.localhost {
		return advice.Wrap(usageError("%s lets tools reach servers on this machine", f.Path()), "add --allow-localhost if you trust the file")
	}
	own, _ := net.InterfaceAddrs()
	for _, host := range f.Isolation.Network.Domains {
		if err := checkHost(host); err != nil {
			return usageError("%s: isolation.network.domains: %q: %w", f.Path(), host, err)
		}
		addr, is := privateAddress(host, own)
		given := func(flag string) bool { other, is := privateAddress(flag, own); return is && other == addr }
		if is && !slices.ContainsFunc(o.isolation.domains, given) {
			return advice.Wrap(usageError("%s lets tools reach %s, which is an address of a private network or of this machine", f.Path(), addr),
				"add --allow-domain %s if you trust the file", addr)
		}
	}
	return nil
}

// privateAddress returns the address of a host if it is private, or if it is one of this machine's own: servers
// there may answer this machine only. No other spelling of an address is a host.
func privateAddress(host string, own []net.Addr) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(host, "."))
	shared := netip.MustParsePrefix("100.64.0.0/10")
	isOwn := func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr() == addr.Unmap().WithZone("")
	}
	return addr, err == nil && (addr.IsPrivate() || !addr.IsGlobalUnicast() || shared.Contains(addr) || slices.ContainsFunc(own, isOwn))
}
