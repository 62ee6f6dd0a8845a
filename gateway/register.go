// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// UpstreamConfig is what an upstream that registered itself is opened with. Each upstream says which
// fields it reads.
type UpstreamConfig struct {
	// Region and Profile are those of a cloud. Empty means what the environment says.
	Region, Profile string
	// ConfigDir is read in place of the usual folder of configuration files.
	ConfigDir string
	// Lookup looks up a variable of the environment. Nil means that of this process.
	Lookup func(string) (string, bool)
	// BaseURL is used in place of the real hosts.
	BaseURL string
}

var registry struct {
	sync.Mutex
	makers map[string]func(context.Context, UpstreamConfig) (Upstream, error)
}

// RegisterUpstream makes an upstream known by name, so that who opens it by [OpenUpstream] need not
// link it. It panics if the name is taken. Call it from init.
func RegisterUpstream(name string, make func(ctx context.Context, cfg UpstreamConfig) (Upstream, error)) {
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.makers[name]; taken {
		panic("gateway: upstream " + name + " is registered twice")
	}
	if registry.makers == nil {
		registry.makers = map[string]func(context.Context, UpstreamConfig) (Upstream, error){}
	}
	registry.makers[name] = make
}

// OpenUpstream makes the upstream that was registered under name.
func OpenUpstream(ctx context.Context, name string, cfg UpstreamConfig) (Upstream, error) {
	registry.Lock()
	make, ok := registry.makers[name]
	known := slices.Sorted(maps.Keys(registry.makers))
	registry.Unlock()
	if !ok {
		return nil, fmt.Errorf("gateway: upstream %q is not linked into this program (it has: %s)\n  next: import _ %q",
			name, strings.Join(known, ", "), "github.com/drover-agents/drover/gateway/"+name)
	}
	return make(ctx, cfg)
}
