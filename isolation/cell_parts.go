// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gateway/proxy"
)

// sandbox is the sandbox that holds.
func (i *Isolation) sandbox() Sandbox {
	if i.Sandbox == nil {
		return Sandbox{}
	}
	return *i.Sandbox
}

// network is the policy that holds.
func (i *Isolation) network() NetworkPolicy {
	if i.Network == nil {
		return *NoNetwork()
	}
	return *i.Network
}

// proxyPolicy is the policy in the words of the proxy.
func (i *Isolation) proxyPolicy() proxy.Policy {
	n := i.network()
	return proxy.Policy{Domains: n.AllowedDomains, Ports: n.AllowedPorts, Localhost: n.AllowLocalhost}
}

// homeOptions are what the home of a cell is made from.
func (c *Cell) homeOptions(o *claude.Options, judged bool) HomeOptions {
	sandbox := c.isolation.sandbox()
	sandbox.AskBeforeBash = sandbox.AskBeforeBash || judged
	home, _ := c.isolation.Host.home() // without one there is nothing to hide
	return HomeOptions{
		Network: c.isolation.Network, Sandbox: &sandbox, Level: c.level, Workspace: c.dir, AddDirs: o.AddDirs,
		CLI: o.CLIPath, HostHome: home, ProxyPort: httpProxyPort, SOCKSPort: socksProxyPort,
	}
}
