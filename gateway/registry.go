// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"sync"

	"github.com/drover-agents/drover/advice"
)

// UpstreamConfig is what an upstream that registered itself is opened with. Each takes of it what it needs.
type UpstreamConfig struct {
	// Region is where the models run.
	Region string
	// Profile and ConfigDir locate the credentials of a cloud; empty means its own defaults.
	Profile, ConfigDir string
	// Lookup finds variables of the environment. Nil means none.
	Lookup func(name string) (value string, ok bool)
	// BaseURL replaces the upstream's own address.
	BaseURL string
}

// UpstreamMaker opens an upstream.
type UpstreamMaker func(ctx context.Context, cfg UpstreamConfig) (Upstream, error)

var registry = struct {
	sync.Mutex
	makers map[string]UpstreamMaker
}{makers: map[string]UpstreamMaker{}}

// packages has the package that registers a name, for those that are not in every program.
var packages = map[string]string{"bedrock": "github.com/drover-agents/drover/gateway/bedrock"}

// RegisterUpstream announces an upstream by name, from the init function of its package, so that only
// programs that import the package link it. It panics if the name is taken.
func RegisterUpstream(name string, maker UpstreamMaker) {
	registry.Lock()
	defer registry.Unlock()
	if maker == nil || registry.makers[name] != nil {
		panic(fmt.Sprintf("gateway: the upstream %q is registered twice, or without a maker", name))
	}
	registry.makers[name] = maker
}

// OpenUpstream opens an upstream that has registered itself. The error for one that has not names the package to import.
func OpenUpstream(ctx context.Context, name string, cfg UpstreamConfig) (Upstream, error) {
	registry.Lock()
	maker := registry.makers[name]
	registry.Unlock()
	if maker == nil {
		next := "import the package that registers it"
		if path := packages[name]; path != "" {
			next = fmt.Sprintf("add this to the program: import _ %q", path)
		}
		return nil, advice.Wrap(fmt.Errorf("gateway: this program has no upstream called %q", name), "%s", next)
	}
	if cfg.Lookup == nil {
		cfg.Lookup = func(string) (string, bool) { return "", false }
	}
	return maker(ctx, cfg)
}
