// SPDX-License-Identifier: Apache-2.0

package gateway

import "github.com/drover-agents/drover/event"

// The kinds of events that a gateway tells. Who reads them from JSON gets an [event.Extension].
const (
	KindModelCall  event.Kind = "gateway:model_call"
	KindRefused    event.Kind = "gateway:refused"
	KindLimit      event.Kind = "gateway:limit"
	KindBackOff    event.Kind = "gateway:back_off"
	KindConnection event.Kind = "gateway:connection"
)
