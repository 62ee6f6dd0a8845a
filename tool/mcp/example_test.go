// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/signal"

	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/mcp"
)

type city struct {
	City string `json:"city" doc:"where"`
}

func weather(_ context.Context, in city) (string, error) { return "It rains in " + in.City + ".", nil }

// A program that is an MCP server, for every client that can start one.
func ExampleServe() {
	registry := tool.MustRegistry(nil, tool.Must("weather", "Returns the weather of a city.", weather, tool.ReadOnly))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := mcp.Serve(ctx, registry, &mcp.ServeOptions{Name: "town", Version: "1.0.0"}); err != nil {
		log.Print(err)
	}
}

// The tools of a foreign server become tools of a registry of ours, with the risk that MCP
// assumes of them.
func ExampleImport() {
	server := mcp.NewServer(tool.MustRegistry(nil, tool.Must("weather", "Returns the weather of a city.", weather, tool.ReadOnly)), &mcp.ServeOptions{Name: "town"})
	web := httptest.NewServer(server)
	defer web.Close()
	defer server.Close()

	registry := tool.MustRegistry(nil)
	imported, err := mcp.Import(context.Background(), mcp.HTTP{URL: web.URL}, &mcp.ImportOptions{Registry: registry})
	if err != nil {
		log.Print(err)
		return
	}
	defer imported.Close()
	for _, t := range imported.Tools() {
		fmt.Println(t.ID(), t.Risks())
	}
	result := registry.Execute(context.Background(), tool.Call{Name: "weather", Input: json.RawMessage(`{"city":"Ulm"}`)})
	fmt.Println(result.Render())
	// Output:
	// town:weather mutates, dangerous
	// It rains in Ulm.
}
