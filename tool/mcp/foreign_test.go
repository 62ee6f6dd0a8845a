// SPDX-License-Identifier: Apache-2.0

package mcp_test

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

func foreignServer() *sdk.Server { return testServer(nil, nil) }
