// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
)

// An agent gets the address and the token; the key stays here. Its second call finds the budget
// spent.
func Example() {
	model, err := script.Start(script.New(script.Text("Hello").Metered(script.Usage{Input: 900, Output: 200})))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	upstream, err := gateway.Endpoint(model.URL(), gateway.APIKey("the real key"))
	if err != nil {
		fmt.Println(err)
		return
	}
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 1000})
	run, err := gateway.Shared().Open(gateway.RunOptions{Upstream: upstream, Trackers: []*guard.Tracker{tracker}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go run.Serve(l)

	for range 2 {
		status, answer := callModel("http://"+l.Addr().String(), run.Token())
		fmt.Println(status, strings.Contains(answer, "Hello"))
	}
	fmt.Println("the model saw", model.LastRequest().Header.Get("X-Api-Key"))
	fmt.Println(run.Usage().Total.Output, "output tokens")
	fmt.Println(errors.Is(run.Stopped(), guard.ErrBudgetExhausted))
	// Output:
	// 200 true
	// 402 false
	// the model saw the real key
	// 200 output tokens
	// true
}

// callModel represents the agent.
func callModel(address, token string) (status int, answer string) {
	req, err := http.NewRequest(http.MethodPost, address+"/v1/messages",
		strings.NewReader(`{"model":"claude-opus-4-5","max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("X-Api-Key", token)
	req.Header.Set("Connection", "close")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// A model has one price under all its names; an unknown model has none.
func ExamplePrices_Of() {
	for _, model := range []string{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", "model-of-tomorrow"} {
		price, ok := gateway.BuiltinPrices().Of(model)
		fmt.Println(gateway.CanonicalModel(model), ok, price.CostUSD(gateway.Tokens{Input: 10_000, Output: 1_000}))
	}
	// Output:
	// claude-sonnet-4-5 true 0.045
	// model-of-tomorrow false 0
}

func ExampleCredential() {
	fmt.Println(gateway.APIKey("sk-ant-secret"), gateway.Credential{})
	// Output: API key (redacted) no credential
}
