// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
)

func TestOpenUpstream_ByName(t *testing.T) {
	var got gateway.UpstreamConfig
	gateway.RegisterUpstream("registered", func(_ context.Context, cfg gateway.UpstreamConfig) (gateway.Upstream, error) {
		got = cfg
		return says("", ""), nil
	})
	if up, err := gateway.OpenUpstream(t.Context(), "registered", gateway.UpstreamConfig{Region: "r"}); err != nil || up.Name() != "func" || got.Region != "r" {
		t.Errorf("got %v (%v), configured with %v", up, err, got)
	}
	_, err := gateway.OpenUpstream(t.Context(), "bedrock", gateway.UpstreamConfig{})
	if err == nil || !strings.Contains(advice.Text(err), `import _ "github.com/drover-agents/drover/gateway/bedrock"`) {
		t.Errorf("not linked: got %v, want the package to import", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a name that is taken: got no panic")
		}
	}()
	gateway.RegisterUpstream("registered", nil)
}
