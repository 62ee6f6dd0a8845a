// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/drover-agents/drover/claude/script"
)

func Example() {
	server, err := script.Start(script.New(
		script.Text("Hello!"),
		script.Text("You asked for the weather.").When(script.LastUserText("weather")),
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	fmt.Println(send(server, "What is the weather?"))
	fmt.Println(send(server, "Hi"))
	fmt.Println(server.LastRequest().LastUserText())
	// Output:
	// You asked for the weather.
	// Hello!
	// Hi
}

// A turn can be computed from what was asked.
func ExampleFunc() {
	server, err := script.Start(script.New(
		script.Func(func(r *script.Request) script.Turn {
			return script.Text("You said: " + r.LastUserText())
		}).Always(),
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	fmt.Println(send(server, "one"))
	fmt.Println(send(server, "two"))
	// Output:
	// You said: one
	// You said: two
}

// A mistake in a file is reported with its place.
func ExampleRead() {
	_, err := script.Read(strings.NewReader("version: 1\nturns:\n  - txet: hello\n"))
	fmt.Println(err)
	// Output:
	// script:3:5: unknown field "txet"
}

// send is a client in a few lines: it returns the text of the answer.
func send(server *script.Server, text string) string {
	body := fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%q}]}`, text)
	resp, err := http.Post(server.URL()+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	_, answer, _ := strings.Cut(string(data), `"text":"`)
	answer, _, _ = strings.Cut(answer, `"`)
	return answer
}
