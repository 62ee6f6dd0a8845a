// SPDX-License-Identifier: Apache-2.0

package drover

// Telemetry makes traces and metrics of evaluations.
type Telemetry struct{}
