// SPDX-License-Identifier: Apache-2.0

// Command mcp serves a registry of tools over standard input and output, for any program that speaks MCP.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/mcp"
)

type city struct {
	City string `json:"city" doc:"where"`
}

func main() {
	registry := tool.MustRegistry(nil, tool.Must("weather", "Returns the weather of a city.", func(_ context.Context, in city) (string, error) {
		return "It rains in " + in.City + ".", nil
	}, tool.ReadOnly))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := mcp.Serve(ctx, registry, &mcp.ServeOptions{Name: "town", Version: "1.0.0"}); err != nil {
		log.Fatal(advice.Text(err))
	}
}
