// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"

	"github.com/drover-agents/drover/claude"
)

func landlockSupported(context.Context) error { return errors.New("not built yet") }

func (c *Cell) landlock(*claude.Options) (walls, error) { return nil, errors.New("not built yet") }
