// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
)

func TestRegisterUpstream_MakerIsUsed(t *testing.T) {
	_, err := gateway.OpenUpstream(t.Context(), "bedrock", gateway.UpstreamConfig{})
	if err == nil || !strings.Contains(advice.Text(err), `import _ "github.com/drover-agents/drover/gateway/bedrock"`) {
		t.Errorf("got %v, want the package to import", err)
	}
	failed := errors.New("no region")
	name := rand.Text() // the registry lives as long as the program
	gateway.RegisterUpstream(name, func(_ context.Context, cfg gateway.UpstreamConfig) (gateway.Upstream, error) {
		if _, ok := cfg.Lookup("HOME"); ok {
			t.Error("a variable is found where the caller gave none")
		}
		if cfg.Region == "" {
			return nil, failed
		}
		return whole(gateway.WireAnthropic), nil
	})
	if _, err := gateway.OpenUpstream(t.Context(), name, gateway.UpstreamConfig{}); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if u, err := gateway.OpenUpstream(t.Context(), name, gateway.UpstreamConfig{Region: "r"}); err != nil || u.Name() != "memory" {
		t.Errorf("got %v, %v", u, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a name is registered twice")
		}
	}()
	gateway.RegisterUpstream(name, nil)
}
