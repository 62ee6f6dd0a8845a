// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"errors"

	"github.com/drover-agents/drover/agent"
)

// RefusedEffort is why a request for a model with an effort is refused before anything is started, or nil.
func RefusedEffort(model, effort string) error {
	a, err := FromConfig(Config{})
	if err != nil {
		return err
	}
	o := a.base
	return errors.Join(overlay(&o, agent.Request{Settings: agent.Settings{Model: model, Effort: effort}}), a.settleEffort(&o, effort))
}

// DenyingHook is denyingHook, for tests.
var DenyingHook = denyingHook
