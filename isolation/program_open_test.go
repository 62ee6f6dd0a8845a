// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"net/http"
	"testing"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/gatewaytest"
	"github.com/drover-agents/drover/isolation"
)

// invented is an upstream of another API.
type invented struct{ http.RoundTripper }

func (invented) Name() string        { return "invented" }
func (invented) Wire() *gateway.Wire { return gatewaytest.Wire() }

func TestOpen_UpstreamThatTheProgramDoesNotSpeakIsRefused(t *testing.T) {
	p := programIn(t.TempDir())
	for _, test := range []struct {
		wires   []*gateway.Wire
		refused bool
	}{{nil, false}, {[]*gateway.Wire{gatewaytest.Wire()}, false}, {[]*gateway.Wire{gateway.WireAnthropic, gateway.WireBedrock}, true}} {
		p.Wires = test.wires
		cell, err := (&isolation.Isolation{Upstream: invented{}, Weakest: isolation.LevelHost}).Open(t.Context(), p, isolation.OpenOptions{})
		if err == nil {
			_ = cell.Close()
		}
		if test.refused {
			checkRefused(t, err, "Upstream", "invented")
		} else if err != nil {
			t.Error(err)
		}
	}
}

func TestOpen_ProgramWithoutAModelIsRefused(t *testing.T) {
	_, err := (&isolation.Isolation{Weakest: isolation.LevelHost}).Open(t.Context(), isolation.Program{Dir: t.TempDir()}, isolation.OpenOptions{})
	checkAuthError(t, err, "Program.Upstream")
}
