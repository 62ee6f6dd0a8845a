// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

func ExampleDevelopment() {
	i := isolation.Development()
	fmt.Println(i.Weakest, i.Network.AllowedDomains, i.Sandbox.Disabled)
	// Output: host [*] true
}

func ExampleAutonomous() {
	i := isolation.Autonomous()
	fmt.Println(i.Weakest, len(i.Network.AllowedDomains))
	fmt.Println(advice.Text(i.Validate(isolation.LevelHost, "linux")))
	// Output:
	// cell 0
	// isolation: Weakest: level cell is not available; only host is (isolation level host on linux)
	//   next: see drover doctor for what is missing, or accept less by setting Isolation.Weakest
	// isolation: Network.AllowedDomains: without isolation tools can reach the whole network (isolation level host on linux)
	//   next: run in a cell, or say what is so with AllowedDomains "*"
}
