// SPDX-License-Identifier: Apache-2.0

package claude

import "github.com/drover-agents/drover/launch"

// Processes have the types of package launch.
type (
	// Command is [launch.Command].
	Command = launch.Command
	// Process is [launch.Process].
	Process = launch.Process
	// ExitStatus is [launch.ExitStatus].
	ExitStatus = launch.ExitStatus
	// Spawner is [launch.Spawner].
	Spawner = launch.Spawner
	// HostSpawner is [launch.HostSpawner].
	HostSpawner = launch.HostSpawner
	// LaunchError is [launch.Error]. Where the CLI itself is missing it wraps [ErrCLINotFound].
	LaunchError = launch.Error
)
